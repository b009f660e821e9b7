// Lists the present sound cards, their permanent names, and the programs that use them.
import CALSA
import Glibc
import Host

/// A present capture device.
package struct AudioDevice: Sendable, Equatable {
    /// The name for `audio.device`: unchanged by restarts and by other cards that come and go.
    package var name: String
    /// The manufacturer's name.
    package var title: String
    /// The card's current number, and the PCM's number on the card.
    package var card: Int
    package var pcm: Int
    /// A USB device's port: `usb-1-1.3`.
    package var port: String?
    /// Frames per second that the hardware supports; empty if another program holds it.
    package var rates: [Int]
    /// The program that holds the device, if any.
    package var owner: String?
}

/// Finds cards in `/proc/asound`, `/sys/class/sound` and `/dev/snd`.
package struct AudioCards: Sendable {
    private let files: SystemFiles

    /// `root` replaces `/` in tests.
    package init(root: String = "") {
        files = SystemFiles(root: root)
    }

    /// The folder in which device files appear.
    var deviceFolder: String { files.root + "/dev" }

    /// Returns the ALSA name of a configured device.
    ///
    /// Looks up a USB port (`usb-1-1.3`); any other name is libasound's own. Throws a `Failure`
    /// with the device's name if the port is empty.
    func pcmName(of device: String) throws -> String {
        if let slave = DeviceName.slave(of: device) {
            return DeviceName.plugged(try pcmName(of: slave))
        }
        guard device.hasPrefix("usb-") else { return device }
        guard let card = cards().first(where: { port(of: $0) == device }) else {
            throw missing(device, "nothing is plugged into this port")
        }
        return try hardware(card, device)
    }

    private func hardware(_ card: Int, _ device: String) throws -> String {
        guard let pcm = capturePCMs(of: card).first else {
            throw missing(device, "card \(card) does not capture")
        }
        return "hw:\(card),\(pcm)"
    }

    private func missing(_ device: String, _ why: String) -> Failure {
        Failure("\(device): \(why); plug it in, or choose one that `waypost devices` lists")
    }

    /// Returns the permanent name of the only card that captures; nil if there is none or a choice.
    func onlyCapture() -> String? {
        let capturing = cards().filter { !capturePCMs(of: $0).isEmpty }
        guard capturing.count == 1, let card = capturing.first,
            let pcm = capturePCMs(of: card).first
        else { return nil }
        return name(of: card, pcm)
    }

    /// Returns every capture device of every card.
    package func devices() -> [AudioDevice] {
        cards().flatMap { card in
            capturePCMs(of: card).map { pcm in
                AudioDevice(
                    name: name(of: card, pcm),
                    title: title(of: card),
                    card: card,
                    pcm: pcm,
                    port: port(of: card),
                    rates: Self.rates(of: "hw:\(card),\(pcm)"),
                    owner: owner(card: card, pcm: pcm)
                )
            }
        }
    }

    /// Returns the name by the card's id, or by port if a twin exists: ids of twins (`Mic`,
    /// `Mic_1`) swap.
    private func name(of card: Int, _ pcm: Int) -> String {
        let twins = cards().filter {
            title(of: $0, isBrief: true) == title(of: card, isBrief: true)
        }
        if twins.count > 1, pcm == 0, let port = port(of: card) { return port }
        let id = files.text("/proc/asound/card\(card)/id") ?? "\(card)"
        return "hw:CARD=\(id)" + (pcm == 0 ? "" : ",DEV=\(pcm)")
    }

    /// Returns the program that holds the hardware behind an ALSA name, if /proc/asound shows it.
    func owner(of name: String) -> String? {
        guard let colon = name.firstIndex(of: ":"), name[..<colon].hasSuffix("hw") else {
            return nil
        }
        let parts = name[name.index(after: colon)...].split(separator: ",")
        guard let first = parts.first else { return nil }
        let wanted = first.hasPrefix("CARD=") ? String(first.dropFirst(5)) : String(first)
        let found = cards().first {
            "\($0)" == wanted || files.text("/proc/asound/card\($0)/id") == wanted
        }
        guard let found else { return nil }
        let pcm = parts.dropFirst().first.flatMap { Int($0.drop { $0 < "0" || $0 > "9" }) }
        return owner(card: found, pcm: pcm ?? 0)
    }

    private func owner(card: Int, pcm: Int) -> String? {
        let status = files.text("/proc/asound/card\(card)/pcm\(pcm)c/sub0/status") ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("owner_pid") }
        guard let digits = line?.split(separator: ":").last,
            let pid = Int32(String(digits.filter { $0 >= "0" && $0 <= "9" })), pid > 0
        else { return nil }
        // Other users' processes may be hidden from us.
        guard let program = files.text("/proc/\(pid)/comm") else { return "process \(pid)" }
        return "\(program) (process \(pid))"
    }

    /// Returns the cards' numbers, in order.
    private func cards() -> [Int] {
        files.names(in: "/proc/asound").compactMap { Self.number(after: "card", in: $0) }.sorted()
    }

    private func capturePCMs(of card: Int) -> [Int] {
        files.names(in: "/proc/asound/card\(card)").compactMap { name in
            guard name.hasSuffix("c") else { return nil }
            return Self.number(after: "pcm", in: String(name.dropLast()))
        }.sorted()
    }

    /// Returns the card's long or short name in `/proc/asound/cards`.
    ///
    /// A line with number, id, driver and short name precedes one with the long name.
    private func title(of card: Int, isBrief: Bool = false) -> String {
        let lines = (files.text("/proc/asound/cards") ?? "").split(separator: "\n")
        let at = lines.firstIndex { $0.drop { $0 == " " }.hasPrefix("\(card) [") }
        guard let at, at + 1 < lines.endIndex else { return "card \(card)" }
        if isBrief { return String(lines[at].drop { $0 != "]" }) }
        return String(lines[at + 1].drop { $0 == " " })
    }

    /// Returns the card's USB port: the last part of its path that looks like one.
    private func port(of card: Int) -> String? {
        guard let path = files.target("/sys/class/sound/card\(card)") else { return nil }
        let parts = path.split(separator: "/")
        guard let usb = parts.firstIndex(where: { $0.hasPrefix("usb") }) else { return nil }
        let ports = parts[(usb + 1)...].prefix { !$0.contains(":") && $0.contains("-") }
        return ports.last.map { "usb-\($0)" }
    }

    /// Returns the usual rates that a device supports; empty if it cannot be opened.
    private static func rates(of name: String) -> [Int] {
        waypost_alsa_silence()
        var handle: OpaquePointer?
        guard snd_pcm_open(&handle, name, SND_PCM_STREAM_CAPTURE, Int32(SND_PCM_NONBLOCK)) >= 0
        else { return [] }
        defer { snd_pcm_close(handle) }
        var parameters: OpaquePointer?
        snd_pcm_hw_params_malloc(&parameters)
        defer { snd_pcm_hw_params_free(parameters) }
        guard snd_pcm_hw_params_any(handle, parameters) >= 0 else { return [] }
        return [
            8000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 88_200, 96_000, 192_000, 250_000,
            384_000,
        ]
        .filter { snd_pcm_hw_params_test_rate(handle, parameters, UInt32($0), 0) == 0 }
    }

    private static func number(after prefix: String, in text: String) -> Int? {
        guard let at = text.split(separator: "/").last, at.hasPrefix(prefix) else { return nil }
        return Int(at.dropFirst(prefix.count))
    }
}
