// Where the sound source puts its sound.
package import Host
package import Records

/// Where the audio source puts its sound: the queue, or what a test puts in its place.
package struct SoundSink: Sendable {
    package var newRunID: @Sendable () -> Int64
    package var begin: @Sendable (AudioRun) -> Void
    package var accept: @Sendable (Segment) -> Bool
    /// Why no sound is taken now; nil while it is.
    package var refusal: @Sendable () -> Failure?
    package var end: @Sendable (Int64) -> Void
    /// When the sound ended that was recorded before this start of the source; nil where there is none.
    package var lastEnd: @Sendable () -> Stamp? = { nil }
    package var event: @Sendable (Event) -> Void
    /// What no event of its own tells of.
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
