// The state of the listen socket, for `status`.

/// Programs that listen to the recording, and what they got since the start of the socket.
package struct ListenReport: Sendable, Equatable {
    /// The most programs at a time.
    package static let readerLimit = 16

    package var readers = 0
    /// Samples, over all programs; `lost` were dropped because a program was too slow.
    package var sent = 0
    package var lost = 0

    package init() {}
}
