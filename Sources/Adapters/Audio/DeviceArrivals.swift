// Detects sound devices that are plugged in.
import CLinux
import Glibc
import Host

/// Watches `/dev/snd`, which holds each card's files, or `/dev` until the first card creates it.
final class DeviceArrivals {
    /// Delay after an arrival, because udev creates a card's files one by one, then sets their
    /// rights.
    private static let settling = Duration.milliseconds(300)

    private let folder: String
    private var watch: Watch?

    /// `folder` replaces `/dev` in tests.
    init(folder: String = "/dev") {
        self.folder = folder
        renew()
    }

    private func renew() {
        watch = Watch(folder + "/snd") ?? Watch(folder)
    }

    private final class Watch {
        let owner: Descriptor

        /// nil if the folder does not exist.
        init?(_ path: String) {
            let number = waypost_watch_arrivals(path)
            guard number >= 0 else { return nil }
            owner = Descriptor(owning: number)
        }
    }

    private var descriptor: Int32 { watch?.owner.number ?? -1 }

    /// Returns whether something arrived since the last call; does not block.
    func haveCome() -> Bool {
        var bytes = [UInt8](repeating: 0, count: 4096)
        var came = false
        while read(descriptor, &bytes, bytes.count) > 0 { came = true }
        // The cards' folder may have been created.
        if came { renew() }
        return came
    }

    /// Waits for an arrival, at most `limit` or until `stop` is raised; true if something arrived.
    func wait(alongside stop: StopSignal, limit: Duration) -> Bool {
        var entries = [PollEntry(stop.descriptor), PollEntry(descriptor)]
        guard stop.wait(for: &entries, timeout: limit) > 0, !stop.isRaised, haveCome() else {
            return false
        }
        _ = stop.sleep(for: Self.settling)
        _ = haveCome()
        return true
    }
}
