// Starts and ends a scan with HCI commands.
import Host

/// Receives the events that arrive while a command waits for its answer.
typealias EventSink = (ArraySlice<UInt8>) -> Void

/// A running scan on a controller.
struct Scanner {
    private static let answerTimeout = Duration.seconds(5)
    private static let endTimeout = Duration.milliseconds(300)

    private let link: any HCILink
    /// Whether the scan uses the extended commands.
    let isExtended: Bool
    /// Whether the controller was already scanning.
    let foundRunning: Bool

    /// Sets the controller up and starts scanning.
    ///
    /// With `resets`, first resets a controller that is exclusively ours. Throws an error that
    /// names the failed command.
    init(
        _ link: any HCILink,
        _ settings: ScanSettings,
        resets: Bool = true,
        until stop: StopSignal,
        _ pass: EventSink = { _ in }
    ) throws {
        self.link = link
        let dialogue = Dialogue(link: link, stop: stop, timeout: Self.answerTimeout)
        if link.isExclusive, resets {
            try dialogue.expectSuccess(HCI.reset, pass)
            try dialogue.expectSuccess(HCI.setEventMask, pass)
            try dialogue.expectSuccess(HCI.setLEEventMask, pass)
        }
        (isExtended, foundRunning) = try Self.start(settings, dialogue, pass)
    }

    /// Starts with extended commands if supported, else legacy ones.
    ///
    /// If the controller rejects them as unknown or disallowed, tries the other set.
    private static func start(
        _ settings: ScanSettings,
        _ dialogue: Dialogue,
        _ pass: EventSink
    ) throws -> (isExtended: Bool, foundRunning: Bool) {
        let fitting = try supportsExtended(dialogue, pass)
        do {
            return (fitting, try start(settings, dialogue, isExtended: fitting, pass))
        } catch let refusal as ScanError where refusal.concernsTheCommand {
            do {
                return (!fitting, try start(settings, dialogue, isExtended: !fitting, pass))
            } catch is ScanError {
                throw refusal
            }
        }
    }

    /// Starts a scan; returns true if one was running, whose parameters cannot be changed (Vol 4,
    /// Part E, 7.8.10 and 7.8.64).
    private static func start(
        _ settings: ScanSettings,
        _ dialogue: Dialogue,
        isExtended: Bool,
        _ pass: EventSink
    ) throws -> Bool {
        let parameters =
            isExtended ? HCI.setExtendedScanParameters(settings) : HCI.setScanParameters(settings)
        let status = try dialogue.ask(parameters, pass).status
        guard status == 0 || status == HCI.commandDisallowed else {
            throw ScanError(command: parameters.name, status: status)
        }
        // Disable first, because enabling a running scan has no effect. Some controllers reject
        // disabling a scan that is off.
        let off = enable(false, isExtended)
        try dialogue.expectSuccess(off, tolerating: HCI.commandDisallowed, pass)
        if status != 0 { try dialogue.expectSuccess(parameters, pass) }
        try dialogue.expectSuccess(enable(true, isExtended), pass)
        return status != 0
    }

    /// Ends the scan; ignores errors, as the controller may be gone.
    ///
    /// Waits briefly for the answer: closing a TCP socket at once could discard the command.
    func end(_ pass: EventSink = { _ in }) {
        let dialogue = Dialogue(link: link, stop: nil, timeout: Self.endTimeout)
        _ = try? dialogue.ask(Self.enable(false, isExtended), pass)
    }

    private static func enable(_ isOn: Bool, _ isExtended: Bool) -> HCI.Command {
        isExtended ? HCI.setExtendedScanEnable(isOn) : HCI.setScanEnable(isOn)
    }

    /// Returns whether the controller has extended scanning.
    ///
    /// Supported commands, octet 37, bits 5 and 6, and LE features, bit 12 (Vol 4, Part E, 6.27;
    /// Vol 6, Part B, 4.6): some radios claim Bluetooth 5 without extended scanning.
    private static func supportsExtended(
        _ dialogue: Dialogue,
        _ pass: EventSink
    ) throws -> Bool {
        let commands = try dialogue.ask(HCI.readLocalSupportedCommands, pass)
        guard commands.status == 0, commands.values.count > 37,
            commands.values[commands.values.startIndex + 37] & 0x60 == 0x60
        else { return false }
        let features = try dialogue.ask(HCI.readLocalFeatures, pass)
        // If the features cannot be read, the commands decide.
        guard features.status == 0, features.values.count > 1 else { return true }
        return features.values[features.values.startIndex + 1] & 0x10 != 0
    }
}

/// A command that the controller answered with an error (Core Specification, Vol 1, Part F).
struct ScanError: Error, CustomStringConvertible {
    var command: String
    var status: UInt8

    /// The status is "unknown command" or "command disallowed".
    var concernsTheCommand: Bool { status == 0x01 || status == HCI.commandDisallowed }

    var description: String {
        "the controller refused \(command) with status 0x\(hex([status]))"
    }
}

/// A command that the controller did not answer in time.
struct NoAnswerError: Error, CustomStringConvertible {
    var command: String

    var description: String { "the controller did not answer \(command)" }
}

/// Sends commands and waits for their answers.
private struct Dialogue {
    let link: any HCILink
    /// Ends the wait; nil during shutdown, when it is already raised.
    let stop: StopSignal?
    let timeout: Duration

    func expectSuccess(
        _ command: HCI.Command,
        tolerating tolerated: UInt8 = 0,
        _ pass: EventSink
    ) throws {
        let status = try ask(command, pass).status
        guard status == 0 || status == tolerated else {
            throw ScanError(command: command.name, status: status)
        }
    }

    /// Sends a command and waits for its Command Complete or Command Status (7.7.14, 7.7.15).
    func ask(_ command: HCI.Command, _ pass: EventSink) throws -> HCI.Answer {
        try link.send(command)
        let clock = SystemClock()
        let deadline = clock.now() + timeout
        var isStopped: Bool { stop?.isRaised ?? false }
        while clock.now() < deadline, !isStopped {
            while !isStopped, clock.now() < deadline, let event = try link.receive() {
                if let answer = HCI.Answer(event), answer.opcode == command.opcode {
                    return answer
                }
                pass(event)
            }
            var entries = [PollEntry(link.descriptor)]
            if let stop { entries.append(PollEntry(stop.descriptor)) }
            _ = wait(for: &entries, timeout: deadline - clock.now())
        }
        throw NoAnswerError(command: command.name)
    }
}
