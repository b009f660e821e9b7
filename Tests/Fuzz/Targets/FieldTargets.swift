// Fuzz targets for cards and sticks, schedules, detectors, and names that devices choose.
import Configuration
import Foundation
import FuzzSupport
import Host
import Records
import Support

@testable import Audio
@testable import Field
@testable import HTTP
@testable import Listen
@testable import Schedule
@testable import Setup

enum FieldTargets {
    static let all = [
        FuzzTarget(name: "card", run: card), FuzzTarget(name: "schedule", run: schedule),
        FuzzTarget(name: "device-name", run: deviceName),
        FuzzTarget(name: "sound-cards", run: soundCards),
        FuzzTarget(name: "listen-header", run: header),
        FuzzTarget(name: "detector-line", run: detection),
    ]

    /// The first byte selects the file.
    ///
    /// Checks that text has no line end but a line feed, and that a secret fits one header.
    private static func card(_ input: [UInt8]) {
        guard let first = input.first else { return }
        let file = CardFile.allCases[Int(first) % CardFile.allCases.count]
        let bytes = Array(input.dropFirst())
        do throws(CardError) {
            let text = try CardText.decode(bytes)
            precondition(!text.utf8.contains { $0 == 13 || $0 == 0 })
            guard file != .configuration else {
                _ = try? Configuration.check(Array(text.utf8), file: "w.toml", environment: [:])
                return
            }
            guard let secret = try CardSecret.find(in: text, of: file) else { return }
            precondition(file == .keys || secret.utf8.allSatisfy { $0 > 32 && $0 < 127 })
            let bound = BoundSecret(Array(BoundSecret.text(secret, for: "https://a:443").utf8))
            precondition(bound.server == "https://a:443")
        } catch {
            precondition(error.what.utf8.count < 500 && error.remedy.utf8.count < 500)
        }
        let over = CardSecret.overwriting(bytes.count)
        precondition(over.count == bytes.count)
    }

    /// Checks that an accepted window reads back the same, and that its spans are in order.
    private static func schedule(_ input: [UInt8]) {
        let parts = input.split(separator: 10, omittingEmptySubsequences: false)
        let texts = parts.map { String(decoding: $0, as: UTF8.self) }
        let windows = texts.prefix(4).compactMap { try? ScheduleWindow.parse($0).get() }
        for window in windows {
            let again = "\(window.opens.text)..\(window.closes.text)"
            precondition((try? ScheduleWindow.parse(again).get()) == window, again)
        }
        let duty = texts.last.flatMap { try? DutyCycle.parse($0).get() }
        let position = texts.last.flatMap { SitePosition($0) }
        let plan = Schedule(windows: windows, duty: duty, offset: input.count % 1440 - 720)
        let from = WallTime(milliseconds: 1_795_000_000_000)
        let spans = plan.spans(from: from, to: from + .days(2), position)
        precondition(spans.allSatisfy { $0.from <= $0.to })
        precondition(zip(spans, spans.dropFirst()).allSatisfy { $0.to <= $1.from })
        _ = plan.state(at: from, position: position)
    }

    /// Checks that nothing that libasound would evaluate is allowed: it runs commands in names.
    private static func deviceName(_ input: [UInt8]) {
        let name = String(decoding: input, as: UTF8.self)
        guard DeviceName.isAllowed(name) else { return }
        let slave = DeviceName.slave(of: name) ?? name
        precondition(!slave.utf8.contains { "|/{}\"'`$()\\ \n".utf8.contains($0) }, slave)
        precondition(name.utf8.allSatisfy { $0 > 32 && $0 < 127 })
    }

    /// Checks what cards, whose names a plugged-in device chooses, look like to `devices`.
    ///
    /// The lines are: /proc/asound/cards up to an empty line, the card's id, the owner's status.
    private static func soundCards(_ input: [UInt8]) {
        let folder = TemporaryFolder()
        let parts = input.split(separator: 0, maxSplits: 2, omittingEmptySubsequences: false)
        do {
            let card = folder.path + "/proc/asound/card0"
            try FileManager.default.createDirectory(
                atPath: card + "/pcm0c/sub0",
                withIntermediateDirectories: true
            )
            let files = ["/proc/asound/cards", "/proc/asound/card0/id"]
            for (path, bytes) in zip(files + ["/proc/asound/card0/pcm0c/sub0/status"], parts) {
                try Data(bytes).write(to: URL(fileURLWithPath: folder.path + path))
            }
        } catch {
            fatalError("\(error)")
        }
        let cards = AudioCards(root: folder.path)
        if let name = cards.onlyCapture(), DeviceName.isAllowed(name) {
            precondition(!name.utf8.contains { $0 <= 32 || $0 >= 127 }, name)
        }
        for name in ["hw:0,0", "hw:CARD=a", "usb-1-1"] { _ = cards.owner(of: name) }
    }

    private static func header(_ input: [UInt8]) {
        guard let header = try? AudioHeader(line: input) else { return }
        precondition(header.bytes >= 0 && header.bytes <= AudioHeader.blockLimit)
        precondition(header.start != nil && header.lost >= 0 && header.rate > 0)
    }

    /// Checks that what becomes a line for the intake is one line.
    private static func detection(_ input: [UInt8]) {
        let segment = AudioSegment(
            rate: 16_000,
            start: AudioTime(nanoseconds: 1_795_000_000_000_000_000),
            boot: BootInstant(nanoseconds: 1_000_000_000),
            isSynced: input.count % 2 == 0,
            device: "d1",
            place: [],
            samples: [Int16](repeating: 0, count: 48_000)
        )
        guard let line = try? DetectionLine.request(input, stream: "birds", of: segment) else {
            return
        }
        precondition(line.last == 10 && !line.dropLast().contains(10))
    }
}
