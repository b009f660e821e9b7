// The server's list of the keys that it may set, against the gateway's own marks.
import ServerArchive
import Setup
import Testing

@Suite struct RemoteKeysTests {
    /// The keys that waypost.toml(5) marks as remote: `upload.interval`, `stream.*.max_rate`.
    private static var marked: [String] {
        var (section, key, marked) = ("", "", [String]())
        let text = String(Configuration.manual.filter { $0 != "\\" })
        for line in text.split(separator: "\n") {
            if line.hasPrefix("# [") {
                let name = line.dropFirst(3).dropLast()
                section = (name == "stream.NAME" ? "stream.*" : name) + "."
            } else if line.hasPrefix("*") {
                key = section + line.dropFirst().prefix { $0 != "*" }
            } else if line.contains("_Remote._") || line.contains("_Remote_,") {
                marked.append(key)
            }
        }
        return marked
    }

    @Test func serversList_isThatOfTheMarks() {
        #expect(Self.marked.contains("stream.*.max_record_bytes"))
        #expect(RemoteKeys.paths.sorted() == Self.marked.sorted())
    }
}
