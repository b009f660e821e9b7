// A bounded queue from many threads to one.

/// A bounded FIFO queue; its one reader may wait with a deadline.
///
/// A patient element does not wake a reader that has a deadline: it waits to be read in a batch.
package final class Mailbox<Element: Sendable>: Sendable {
    private let state = Condition(State())
    private let limit: Int

    private struct State {
        var elements: [Element] = []
        /// An element must be read at once.
        var isHasty = false
        /// The reader has a deadline, so patient elements can wait for a batch.
        var isPatient = false
        var isClosed = false

        /// How many patient elements wake a reader with a deadline; they take a millisecond to
        /// handle.
        static var company: Int { 256 }

        var isEnough: Bool {
            isPatient && !isHasty ? elements.count >= Self.company : !elements.isEmpty
        }
    }

    package init(limit: Int) { self.limit = limit }

    /// Appends an element; returns false if the queue is full or closed.
    ///
    /// `urgent` ignores the limit; `patient` may wait until the reader's deadline.
    package func post(_ element: Element, urgent: Bool = false, patient: Bool = false) -> Bool {
        let (isPosted, wakes) = state.withLock { state in
            guard !state.isClosed, urgent || state.elements.count < limit else {
                return (false, false)
            }
            let wasEnough = state.isEnough
            state.elements.append(element)
            if !patient { state.isHasty = true }
            return (true, !wasEnough && state.isEnough)
        }
        if wakes { state.signal() }
        return isPosted
    }

    /// Closes the queue and moves what is left to `rest`; every later `post` returns false.
    package func close(into rest: inout [Element]) {
        rest.removeAll()
        state.withLock { state in
            state.isClosed = true
            swap(&state.elements, &rest)
        }
    }

    /// Elements waiting to be read.
    package var count: Int { state.withLock { $0.elements.count } }

    /// Moves all elements to `batch`; waits at most `timeout` for a first one (nil: for ever).
    package func takeAll(into batch: inout [Element], timeout: Duration?) {
        batch.removeAll(keepingCapacity: true)
        let isReady = { (state: inout State) in
            state.isPatient = timeout != nil
            return state.isEnough
        }
        state.wait(timeout: timeout, until: isReady) { state in
            state.isHasty = false
            swap(&state.elements, &batch)
            mustHold(state.elements.isEmpty, "an element is read once")
        }
    }
}
