// The output of `--summary`, as text or JSON.
import Foundation
import Host

/// The counts of each stream in the files.
struct Summary {
    struct Stream {
        var records = 0
        var ids: Set<String> = []
        var first: String?
        var last: String?
        var newestAudio: String?
    }

    private var streams: [String: Stream] = [:]
    /// Records later than this have a date in the future.
    ///
    /// A server whose clock was not set did not mark them.
    private let horizon = SystemClock().wall() + .seconds(86_400)

    init(directory: String) throws {
        guard let names = FileManager.default.enumerator(atPath: directory) else { return }
        for case let name as String in names where name.hasSuffix(".ndjson") {
            let folders = name.split(separator: "/").dropLast()
            guard let stream = folders.first, stream.hasPrefix("stream=") else { continue }
            let root = URL(fileURLWithPath: directory)
            // `audio/NAME/DATE/ID` has the audio of `stream=NAME/date=DATE/device=ID`.
            let audio = folders.map { $0.drop { $0 != "=" }.dropFirst() }.joined(separator: "/")
            add(
                try Data(contentsOf: root.appendingPathComponent(name)),
                to: String(stream.dropFirst(7)),
                audio: root.appendingPathComponent("audio/\(audio)")
            )
        }
    }

    private mutating func add(_ data: Data, to name: String, audio folder: URL) {
        var stream = streams[name] ?? Stream()
        for line in data.split(separator: 10) {
            guard let record = try? JSONSerialization.jsonObject(with: line) as? [String: Any]
            else {
                continue
            }
            stream.records += 1
            stream.ids.insert(record["id"] as? String ?? "")
            // A record dated ahead never counts as the last.
            guard let time = (record["timestamp"] ?? record["timestamp_start"]) as? String,
                record["clock"] as? String != "future",
                WallTime(rfc3339: time).map({ $0 <= horizon }) ?? true
            else { continue }
            stream.first = min(stream.first ?? time, time)
            if time >= stream.last ?? time {
                stream.last = time
                if let audio = record["audio_file"] as? String {
                    stream.newestAudio = folder.appendingPathComponent(audio).path
                }
            }
        }
        streams[name] = stream
    }

    func text(json: Bool) -> String {
        let sorted = streams.sorted { $0.key < $1.key }
        guard json else {
            return sorted.map { name, stream in
                let audio = stream.newestAudio.map { "\n  newest sound: \($0)" } ?? ""
                return
                    "\(name): \(stream.records) records, \(stream.ids.count) distinct ids, \(stream.first ?? "-") to \(stream.last ?? "-")\(audio)"
            }.joined(separator: "\n")
        }
        let object = Dictionary(
            uniqueKeysWithValues: sorted.map { name, stream in
                (
                    name,
                    [
                        "records": stream.records, "distinct_ids": stream.ids.count,
                        "first": stream.first ?? "", "last": stream.last ?? "",
                        "newest_audio": stream.newestAudio ?? "",
                    ] as [String: Any]
                )
            }
        )
        let data = try? JSONSerialization.data(
            withJSONObject: object,
            options: [.sortedKeys, .withoutEscapingSlashes]
        )
        return String(decoding: data ?? Data(), as: UTF8.self)
    }
}
