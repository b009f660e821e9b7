// An HTTP answer without an end, sent part by part while the client reads.
import Synchronization

/// Sends parts of an answer as they become available; uses no thread between two parts.
///
/// A client that is too slow with a part is disconnected, and so is one that has left.
package final class AnswerStream: Sendable {
    private struct State {
        var place: (connection: HTTPConnection, limits: Connections)?
        /// The part that is being sent, and the one after it.
        var rest: ArraySlice<UInt8>
        var next: [UInt8]?
        /// True if the connection is suspended.
        var isWaiting = false
        var isOver = false

        mutating func wake() {
            guard isWaiting else { return }
            isWaiting = false
            place?.connection.resume()
        }

        mutating func pause() {
            // The sent part's memory is released.
            rest = []
            isWaiting = true
            place.map { $0.limits.stop($0.connection) }
            place?.connection.suspend()
        }

        /// Restarts the client's deadline.
        func giveTime() { place.map { $0.limits.start($0.connection) } }
    }

    /// Bytes of a part per deadline; each gets as much time as a header.
    private static let step = 512 << 10

    let headers: [(name: String, value: String)]
    private let state: Mutex<State>

    /// `first`: the part that is sent first.
    package init(_ headers: [(name: String, value: String)], first: [UInt8]) {
        self.headers = headers
        state = Mutex(State(rest: first[...]))
    }

    // MARK: On any thread

    /// Queues a part after the current one; replaces one that is still queued.
    package func send(_ part: [UInt8]) {
        state.withLock {
            $0.next = part
            $0.wake()
        }
    }

    /// Ends the answer, even in the middle of a part.
    package func end() {
        state.withLock {
            $0.isOver = true
            $0.wake()
        }
    }

    /// True if everything queued has been sent.
    package var isIdle: Bool { state.withLock { $0.rest.isEmpty && $0.next == nil } }

    /// True if it was ended or its client has left, which the daemon does not notice between parts.
    package var isOver: Bool {
        state.withLock { $0.isOver || ($0.isWaiting && $0.place?.connection.isClosed == true) }
    }

    // MARK: On the daemon's thread

    /// Called before the first part is sent.
    func begin(_ connection: HTTPConnection, _ limits: Connections) {
        connection.limitSilence(to: limits.patience)
        state.withLock {
            $0.place = (connection, limits)
            $0.giveTime()
        }
    }

    /// Copies the next bytes; returns 0 if there are none and the connection is suspended, nil at
    /// the end.
    func fill(_ buffer: UnsafeMutableRawBufferPointer) -> Int? {
        state.withLock { state in
            guard !state.isOver else { return nil }
            if state.rest.isEmpty, let next = state.next {
                (state.rest, state.next) = (next[...], nil)
                state.giveTime()
            }
            guard !state.rest.isEmpty else {
                state.pause()
                return 0
            }
            let part = state.rest.prefix(buffer.count)
            buffer.copyBytes(from: part)
            let left = state.rest.count - part.count
            if left / Self.step < state.rest.count / Self.step { state.giveTime() }
            state.rest = state.rest.dropFirst(part.count)
            return part.count
        }
    }

    /// Called when the connection closes; it must not be used any more.
    func forget() {
        state.withLock { state in
            (state.place, state.isWaiting, state.isOver) = (nil, false, true)
            (state.rest, state.next) = ([], nil)
        }
    }
}
