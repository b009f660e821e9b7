// A page of a long list, and the links to its other pages.

/// A hundred entries of a list.
struct ListPage<Entry> {
    let entries: [Entry]
    private let number: Int
    private let last: Int

    /// `number`: counts from 1; any other number becomes the nearest page.
    init(_ all: [Entry], number: Int) {
        let size = 100
        last = max(1, (all.count + size - 1) / size)
        self.number = min(max(1, number), last)
        entries = Array(all.dropFirst((self.number - 1) * size).prefix(size))
    }

    /// Adds links to the other pages; `address` returns the address of a page.
    func links(_ html: inout HTML, address: (Int) -> String) {
        guard last > 1 else { return }
        html.element("nav", [("class", "ways screen"), ("aria-label", "Pages")]) { html in
            html.element("span", "Page \(number) of \(last)")
            for (words, other) in [
                ("First page", 1), ("Page before", number - 1), ("Next page", number + 1),
            ] where (1...last).contains(other) && other != number {
                html.element("a", [("href", address(other))], words)
            }
        }
    }
}
