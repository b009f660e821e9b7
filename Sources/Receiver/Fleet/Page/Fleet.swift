// All devices as they are now: the page shows them, and alerts are told of them, by this alone.
import Host
import Synchronization

/// Used by any thread; each look opens the databases anew.
final class Fleet: Sendable {
    private let directory: String
    private let enrolments: Enrolments
    private let follower: IndexFollower
    private let listening: Mutex<ListeningTime>

    /// `directory`: with an archive in it already.
    init(directory: String, enrolments: Enrolments, follower: IndexFollower) throws {
        self.directory = directory
        self.enrolments = enrolments
        self.follower = follower
        let heard = try Contacts.read(directory: directory).values.compactMap(\.lastSeen).max()
        listening = Mutex(
            ListeningTime(
                start: SystemClock().wall().milliseconds,
                heardBefore: heard?.milliseconds ?? 0
            )
        )
        _ = listeningNow()
    }

    /// With what the clock has done meanwhile.
    private func listeningNow() -> ListeningTime {
        let (wall, running) = (SystemClock().wall().milliseconds, Self.start.duration(to: .now))
        return listening.withLock {
            $0.look(at: wall, running: running.milliseconds)
            return $0
        }
    }

    /// On Linux this clock stands still while the machine is suspended.
    private static let start = SuspendingClock.now

    /// How often what the index knows of them has changed.
    var changes: Int { follower.changes }

    /// Each device, and what is wrong with what is known of them; nil: nothing.
    ///
    /// `now`: milliseconds since 1970.
    func look(at now: Int64) throws -> (devices: [DeviceView], note: String?) {
        let (reader, note) = openIndex()
        let contacts = try Contacts.read(directory: directory)
        let tokens = try enrolments.devices()
        let devices = Set(contacts.keys).union(tokens.keys).map {
            view($0, contacts[$0], tokens[$0], facts(of: $0, reader, at: now), at: now)
        }
        return (devices, note)
    }

    /// Returns what the index knows of a device; a failure stays with this device, so that the others are still shown.
    func facts(of device: String, _ reader: FleetReader?, at now: Int64) -> DeviceFacts {
        do {
            return try reader?.facts(of: device, at: now) ?? DeviceFacts()
        } catch {
            return DeviceFacts(isUnreadable: true)
        }
    }

    func view(
        _ id: String,
        _ contact: Contact?,
        _ token: DeviceToken?,
        _ facts: DeviceFacts,
        at now: Int64
    ) -> DeviceView {
        DeviceView(
            id,
            contact: contact,
            token: token,
            facts: facts,
            listening: listeningNow(),
            at: now
        )
    }

    /// The index, and what a viewer must know of it: a page without it is better than none.
    func openIndex() -> (FleetReader?, String?) {
        do {
            if let reader = try FleetReader(directory: directory) {
                let note = "Records are still being read: figures may be too low."
                return (reader, try follower.isBehind || !reader.isWhole() ? note : nil)
            }
            return (nil, "There is no index yet: only what the archive itself knows is shown.")
        } catch {
            return (nil, "The index cannot be read: only what the archive itself knows is shown.")
        }
    }
}
