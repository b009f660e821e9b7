// Says when the data of a day or of a few days ends early.
import ServerBase
import ServerIndex

extension Timeline {
    /// Milliseconds without data at the end of the time that are reported.
    private static let silence: Int64 = 3_600_000

    /// Adds the time since when no stream has data, if the data ends early.
    ///
    /// Nothing of more than three days, whose cells are too long for it.
    func drawEnd(_ html: inout HTML) {
        guard span.step == 1, let last = streams.values.flatMap(\.keys).max() else { return }
        let end = (IndexedPart.slots(in: span.time).lowerBound + last + 1) * IndexedPart.slot
        guard min(now, span.time.upperBound) - end > Self.silence else { return }
        html.element("p", [("class", "late")]) { html in
            html.text(now < span.time.upperBound ? "No data since " : "No data after ")
            html.time(end)
            html.text(".")
        }
    }
}
