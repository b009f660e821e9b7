import Testing

@testable import MQTT

/// Wildcards as in MQTT 3.1.1, section 4.7.
@Suite struct TopicFilterTests {
    private static let good = ["a", "/", "tele/+/SENSOR", "#", "+", "a/#", "/+/b", "a//b", "ä/+"]
    private static let bad = [
        "", "a/#/b", "a#", "a+/b", "+a", "##", "$share/g/a", "a\u{0}", "a\u{7F}",
        String(repeating: "a", count: 257),
    ]

    @Test(arguments: good) func validFilter_isAccepted(text: String) {
        #expect(TopicFilter(text)?.text == text)
    }

    @Test(arguments: bad) func invalidFilter_isRefused(text: String) {
        #expect(TopicFilter(text) == nil)
    }

    private static let matching: [[String]] = [
        ["tele/+/SENSOR", "tele/a/SENSOR"], ["a/#", "a"], ["a/#", "a/b/c"], ["#", "a/b"],
        ["+", "a"], ["+/+", "/a"], ["/+", "/a"], ["a/+", "a/"], ["$SYS/#", "$SYS/x"],
    ]
    private static let other: [[String]] = [
        ["tele/+/SENSOR", "tele/a/b/SENSOR"], ["+", "a/b"], ["+", "/a"], ["a/+", "a"],
        ["#", "$SYS/x"], ["+/x", "$SYS/x"], ["a", "A"], ["a/b/#", "a"],
    ]

    @Test(arguments: matching) func topic_matches(pair: [String]) {
        #expect(TopicFilter(pair[0])?.matches(pair[1]) == true)
    }

    @Test(arguments: other) func topic_doesNotMatch(pair: [String]) {
        #expect(TopicFilter(pair[0])?.matches(pair[1]) == false)
    }

    private static let overlapping: [[String]] = [
        ["tele/#", "tele/+/SENSOR"], ["a/+", "+/b"], ["#", "x"], ["a", "a"], ["a/#", "a"],
    ]
    private static let apart: [[String]] = [
        ["a/+", "b/+"], ["a", "a/b"], ["a/+", "a/b/c"], ["a/b/#", "a/c/#"],
    ]

    @Test(arguments: overlapping) func filters_overlap(pair: [String]) throws {
        let (one, two) = (try #require(TopicFilter(pair[0])), try #require(TopicFilter(pair[1])))
        #expect(one.overlaps(two) && two.overlaps(one))
    }

    @Test(arguments: apart) func filters_areApart(pair: [String]) throws {
        let (one, two) = (try #require(TopicFilter(pair[0])), try #require(TopicFilter(pair[1])))
        #expect(!one.overlaps(two) && !two.overlaps(one))
    }
}
