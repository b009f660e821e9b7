// The first result of a function that may have none.

extension Sequence {
    /// Returns the first value of `transform` that is not nil, which is called once per element.
    ///
    /// `lazy.compactMap(transform).first` calls it twice for that element, and traps if the second
    /// value is nil: a file or another thread's state may have changed in between.
    package func firstResult<Value>(_ transform: (Element) throws -> Value?) rethrows -> Value? {
        for element in self {
            if let value = try transform(element) { return value }
        }
        return nil
    }
}
