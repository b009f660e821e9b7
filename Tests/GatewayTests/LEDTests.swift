// The board's LED: its pattern for each state, and that only LED files are written.
import Configuration
import Foundation
import Host
import Support
import Testing

import Daemon
import Setup
import Status

@Suite struct LEDTests {
    /// A board whose LED has these triggers.
    private func board(_ name: String = "ACT") throws -> TemporaryFolder {
        let folder = TemporaryFolder("sys/class/leds/\(name)", "run")
        try folder.write("none [mmc0] timer heartbeat\n", to: "sys/class/leds/\(name)/trigger")
        for file in ["delay_on", "delay_off"] {
            try folder.write("500\n", to: "sys/class/leds/\(name)/\(file)")
        }
        return folder
    }

    @Test func states_areFourPatternsThatDiffer() {
        #expect(LEDPattern(.healthy, isEnrolled: true) == .healthy)
        #expect(LEDPattern(.degraded, isEnrolled: true) == .degraded)
        #expect(LEDPattern(.critical, isEnrolled: false) == .critical)
        #expect(LEDPattern(.degraded, isEnrolled: false) == .notEnrolled)
        #expect(LEDPattern(.healthy, isEnrolled: false) == .notEnrolled)
        let delays = LEDPattern.allCases.map { "\($0.delays)" }
        #expect(Set(delays).count == 4)
    }

    @Test(arguments: ["ACT", "led0"])
    func pattern_isBlinkedByTheKernel(_ name: String) throws {
        let board = try board(name)
        for pattern in LEDPattern.allCases {
            try BoardLED("auto", root: board.path)?.show(pattern)
            let text = { (file: String) in try board.read("sys/class/leds/\(name)/\(file)") }
            #expect(try text("trigger") == "timer")
            #expect(try text("delay_on") == "\(pattern.delays.on)")
            #expect(try text("delay_off") == "\(pattern.delays.off)")
        }
    }

    @Test func boardWithoutAnLED_andANameThatIsNone_areLeftAlone() throws {
        let board = try board("input3::capslock")
        #expect(BoardLED("auto", root: board.path) == nil)
        #expect(BoardLED("led7", root: board.path) == nil)
        try board.write("secret", to: "run/trigger")
        for name in ["../../run", "..", ".", "", "a/b"] {
            #expect(BoardLED(name, root: board.path) == nil)
            #expect(!LEDName.isName(name))
        }
        try BoardLED("input3::capslock", root: board.path)?.show(.critical)
        #expect(try board.read("sys/class/leds/input3::capslock/trigger") == "timer")
    }

    @Test func switchedOff_theLEDShowsTheCardAgain() throws {
        let board = try board()
        let trigger = "sys/class/leds/ACT/trigger"
        // Not the gateway's pattern: left unchanged.
        try BoardLED("auto", root: board.path)?.leave()
        #expect(try board.read(trigger) == "none [mmc0] timer heartbeat\n")
        try board.write("none mmc0 [timer] heartbeat\n", to: trigger)
        try BoardLED("auto", root: board.path)?.leave()
        #expect(try board.read(trigger) == "mmc0")
    }

    /// A reload with another `led.name`: the old LED must not go on showing a healthy state.
    @Test(arguments: ["PWR", "off", "led7"])
    func ledOfBefore_isLeft_andOthersThatBlinkAreNot(_ name: String) throws {
        let board = try board()
        for (led, on, off) in [("ACT", 60, 2940), ("PWR", 500, 500), ("modem", 250, 250)] {
            for (file, text) in [
                ("trigger", "none mmc0 [timer]"), ("delay_on", "\(on)"), ("delay_off", "\(off)"),
            ] {
                let folder = "\(board.path)/sys/class/leds/\(led)"
                try FileManager.default.createDirectory(
                    atPath: folder,
                    withIntermediateDirectories: true
                )
                try board.write(text + "\n", to: "sys/class/leds/\(led)/\(file)")
            }
        }
        let file = LEDFile(runtimeDirectory: board.path + "/run")
        file.write(.critical, name)
        try file.show(root: board.path)
        let trigger = { (led: String) in try board.read("sys/class/leds/\(led)/trigger") }
        #expect(try trigger("ACT") == "mmc0")
        #expect(try trigger("PWR") == (name == "PWR" ? "timer" : "none mmc0 [timer]\n"))
        #expect(try trigger("modem") == "none mmc0 [timer]\n")
    }

    @Test func ledFile_isWrittenOnChange_andSaysTheGatewayEnded() throws {
        let folder = TemporaryFolder("run")
        let file = LEDFile(runtimeDirectory: folder.path + "/run")
        #expect(file.read() == nil)
        file.stopped()
        #expect(file.read()?.pattern == .critical)
        #expect(file.read()?.name == "auto")
        file.write(.healthy, "off")
        let inode = {
            try FileManager.default.attributesOfItem(atPath: folder.path + "/run/led")[
                .systemFileNumber
            ] as? Int
        }
        let before = try inode()
        file.write(.healthy, "off")
        #expect(try inode() == before)
        file.stopped()
        #expect(file.read()?.name == "off")
        for text in ["", "healthy", "healthy ../x", "well ACT", "healthy ACT more"] {
            try folder.write(text, to: "run/led")
            #expect(file.read() == nil)
        }
    }

    /// Writing the last file blocks until it is read: the gateway ends in the meantime, and no unit
    /// starts for that.
    @Test func changeWhileTheOneBeforeIsShown_isShownToo() throws {
        let board = try board()
        let last = board.path + "/sys/class/leds/ACT/delay_off"
        try FileManager.default.removeItem(atPath: last)
        #expect(mkfifo(last, 0o600) == 0)
        let file = LEDFile(runtimeDirectory: board.path + "/run")
        file.write(.healthy, "auto")
        let hasEnded = Locked(false)
        let thread = try OwnThread("led") {
            try? file.show(root: board.path)
            hasEnded.update { $0 = true }
        }
        let delay = { try board.read("sys/class/leds/ACT/delay_on") }
        try waitUntil("the first is shown") { try delay() == "\(LEDPattern.healthy.delays.on)" }
        file.stopped()
        let reader = open(last, O_RDONLY | O_NONBLOCK)
        defer { close(reader) }
        try waitUntil("its end") { hasEnded.value }
        #expect(try delay() == "\(LEDPattern.critical.delays.on)")
        thread.join()
    }

    @Test func key_namesAnLED_orOff() throws {
        let check = { (value: String) throws in
            try Configuration.check(
                Array("[led]\nname = \"\(value)\"".utf8),
                file: "x",
                environment: [:]
            ).values.led
        }
        #expect(try check("off") == "off")
        #expect(try check("mmc0::") == "mmc0::")
        #expect(throws: (any Error).self) { try check("../x") }
    }
}
