// Updates dictionary values in place.

extension Dictionary {
    /// Changes the value of a key in place, starting from `blank` if there is none.
    ///
    /// A separate function because the Swift 6.0 compiler crashes on an in-place change next to a
    /// statement's reads.
    package mutating func change(
        _ key: Key,
        from blank: @autoclosure () -> Value,
        _ body: (inout Value) -> Void
    ) {
        body(&self[key, default: blank()])
    }
}
