// The current state of all devices, the only source for the page and for alerts.
import Host
package import ServerArchive
package import ServerWeb
import Synchronization

/// Reads the devices' states; thread-safe, because each call opens the databases again.
package final class Fleet: Sendable {
    private let directory: String
    private let enrolments: Enrolments
    private let follower: IndexFollower
    private let listening: Mutex<ListeningTime>

    /// `directory`: contains an archive.
    package init(directory: String, enrolments: Enrolments, follower: IndexFollower) throws {
        self.directory = directory
        self.enrolments = enrolments
        self.follower = follower
        let heard = try Contacts.read(directory: directory).values.map(\.lastSeen).max()
        listening = Mutex(
            ListeningTime(
                start: SystemClock().wall().milliseconds,
                heardBefore: heard?.milliseconds ?? 0
            )
        )
        _ = listeningNow()
    }

    /// Returns the listening time, updated with clock steps since the last call.
    private func listeningNow() -> ListeningTime {
        let (wall, running) = (SystemClock().wall().milliseconds, Self.start.duration(to: .now))
        return listening.withLock {
            $0.look(at: wall, running: running.milliseconds)
            return $0
        }
    }

    /// On Linux this clock does not run while the machine is suspended.
    private static let start = SuspendingClock.now

    /// The number of changes of the index.
    package var changes: Int { follower.changes }

    /// Returns each device, and a warning about the data; nil if there is none.
    ///
    /// `now`: milliseconds since 1970.
    package func look(at now: Int64) throws -> (devices: [DeviceView], note: String?) {
        let (reader, note) = openIndex()
        return (try devices(reader, at: now), note)
    }

    /// Returns each device as an open index has it.
    package func devices(_ reader: FleetReader?, at now: Int64) throws -> [DeviceView] {
        let contacts = try Contacts.read(directory: directory)
        let tokens = try enrolments.devices()
        return Set(contacts.keys).union(tokens.keys).map {
            view($0, contacts[$0], tokens[$0], facts(of: $0, reader, at: now), at: now)
        }
    }

    /// Returns the index's data about a device; an error affects only this device.
    package func facts(of device: String, _ reader: FleetReader?, at now: Int64) -> DeviceFacts {
        do {
            return try reader?.facts(of: device, at: now) ?? DeviceFacts()
        } catch {
            return DeviceFacts(isUnreadable: true)
        }
    }

    package func view(
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

    /// Opens the index; returns a note for viewers if it is missing or incomplete.
    package func openIndex() -> (FleetReader?, String?) {
        do {
            if let reader = try FleetReader(directory: directory) {
                let note = "Records are still being read: figures may be too low."
                return (reader, try follower.isBehind || !reader.isWhole() ? note : nil)
            }
            return (nil, "There is no index yet: only data of the archive itself is shown.")
        } catch {
            return (nil, "The index cannot be read: only data of the archive itself is shown.")
        }
    }
}
