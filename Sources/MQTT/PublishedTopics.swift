// The topics to which a gateway publishes, so that it does not collect its own messages.

/// A set of topics: some whole, and all that begin with one of some texts.
package struct PublishedTopics: Sendable, Equatable {
    private let topics: Set<String>
    private let starts: [String]

    package init(_ topics: [String] = [], starts: [String] = []) {
        (self.topics, self.starts) = (Set(topics), starts)
    }

    package func contains(_ topic: String) -> Bool {
        topics.contains(topic) || starts.contains { topic.hasPrefix($0) }
    }

    /// Returns whether a subscription also gets some of them.
    package func isGot(by filter: TopicFilter) -> Bool {
        topics.contains(where: filter.matches) || starts.contains { filter.matches("\($0)config") }
    }
}
