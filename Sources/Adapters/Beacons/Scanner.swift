// Setting up a scan with real commands, and ending it.
internal import Host

/// A scan that runs on a controller.
struct Scanner {
    private static let answerTimeout = Duration.seconds(5)
    private static let endTimeout = Duration.milliseconds(300)

    private let link: any HCILink
    /// Uses the extended commands.
    let isExtended: Bool

    /// Sets the controller up and starts scanning.
    ///
    /// Throws an error naming the command that failed. Events that come meanwhile are passed over.
    init(_ link: any HCILink, _ settings: ScanSettings, until stop: StopSignal) throws {
        self.link = link
        var dialogue = Dialogue(link: link, stop: stop, timeout: Self.answerTimeout)
        if link.isExclusive {
            try dialogue.expectSuccess(HCI.reset)
            try dialogue.expectSuccess(HCI.setEventMask)
            try dialogue.expectSuccess(HCI.setLEEventMask)
        }
        isExtended = try Self.start(settings, &dialogue)
    }

    /// Starts with the commands that fit, and with the other kind if those are refused as unknown or, by
    /// a controller that has been used with the other kind, as not allowed; true for the extended ones.
    private static func start(
        _ settings: ScanSettings,
        _ dialogue: inout Dialogue
    ) throws -> Bool {
        let fitting = try supportsExtended(&dialogue)
        do {
            try start(settings, dialogue, isExtended: fitting)
            return fitting
        } catch let refusal as Refusal where refusal.concernsTheCommand {
            do {
                try start(settings, dialogue, isExtended: !fitting)
            } catch is Refusal {
                throw refusal
            }
            return !fitting
        }
    }

    private static func start(
        _ settings: ScanSettings,
        _ dialogue: Dialogue,
        isExtended: Bool
    ) throws {
        // Someone may have left a scan running, and its parameters cannot be changed then.
        try dialogue.expectSuccess(enable(false, isExtended), tolerating: HCI.commandDisallowed)
        try dialogue.expectSuccess(
            isExtended ? HCI.setExtendedScanParameters(settings) : HCI.setScanParameters(settings)
        )
        try dialogue.expectSuccess(enable(true, isExtended))
    }

    /// Ends the scan; a controller that is gone is no matter.
    ///
    /// Waits shortly for the answer: closing a TCP socket at once could take the command back.
    func end() {
        let dialogue = Dialogue(link: link, stop: nil, timeout: Self.endTimeout)
        _ = try? dialogue.ask(Self.enable(false, isExtended))
    }

    private static func enable(_ isOn: Bool, _ isExtended: Bool) -> HCI.Command {
        isExtended ? HCI.setExtendedScanEnable(isOn) : HCI.setScanEnable(isOn)
    }

    /// Octet 37, bits 5 and 6 of the supported commands (Vol 4, Part E, 6.27): some radios claim
    /// Bluetooth 5 and have no extended scanning, so the commands themselves are asked for.
    private static func supportsExtended(_ dialogue: inout Dialogue) throws -> Bool {
        let answer = try dialogue.ask(HCI.readLocalSupportedCommands)
        guard answer.status == 0, answer.values.count > 37 else { return false }
        return answer.values[answer.values.startIndex + 37] & 0x60 == 0x60
    }
}

/// A command that the controller answered with an error (Core Specification, Vol 1, Part F).
struct Refusal: Error, CustomStringConvertible {
    var command: String
    var status: UInt8

    /// Unknown command, or not allowed now.
    var concernsTheCommand: Bool { status == 0x01 || status == HCI.commandDisallowed }

    var description: String {
        "the controller refused \(command) with status 0x\(hex([status]))"
    }
}

/// A command that the controller did not answer in time.
struct NoAnswer: Error, CustomStringConvertible {
    var command: String

    var description: String { "the controller did not answer \(command)" }
}

/// Commands and their answers.
private struct Dialogue {
    let link: any HCILink
    /// Ends the waiting; nil when it has been raised already.
    let stop: StopSignal?
    let timeout: Duration

    func expectSuccess(_ command: HCI.Command, tolerating tolerated: UInt8 = 0) throws {
        let status = try ask(command).status
        guard status == 0 || status == tolerated else {
            throw Refusal(command: command.name, status: status)
        }
    }

    /// Sends a command and waits for its Command Complete or Command Status (7.7.14, 7.7.15).
    func ask(_ command: HCI.Command) throws -> (status: UInt8, values: ArraySlice<UInt8>) {
        try link.send(command)
        let clock = SystemClock()
        let deadline = clock.now() + timeout
        var isStopped: Bool { stop?.isRaised ?? false }
        while clock.now() < deadline, !isStopped {
            while !isStopped, clock.now() < deadline, let event = try link.receive() {
                if let answer = Self.answer(event, to: command.opcode) { return answer }
            }
            var entries = [PollEntry(link.descriptor)]
            if let stop { entries.append(PollEntry(stop.descriptor)) }
            _ = wait(for: &entries, timeout: deadline - clock.now())
        }
        throw NoAnswer(command: command.name)
    }

    private static func answer(
        _ event: ArraySlice<UInt8>,
        to opcode: UInt16
    ) -> (status: UInt8, values: ArraySlice<UInt8>)? {
        var cursor = ByteCursor(event)
        guard let code = cursor.byte(), cursor.byte() != nil else { return nil }
        switch code {
        case HCI.commandComplete:
            guard cursor.byte() != nil, cursor.littleEndian(2) == UInt64(opcode),
                let status = cursor.byte()
            else { return nil }
            return (status, cursor.rest)
        case HCI.commandStatus:
            guard let status = cursor.byte(), cursor.byte() != nil,
                cursor.littleEndian(2) == UInt64(opcode)
            else { return nil }
            return (status, [])
        default:
            return nil
        }
    }
}
