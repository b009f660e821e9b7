// Checks a board's boot files, power supply, temperature and last upload.
import CLinux
import Glibc
import Host
import Setup
import Status
import Upload

struct BoardCheck {
    private static let boot = "/boot/firmware"

    let input: DoctorInput
    var clock: any HostClock = SystemClock()
    private var files: SystemFiles { input.files }

    var findings: [Finding] { bootFiles + power + [temperature, upload].compactMap { $0 } }

    // MARK: The card's files

    private var bootFiles: [Finding] {
        let part = "boot files"
        let reported = CardFailures.read(in: input.configuration.runtimeDirectory)
        let problems = reported.all(at: clock.now(), accepted: lastUpload)
        guard problems.isEmpty else {
            return problems.map { .warn(part, "\($0.place): \($0.what)", next: $0.remedy) }
        }
        guard files.exists(Self.boot) else { return [] }
        let wanted = "/etc/systemd/system/multi-user.target.wants/waypost-import.service"
        guard files.isThere(wanted) else {
            let what = "files in \(Self.boot) are not imported at boot"
            let next = "`sudo systemctl enable waypost-import waypost-enroll`"
            return [.warn(part, what, next: next)]
        }
        let left = CardFile.allCases.filter(\.isSecret).filter(lies)
        guard left.isEmpty else {
            let names = left.map(\.rawValue).joined(separator: ", ")
            let next = "the next boot imports it; or delete it: `sudo rm \(Self.boot)/NAME`"
            return [.warn(part, "\(names) is readable by anyone who has the card", next: next)]
        }
        return [.ok(part, "no problems in \(Self.boot)")]
    }

    /// The last accepted batch, on the monotonic clock; nil if unknown or the wall clock is behind.
    private var lastUpload: BootInstant? {
        let now = clock.stamp()
        guard let last = lastSuccess, !isAhead(last, of: now.wall) else { return nil }
        return now.boot - .milliseconds(now.wall.milliseconds - last.milliseconds)
    }

    private var lastSuccess: WallTime? { input.report?.upload.lastSuccessAt }

    /// Returns whether a date is in the future: without an RTC, the time is unknown after a boot.
    private func isAhead(_ date: WallTime, of now: WallTime) -> Bool {
        date.milliseconds - now.milliseconds > 60_000
    }

    private func lies(_ file: CardFile) -> Bool {
        files.names(in: Self.boot).filter(file.isNamed).contains { name in
            guard let text = files.text("\(Self.boot)/\(name)") else { return false }
            do {
                return try CardSecret.find(in: text, of: file) != nil
            } catch {
                // An invalid file may be a secret all the same.
                return true
            }
        }
    }

    // MARK: Supply

    /// Bits of the firmware's flags: the current state, and 16 bits higher the one since boot.
    private enum Throttled {
        static let underVoltage: UInt32 = 1
        static let slowed: UInt32 = 1 << 1 | 1 << 2 | 1 << 3
        static let since: UInt32 = 16
    }

    private var power: [Finding] {
        let next = "a supply and a cable made for this board; fewer devices on its USB ports"
        guard let flags = files.firmwareFlags else {
            guard let alarm = files.voltageAlarm else { return [] }
            return [
                alarm
                    ? .fail("power", "the voltage of the supply is or was too low", next: next)
                    : .ok("power", "no alarm of the supply's voltage")
            ]
        }
        if flags & Throttled.underVoltage != 0 {
            return [.fail("power", "the voltage of the supply is too low now", next: next)]
        }
        if flags & (Throttled.underVoltage << Throttled.since) != 0 {
            let what = "the voltage of the supply was too low since the boot"
            return [.warn("power", what, next: next)]
        }
        if flags & (Throttled.slowed | Throttled.slowed << Throttled.since) != 0 {
            let what = "the board was slowed down since the boot, for its temperature"
            return [.warn("power", what, next: "give it air and shade")]
        }
        return [.ok("power", "the voltage of the supply was never too low since the boot")]
    }

    // MARK: Temperature

    /// Checks the temperature: a Raspberry Pi slows down at 80 °C.
    private var temperature: Finding? {
        guard let hottest = files.millidegrees.map({ $0 / 1000 }) else { return nil }
        let next = "give it air and shade; a heat sink"
        if hottest >= 80 {
            return .fail("temperature", "\(hottest) °C: the processor is slowed down", next: next)
        }
        return hottest >= 70
            ? .warn("temperature", "\(hottest) °C, slowed down from 80 on", next: next)
            : .ok("temperature", "\(hottest) °C")
    }

    // MARK: Uploads

    /// Checks the last upload in the gateway's report.
    ///
    /// Records that wait for the first sync, or for a set clock, are not a failure.
    private var upload: Finding? {
        guard let report = input.report, report.daemon.running == true,
            let target = input.configuration.upload.target
        else { return nil }
        let pending = report.pending
        let waiting = "\(counted(pending, "record")) \(pending == 1 ? "waits" : "wait")"
        let next = "`waypost sync` tries now, and says what fails"
        guard let last = lastSuccess else {
            return pending == 0
                ? nil
                : .warn("upload", "nothing was uploaded to \(target) yet; \(waiting)", next: next)
        }
        guard !isAhead(last, of: clock.wall()) else {
            let what = "the last successful one was \(last.rfc3339), later than this clock's time"
            return pending == 0 ? nil : .warn("upload", "\(what); \(waiting)", next: next)
        }
        let seconds = max(0, (clock.wall().milliseconds - last.milliseconds) / 1000)
        let late = 3 * input.configuration.upload.interval.milliseconds / 1000
        let message = "the last successful one was \(span(Int(seconds))) ago; \(waiting)"
        guard pending > 0, seconds > max(late, 600) else { return .ok("upload", message) }
        return seconds > 86_400
            ? .fail("upload", message, next: next) : .warn("upload", message, next: next)
    }
}
