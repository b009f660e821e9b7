// A dictionary that is filled from rows.

extension Dictionary {
    /// Changes the value of a key in its place, `blank` where it has none.
    ///
    /// Not written out where a statement is read: there Swift 6.0 falls over a change in place.
    mutating func change(
        _ key: Key,
        from blank: @autoclosure () -> Value,
        _ body: (inout Value) -> Void
    ) {
        body(&self[key, default: blank()])
    }
}
