// Wire names of the gateway's streams, and the streams that users declare.
package import Configuration
import Host
import Live
package import MQTT
import Records

/// `[streams]`: wire names of the gateway's own streams.
package struct StreamNames: Configurable {
    /// Wire names, by the stream's own name.
    private var names = Dictionary(
        uniqueKeysWithValues: StreamList().kinds.map { ($0.stream.name, $0.wire) }
    )

    package init() {}

    /// The wire name, by the stream's own name; a stream that is not built in has that name itself.
    package subscript(name: String) -> String {
        get { names[name] ?? name }
        set { names[name] = newValue }
    }

    /// Names in the order of the streams' numbers.
    static let inOrder = StreamList().streams.sorted { $0.number < $1.number }.map(\.name)

    package static var keys: [Key<Self>] {
        for name in inOrder {
            Key(name, \.[name], .name("stream name", first: ("a letter first", { $0.isLetter })))
                .says("Name of the stream of \(name) on the wire.")
        }
    }

    /// Reports streams that share a wire name.
    package var violations: [Violation] {
        let all = StreamList().streams.map(\.name)
        return all.indices.flatMap { later in
            all[..<later].filter { self[$0] == self[all[later]] }.map { earlier in
                Violation(
                    [all[later], earlier],
                    "\"\(self[earlier])\" is the name of streams.\(earlier) and of streams.\(all[later])",
                    allowed: "a name for each stream alone"
                )
            }
        }
    }
}

extension ValueFormat where Value == [String] {
    /// The most topic filters of a stream.
    private static let limit = 16

    fileprivate static let topics: Self = {
        var format = list(
            "up to \(limit) topic filters, as [\"tele/+/SENSOR\"]; + is one level, # all below",
            problem: TopicFilter.problem
        )
        let read = format.read
        format.read = { literal in
            read(literal).flatMap { filters in
                filters.count <= limit
                    ? .success(filters) : .mismatch("found \(filters.count) filters")
            }
        }
        return format
    }()
}

/// `[stream.weather]`: a stream that other programs may write to (waypost-protocol(7)).
package struct UserStream: Sendable, Equatable {
    /// The name that programs use.
    package var name: String
    /// The wire name.
    package var wire: String
    /// Records per second.
    package var maxRate = 100.0
    /// The size limit of a record's JSON object, without blanks between its parts.
    package var maxRecordBytes = 16_000
    /// Topic filters of the MQTT messages that become its records.
    package var topics: [String] = []
    /// The member of a message that holds its time.
    package var timeMember = "timestamp"
    /// Its records mark the sound around them (audio.upload).
    package var marksAudio = false

    package init(name: String) {
        self.name = name
        wire = name
    }

    /// The most streams that may be declared.
    package static let limit = 32

    @KeyBuilder<Self> private static var keys: [Key<Self>] {
        Key("wire", \.wire, .name("name for the wire", first: ("no - first", { $0 != 45 })))
            .says("Its name at the server; without this key the name of the table.")
        Key("max_rate", \.maxRate, .number(0.001...100_000, unit: "records per second"))
            .remote().says("Most records per second, from all programs together.")
        Key("max_record_bytes", \.maxRecordBytes, .size(16...65_536))
            .remote().says("Longest JSON object that is accepted, in bytes.")
        Key("mqtt", \.topics, .topics)
            .says("Topic filters: messages of the broker in [mqtt] become records of this stream.")
        Key("mqtt_time", \.timeMember, .name("name of a member"))
            .says("Member that holds a message's time: RFC 3339, or s or ms since 1970.")
        Key("marks_audio", \.marksAudio, .boolean).remote().says(
            "With audio.upload = \"marked\": each record marks the sound around its time, audio.mark_margin long."
        )
    }

    private static let allowedName = "1 to 32 of the characters a-z 0-9 _"

    static let tables = NamedTables<Configuration>(
        "stream",
        \.userStreams,
        named: \.name,
        keys: keys,
        example: "weather",
        about: [
            "Streams of your own: `waypost put weather` takes a JSON object a line from any program.",
            "A table declares one; its name: \(allowedName).",
        ],
        allowedName: allowedName,
        limit: limit,
        problem: problem(withName:),
        make: { UserStream(name: $0) }
    )

    /// Returns why a stream name is not valid; nil if it is.
    @Sendable package static func problem(withName name: String) -> String? {
        if StreamNames.inOrder.contains(name) { return "\(name) is a stream of the gateway's own" }
        let isSafe = name.utf8.allSatisfy { (97...122).contains($0) || $0.isDigit || $0 == 95 }
        guard (1...32).contains(name.utf8.count), isSafe else {
            return "\"\(printable(name))\" is not a valid stream name"
        }
        return nil
    }
}

extension Configuration {
    /// Reports user streams that have another stream's wire name.
    var sharedWireNames: [Violation] {
        var owners: [String: String] = [:]
        for name in StreamNames.inOrder { owners[streams[name]] = "streams.\(name)" }
        return userStreams.compactMap { stream in
            let path = "stream.\(stream.name)"
            return owners.updateValue(path, forKey: stream.wire).map { owner in
                Violation(
                    ["\(path).wire", path],
                    "\"\(stream.wire)\" is the name on the wire of \(owner), too",
                    allowed: "a name for each stream alone",
                    name: path
                )
            }
        }
    }
}

extension Configuration {
    /// Returns the topics to which this gateway publishes at the broker of its topic filters.
    package func publishedTopics(of device: String) -> PublishedTopics {
        live.published(by: device, streams: userStreams.map(\.name))
    }

    /// One line per topic filter that also gets what this gateway publishes.
    package var filtersOfOwnMessages: [String] {
        let own = publishedTopics(of: knownDeviceID ?? deviceID)
        return userStreams.flatMap { stream in
            stream.topics.filter { TopicFilter($0).map(own.isGot) ?? false }.map {
                "stream.\(stream.name).mqtt: \"\(printable($0))\" is also for messages that this "
                    + "gateway publishes (mqtt.topic); they are not stored"
            }
        }
    }

    /// Reports topic filters without a broker, and two that are for one message.
    ///
    /// A broker may send a message once for each filter, and it would be stored as often.
    var wrongTopics: [Violation] {
        var (wrong, seen): ([Violation], [(filter: TopicFilter, path: String)]) = ([], [])
        for stream in userStreams where !stream.topics.isEmpty {
            let path = "stream.\(stream.name).mqtt"
            if mqtt.url == nil {
                wrong.append(
                    Violation(
                        [path],
                        "needs a broker: mqtt.url is not set",
                        allowed: "topic filters beside [mqtt] url = \"mqtts://…\""
                    )
                )
            }
            for filter in stream.topics.compactMap({ TopicFilter($0) }) {
                if let other = seen.first(where: { $0.filter.overlaps(filter) }) {
                    wrong.append(
                        Violation(
                            [path],
                            "\"\(printable(filter.text))\" is for the same messages as "
                                + "\"\(printable(other.filter.text))\" of \(other.path)",
                            allowed: "filters of which none matches a topic of another"
                        )
                    )
                }
                seen.append((filter, path))
            }
        }
        return wrong
    }
}
