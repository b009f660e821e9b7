// Collects the members of one record, with the checks of the server.
import Host
import JSON

/// The members of a record that other programs send.
struct IntakeMembers {
    /// Members that the gateway adds itself.
    static let reserved = ["id", "timestamp", "clock"]
    /// The most members of an object, as in the server (`MemberNames.maximum`), with reserved ones.
    static let objectLimit = 4096
    /// The most members of a record.
    static let limit = objectLimit - reserved.count

    /// The members, without braces and without blanks between their parts.
    private(set) var bytes: [UInt8] = []
    private(set) var count = 0
    private var sound = AudioMembers()

    /// Adds a member; `written` is its name and `value` its value, as JSON.
    mutating func append(_ name: [UInt8], _ written: ArraySlice<UInt8>, _ value: [UInt8]) {
        if count > 0 { bytes.append(UInt8(ascii: ",")) }
        count += 1
        bytes += written
        bytes.append(UInt8(ascii: ":"))
        bytes += value
        sound.receive(name, value[...])
    }

    /// Returns why the server would refuse the record with one more member of this name.
    func problem(adding name: [UInt8]) -> String? {
        let folded = name.map(\.asciiLowercased)
        if folded.isEmpty { return "a member has no name" }
        if Self.reserved.contains(where: { folded.elementsEqual($0.utf8) }) {
            let shown = JSONCursor.shown(name)
            return "the name \"\(shown)\" is reserved: the gateway writes id, timestamp and clock"
        }
        return count < Self.limit ? nil : "a record has more than \(Self.limit) members"
    }

    /// Why the server would refuse the record as it is; nil if it would not.
    var problem: String? { sound.problem }
}
