// Finding a place in what is kept in order.

extension Array {
    /// The place of the first element that lies after something; all those before it must not.
    package func firstPlace(after liesAfter: (Element) -> Bool) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if liesAfter(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
