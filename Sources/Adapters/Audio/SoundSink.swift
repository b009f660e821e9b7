// The destination of the audio source's segments.
package import Host
package import Records

/// Receives the audio source's segments: the queue, or a test's replacement.
package struct SoundSink: Sendable {
    package var newRunID: @Sendable () -> Int64
    package var begin: @Sendable (AudioRun) -> Void
    package var accept: @Sendable (Segment) -> Bool
    /// Returns why audio is refused now; nil while it is accepted.
    package var refusal: @Sendable () -> Failure?
    package var end: @Sendable (Int64) -> Void
    /// Returns when the audio recorded before this start ended; nil if there is none.
    package var lastEnd: @Sendable () -> Stamp? = { nil }
    package var event: @Sendable (Event) -> Void
    /// Records losses that no event reports.
    package var lost: @Sendable (Loss) -> Void = { _ in }

    package init(
        newRunID: @escaping @Sendable () -> Int64,
        begin: @escaping @Sendable (AudioRun) -> Void,
        accept: @escaping @Sendable (Segment) -> Bool,
        refusal: @escaping @Sendable () -> Failure? = { nil },
        end: @escaping @Sendable (Int64) -> Void,
        event: @escaping @Sendable (Event) -> Void
    ) {
        self.newRunID = newRunID
        self.begin = begin
        self.accept = accept
        self.refusal = refusal
        self.end = end
        self.event = event
    }
}
