// The names of the members of a record, so that none stands twice in one object.
import Host

/// The names in each object that is open, as hashes: 8 bytes per name, whatever its length.
///
/// Names that differ by the case of ASCII letters alone count as one: DuckDB reads a line of
/// `{"o":{"v":1,"V":2}}` as a struct with a name twice, and then refuses the whole stream.
struct MemberNames {
    /// Members of one object.
    static let most = 4096

    private var levels: [Set<UInt64>] = []

    /// An object begins at this depth.
    mutating func open(at depth: Int) {
        while levels.count <= depth { levels.append([]) }
        levels[depth].removeAll(keepingCapacity: true)
    }

    /// Throws `IncomingRecord.Fault` for a name that the object at this depth has already.
    mutating func add(_ name: Range<Int>, of bytes: ByteView, at depth: Int) throws {
        guard levels[depth].count < Self.most else {
            throw IncomingRecord.Fault(reason: "an object has more than \(Self.most) members")
        }
        guard levels[depth].insert(Self.hash(bytes, name)).inserted else {
            let text = printable(JSONString.read(bytes, name) ?? "a long name", limit: 60)
            throw IncomingRecord.Fault(reason: "an object has the member \"\(text)\" twice")
        }
    }

    /// FNV-1a of the name as it reads; names that collide by design only harm who sends them.
    private static func hash(_ bytes: ByteView, _ name: Range<Int>) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        JSONString.unescape(bytes, name) { byte in
            let isUpper = byte >= 0x41 && byte <= 0x5A
            hash = (hash ^ UInt64(isUpper ? byte | 0x20 : byte)) &* 0x100_0000_01B3
        }
        return hash
    }
}
