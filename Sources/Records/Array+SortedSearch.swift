// Binary search in a sorted array.

extension Array {
    /// Returns the index of the first element for which `liesAfter` is true; all before it must be
    /// false.
    package func firstPlace(after liesAfter: (Element) -> Bool) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if liesAfter(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
