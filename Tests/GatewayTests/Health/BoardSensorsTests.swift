// The kernel's figures of a board, with any content of its files.
import Foundation
import Host
import Records
import Status
import Support
import Testing

@Suite struct BoardSensorsTests {
    private let temporary = TemporaryFolder()

    private func put(_ path: String, _ bytes: [UInt8]) throws {
        let place = URL(fileURLWithPath: temporary.path + path)
        try FileManager.default.createDirectory(
            at: place.deletingLastPathComponent(),
            withIntermediateDirectories: true
        )
        try Data(bytes).write(to: place)
    }

    private func put(_ path: String, _ text: String) throws { try put(path, Array(text.utf8)) }

    private var files: SystemFiles { SystemFiles(root: temporary.path) }
    private var readings: BoardReadings { BoardReadings(files) }

    @Test func boardWithoutFiles_reportsNothing() {
        #expect(readings == BoardReadings())
        #expect(files.undervoltage == nil)
    }

    /// The files of a Raspberry Pi 4.
    @Test func raspberryPi_reportsEverything() throws {
        try put("/sys/class/thermal/thermal_zone0/type", "cpu-thermal\n")
        try put("/sys/class/thermal/thermal_zone0/temp", "48686\n")
        try put("/sys/class/thermal/thermal_zone1/type", "iwlwifi_1\n")
        try put("/sys/class/thermal/thermal_zone1/temp", "61000\n")
        try put("/proc/loadavg", "1.07 0.58 0.59 1/389 12345\n")
        try put(
            "/proc/meminfo",
            "MemTotal:  3884480 kB\nMemFree: 1 kB\nMemAvailable:  3456789 kB\n"
        )
        try put(
            "/proc/net/wireless",
            """
            Inter-| sta-|   Quality        |   Discarded packets               | Missed | WE
             face | tus | link level noise |  nwid  crypt   frag  retry   misc | beacon | 22
             wlan0: 0000   54.  -56.  -256        0      0      0      0    122        0

            """
        )
        var expected = BoardReadings()
        expected.cpuDecidegrees = 487
        expected.loadHundredths = 107
        expected.availableBytes = 3_456_789 * 1024
        expected.wifiRSSI = -56
        #expect(readings == expected)
    }

    @Test func winter_isRoundedAwayFromZero() throws {
        try put("/sys/class/thermal/thermal_zone0/temp", "-12360\n")
        #expect(readings.cpuDecidegrees == -124)
    }

    @Test(arguments: [("0", false), ("1", true), ("50000", true), ("0x80008", false)])
    func firmwareFlags_sayWhetherTheSupplyWasTooLow(flags: String, isLow: Bool) throws {
        try put("/sys/devices/platform/soc/soc:firmware/get_throttled", flags + "\n")
        #expect(files.undervoltage == isLow)
        // The kernel's alarm is newer than the firmware's file.
        try put("/sys/class/hwmon/hwmon0/name", "rpi_volt\n")
        try put("/sys/class/hwmon/hwmon0/in0_lcrit_alarm", isLow ? "0\n" : "1\n")
        #expect(files.undervoltage == !isLow)
    }

    @Test(arguments: [
        "", "\n", "nan", "inf", "-1", "1e400", "99999999999999999999", ": : :", "wlan0: 0 1 -1000",
        "wlan0:", "MemAvailable: -5 kB", "MemAvailable: 9223372036854775807 kB", "\0\0\0",
        "ffffffffff",
    ])
    func hostileContents_areNotReported(text: String) throws {
        for path in [
            "/sys/class/thermal/thermal_zone0/temp", "/sys/class/thermal/thermal_zone0/type",
            "/proc/loadavg", "/proc/meminfo", "/proc/net/wireless",
        ] {
            try put(path, text)
        }
        var found = readings
        // -1 is a temperature of 0.0 degrees.
        if text == "-1" { found.cpuDecidegrees = nil }
        #expect(found == BoardReadings())
        for size in [1, 70_000] {
            try put("/proc/net/wireless", Array(repeating: 0xff, count: size))
            #expect(readings.wifiRSSI == nil)
        }
    }
}
