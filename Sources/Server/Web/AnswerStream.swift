// An HTTP answer without an end, sent part by part while the client reads.
import Host
import Synchronization

/// Sends parts of an answer as they become available; uses no thread between two parts.
///
/// Ends if the client does not read a part, or has disconnected.
package final class AnswerStream: Sendable {
    private struct State {
        var connection: HTTPConnection?
        /// The rest of the part that is being sent.
        var rest: ArraySlice<UInt8>
        /// True if the connection is suspended.
        var isWaiting = false
        var isOver = false

        mutating func wake() {
            guard isWaiting else { return }
            isWaiting = false
            connection?.resume()
        }

        mutating func pause() {
            isWaiting = true
            connection?.suspend()
        }
    }

    package let headers: [(name: String, value: String)]
    private let state: Mutex<State>

    /// `first`: the part that is sent first.
    package init(_ headers: [(name: String, value: String)], first: [UInt8]) {
        self.headers = headers
        state = Mutex(State(rest: first[...]))
    }

    // MARK: On any thread

    /// Sends a part; call it only while `isIdle`.
    ///
    /// libmicrohttpd's timeout disconnects a client that does not read it.
    package func send(_ part: [UInt8]) {
        state.withLock {
            invariant($0.rest.isEmpty, "a part follows one that was sent")
            $0.rest = part[...]
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

    /// True if the last part has been sent.
    package var isIdle: Bool { state.withLock { $0.rest.isEmpty } }

    /// True if it was ended or its client has left, which the daemon does not notice between parts.
    package var isOver: Bool {
        state.withLock { $0.isOver || ($0.isWaiting && $0.connection?.isClosed == true) }
    }

    // MARK: On the daemon's thread

    /// Called before the first part is sent.
    package func begin(_ connection: HTTPConnection) {
        state.withLock { $0.connection = connection }
    }

    /// Copies the next bytes; returns 0 if there are none and the connection is suspended, nil at
    /// the end.
    func fill(_ buffer: UnsafeMutableRawBufferPointer) -> Int? {
        state.withLock { state in
            guard !state.isOver else { return nil }
            guard !state.rest.isEmpty else {
                state.pause()
                return 0
            }
            let part = state.rest.prefix(buffer.count)
            buffer.copyBytes(from: part)
            state.rest = state.rest.dropFirst(part.count)
            return part.count
        }
    }

    /// Called when the connection closes; it must not be used any more.
    package func forget() {
        state.withLock { state in
            (state.connection, state.isWaiting, state.isOver) = (nil, false, true)
            state.rest = []
        }
    }
}
