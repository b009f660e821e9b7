// The beacons that a viewer wants to see, and their order.
import Host
import ServerBase
import ServerIndex

/// All beacons that were heard or have a label, as a plain form asks for them.
struct BeaconList {
    /// The raw values are for people.
    enum Order: String, CaseIterable {
        case heard = "Last heard"
        case name = "Name"
        case battery = "Battery, lowest first"
    }

    struct Entry {
        let id: String
        let label: String?
        /// Nil if it has a label only.
        let heard: HeardBeacon?

        /// Those with a label come first.
        fileprivate var name: (Int, String, String) {
            (label == nil ? 1 : 0, label?.lowercased() ?? "", id)
        }
    }

    /// Milliseconds; a beacon that was not heard for longer may have been taken away.
    private static let recent = 30 * Day.milliseconds

    let search: String
    let order: Order
    private let number: Int
    private(set) var entries: [Entry]
    /// The beacon with the emptiest battery of those heard in the last 30 days.
    let emptiest: Entry?
    /// True if there are more beacons than were read.
    let isCut: Bool

    init(
        _ query: [String: String],
        _ names: KnownNames,
        _ reader: FleetReader?,
        at now: Int64
    ) throws {
        search = trimmed(String((query["q"] ?? "").prefix(200)))
        order = Order.allCases.first { "\($0)" == query["sort"] } ?? .heard
        number = query["page"].flatMap { Int($0) } ?? 1
        var sightings = try reader?.sightings() ?? []
        isCut = sightings.count >= FleetReader.maxSightings
        if isCut, let reader {
            sightings += try reader.sightings(byCharge: true)
            for beacon in [search] + names.beacons.keys {
                sightings += try reader.sightings(of: beacon)
            }
        }
        let newest = Dictionary(sightings.map { ($0.beacon, $0) }) { $0.time < $1.time ? $1 : $0 }
        let all = Set(newest.keys).union(names.beacons.keys).map {
            Entry(id: $0, label: names.beacons[$0], heard: newest[$0])
        }
        emptiest = all.filter { $0.heard?.charge != nil && $0.heard?.time ?? 0 > now - Self.recent }
            .min { ($0.heard?.charge ?? 0, $0.id) < ($1.heard?.charge ?? 0, $1.id) }
        let words = search.lowercased().split(separator: " ").map(String.init)
        entries = all.filter { entry in
            let text = "\(entry.label ?? "") \(entry.id)".lowercased()
            return words.allSatisfy { text.contains(text: $0) }
        }
        sort()
    }

    private mutating func sort() {
        switch order {
        case .heard: entries.sort { ($1.heard?.time ?? 0, $0.id) < ($0.heard?.time ?? 0, $1.id) }
        case .name: entries.sort { $0.name < $1.name }
        case .battery:
            entries.sort {
                ($0.heard?.charge ?? .infinity, $0.id) < ($1.heard?.charge ?? .infinity, $1.id)
            }
        }
    }

    var page: ListPage<Entry> { ListPage(entries, number: number) }

    /// The address of the page that is shown.
    var address: String { address(ofPage: number) }

    func address(ofPage page: Int) -> String {
        "/beacons?sort=\(order)&q=\(FormField.written(search))&page=\(page)"
    }
}
