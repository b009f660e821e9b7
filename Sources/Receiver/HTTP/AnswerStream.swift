// An answer that goes on for as long as its client takes what comes.
import Synchronization

/// Parts that are handed over whenever there is one; between them it costs no thread.
///
/// A client that takes too long for a part is let go, and so is one that is gone.
package final class AnswerStream: Sendable {
    private struct State {
        var place: (connection: HTTPConnection, limits: Connections)?
        /// What is being sent, and what comes after that.
        var rest: ArraySlice<UInt8>
        var next: [UInt8]?
        /// The connection is suspended.
        var isWaiting = false
        var isOver = false

        mutating func wake() {
            guard isWaiting else { return }
            isWaiting = false
            place?.connection.resume()
        }

        mutating func pause() {
            // What was sent is not kept.
            rest = []
            isWaiting = true
            place.map { $0.limits.stop($0.connection) }
            place?.connection.suspend()
        }

        /// From now on the client has so long again.
        func giveTime() { place.map { $0.limits.start($0.connection) } }
    }

    /// Bytes of a part for which it has as much time as for a header.
    private static let step = 512 << 10

    let headers: [(name: String, value: String)]
    private let state: Mutex<State>

    /// `first`: what is sent before anything else.
    package init(_ headers: [(name: String, value: String)], first: [UInt8]) {
        self.headers = headers
        state = Mutex(State(rest: first[...]))
    }

    // MARK: On any thread

    /// Sent behind what is being sent; what waits for that already gives way to it.
    package func send(_ part: [UInt8]) {
        state.withLock {
            $0.next = part
            $0.wake()
        }
    }

    /// It may be in the middle of a part.
    package func end() {
        state.withLock {
            $0.isOver = true
            $0.wake()
        }
    }

    /// All that was to be sent is.
    package var isIdle: Bool { state.withLock { $0.rest.isEmpty && $0.next == nil } }

    /// It was ended, or its client has closed the connection, which the daemon does not see between two parts.
    package var isOver: Bool {
        state.withLock { $0.isOver || ($0.isWaiting && $0.place?.connection.isClosed == true) }
    }

    // MARK: On the daemon's thread

    /// It is about to be sent.
    func begin(_ connection: HTTPConnection, _ limits: Connections) {
        connection.limitSilence(to: limits.patience)
        state.withLock {
            $0.place = (connection, limits)
            $0.giveTime()
        }
    }

    /// Gives what is next; 0: nothing now, the connection is suspended; nil: it is over.
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

    /// Its connection is not to be touched any more.
    func forget() {
        state.withLock { state in
            (state.place, state.isWaiting, state.isOver) = (nil, false, true)
            (state.rest, state.next) = ([], nil)
        }
    }
}
