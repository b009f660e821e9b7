// The member names of a record, to reject duplicates.
import Host

/// The names in each open object as hashes: 8 bytes per name, whatever its length.
///
/// Names that differ only in the case of ASCII letters count as equal: DuckDB reads
/// `{"o":{"v":1,"V":2}}` as a struct with a duplicate name, and then refuses the whole stream.
struct MemberNames {
    /// The maximum number of members of one object.
    static let maximum = 4096

    private var levels: [Set<UInt64>] = []

    /// Called when an object begins at this depth.
    mutating func open(at depth: Int) {
        while levels.count <= depth { levels.append([]) }
        levels[depth].removeAll(keepingCapacity: true)
    }

    /// Throws `RecordError` if the object at this depth already has the name.
    mutating func add(_ name: Range<Int>, of bytes: ByteView, at depth: Int) throws {
        guard levels[depth].count < Self.maximum else {
            throw RecordError(reason: "an object has more than \(Self.maximum) members")
        }
        guard levels[depth].insert(Self.hash(bytes, name)).inserted else {
            let text = printable(JSONString.read(bytes, name) ?? "a long name", limit: 60)
            throw RecordError(reason: "an object has the member \"\(text)\" twice")
        }
    }

    /// FNV-1a of the unescaped name; a deliberate collision only harms its sender.
    private static func hash(_ bytes: ByteView, _ name: Range<Int>) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        JSONString.unescape(bytes, name) { piece in
            for byte in piece { hash = (hash ^ UInt64(byte.asciiLowercased)) &* 0x100_0000_01B3 }
        }
        return hash
    }
}
