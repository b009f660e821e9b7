// Finding a place in what is kept in order.

extension Array {
    /// The index of the first element for which `liesAfter` is true; it must be false for all before that one.
    package func firstPlace(after liesAfter: (Element) -> Bool) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if liesAfter(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
