// The announcement by mDNS, on a bus of its own with an Avahi that this test plays.
import CSystemd
import Foundation
import Host
import Support
import Testing

@testable import Proxy

private let avahiName = "org.freedesktop.Avahi"
private let entryGroup = "\(avahiName).EntryGroup"
private let group = "/Client0/EntryGroup1"

private func code(_ type: Unicode.Scalar) -> CChar { CChar(type.value) }

/// A program on the bus: Avahi, once it has that name, or a local user.
private final class BusClient {
    private(set) var calls: [String] = []
    /// The texts of the last call of AddService.
    private(set) var service: [String] = []
    private var caller = ""
    private var bus: OpaquePointer?

    init(_ address: String) throws {
        try #require(sd_bus_new(&bus) >= 0 && sd_bus_set_address(bus, address) >= 0)
        try #require(sd_bus_set_bus_client(bus, 1) >= 0 && sd_bus_start(bus) >= 0)
        let data = Unmanaged.passUnretained(self).toOpaque()
        sd_bus_add_filter(
            bus,
            nil,
            { message, data, _ in
                data.map {
                    Unmanaged<BusClient>.fromOpaque($0).takeUnretainedValue().answer(message)
                } ?? 0
            },
            data
        )
    }

    deinit { leave() }

    func leave() {
        sd_bus_close(bus)
        bus = sd_bus_unref(bus)
    }

    func process() { while sd_bus_process(bus, nil) > 0 {} }

    func becomeAvahi() { #expect(sd_bus_request_name(bus, avahiName, 0) >= 0) }

    /// Returns once the bus has passed on all signals before.
    func roundTrip() { sd_bus_release_name(bus, "org.example.None") }

    private func answer(_ message: OpaquePointer?) -> Int32 {
        guard sd_bus_message_is_method_call(message, nil, nil) > 0,
            let member = sd_bus_message_get_member(message).map({ String(cString: $0) })
        else { return 0 }
        calls.append(member)
        caller = sd_bus_message_get_sender(message).map { String(cString: $0) } ?? ""
        if member == "AddService" { service = texts(message) }
        var answer: OpaquePointer?
        sd_bus_message_new_method_return(message, &answer)
        if member == "EntryGroupNew" { sd_bus_message_append_basic(answer, code("o"), group) }
        sd_bus_send(bus, answer, nil)
        sd_bus_message_unref(answer)
        return 1
    }

    /// Returns the texts in the arguments of AddService; empty if they are of other types.
    private func texts(_ message: OpaquePointer?) -> [String] {
        guard sd_bus_message_has_signature(message, "iiussssqaay") > 0 else { return [] }
        sd_bus_message_skip(message, "iiu")
        var texts: [String] = []
        var text: UnsafePointer<CChar>?
        for _ in 0..<4 where sd_bus_message_read_basic(message, code("s"), &text) > 0 {
            texts.append(text.map { String(cString: $0) } ?? "")
        }
        var port: UInt16 = 0
        sd_bus_message_read_basic(message, code("q"), &port)
        texts.append("\(port)")
        sd_bus_message_enter_container(message, code("a"), "ay")
        var (bytes, count) = (UnsafeRawPointer?.none, 0)
        while sd_bus_message_read_array(message, code("y"), &bytes, &count) > 0 {
            texts.append(
                String(decoding: UnsafeRawBufferPointer(start: bytes, count: count), as: UTF8.self)
            )
        }
        return texts
    }

    /// Sends a signal to the announcement, with a number or texts in it.
    func signal(
        _ member: String,
        _ path: String,
        _ interface: String,
        to caller: String? = nil,
        state: Int32? = nil,
        texts: [String] = []
    ) {
        var signal: OpaquePointer?
        sd_bus_message_new_signal(bus, &signal, path, interface, member)
        if var state { sd_bus_message_append_basic(signal, code("i"), &state) }
        for text in texts { sd_bus_message_append_basic(signal, code("s"), text) }
        sd_bus_send_to(bus, signal, caller ?? self.caller, nil)
        sd_bus_message_unref(signal)
        roundTrip()
    }

    var announcer: String { caller }
}

@Suite(.enabled(if: Tree.hasTool("dbus-daemon"), "dbus-daemon is not here: package dbus-daemon"))
struct AvahiTests {
    private let folder = TemporaryFolder()
    private let identity = ProxyIdentity(name: "roof", area: nil, deviceID: "a", version: "1")

    private var address: String { "unix:path=\(folder.path)/bus" }

    private func startBus() throws -> Process {
        let configuration = """
            <busconfig><listen>\(address)</listen><policy context="default">
            <allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/>
            </policy></busconfig>
            """
        let path = folder.path + "/bus.conf"
        try Data(configuration.utf8).write(to: URL(fileURLWithPath: path))
        let bus = try Process.started(
            Tree.tool("dbus-daemon"),
            ["--config-file=\(path)", "--nofork", "--nopidfile"]
        )
        try waitUntil("the bus") {
            FileManager.default.fileExists(atPath: folder.path + "/bus")
        }
        return bus
    }

    @Test func service_isAnnounced_onceAvahiIsThere() throws {
        let announcement = AvahiAnnouncement(identity, port: 6053, bus: address)
        announcement.check()
        let absent = try #require(announcement.problem)
        #expect(absent.contains("D-Bus is not running"))
        #expect(absent.hasSuffix("add ESPHome with this device's address and port 6053"))
        #expect(announcement.entry.descriptor == -1)

        let bus = try startBus()
        defer { bus.killAndWait() }
        var service: BusClient?
        let stop = try StopSignal()
        /// One turn of the proxy's loop.
        func turn() {
            var entries = [announcement.entry]
            _ = stop.wait(for: &entries, timeout: .milliseconds(10))
            if entries[0].isReady { announcement.receive() }
        }
        func problem(_ text: String) throws {
            try waitUntil(text) {
                if announcement.entry.descriptor == -1 { announcement.check() }
                turn()
                service?.process()
                return announcement.problem?.contains(text) == true
            }
        }
        try problem("Avahi is not running")

        let avahi = try BusClient(address)
        service = avahi
        avahi.becomeAvahi()
        try waitUntil("the announcement") {
            avahi.process()
            turn()
            return announcement.problem == nil
        }
        #expect(avahi.calls == ["EntryGroupNew", "AddService", "Commit"])
        #expect(avahi.service.prefix(5) == ["roof", "_esphomelib._tcp", "", "", "6053"])
        for text in [
            "mac=\(identity.macDigits)", "api_encryption=\(NoiseHandshake.protocolName)",
        ] {
            #expect(avahi.service.contains(text), "\(text)")
        }

        try sendForgeries(avahi)
        announcement.receive()
        #expect(announcement.problem == nil)

        avahi.signal("StateChanged", group, entryGroup, state: 3, texts: [""])
        try problem("is called roof; set proxy.name")
        #expect(avahi.calls.count == 3)
        service = nil
        avahi.leave()
        try problem("Avahi is not running")
        bus.killAndWait()
        try waitUntil("the end of the bus") {
            announcement.receive()
            return announcement.entry.descriptor == -1
        }
        #expect(announcement.problem?.contains("connection to D-Bus has ended") == true)
    }

    /// Signals of a local user, and signals of Avahi about something else.
    private func sendForgeries(_ service: BusClient) throws {
        let user = try BusClient(address)
        let (driver, to) = ("org.freedesktop.DBus", service.announcer)
        user.signal("StateChanged", group, entryGroup, to: to, state: 3, texts: [""])
        user.signal(
            "NameOwnerChanged",
            "/org/freedesktop/DBus",
            driver,
            to: to,
            texts: [avahiName, "", ":1.9"]
        )
        service.signal("StateChanged", "/Client0/EntryGroup2", entryGroup, state: 3, texts: [""])
        service.signal("StateChanged", group, "\(avahiName).Server", state: 3, texts: [""])
    }

    @Test func busAddress_isTheEnvironmentsOne() {
        #expect(AvahiAnnouncement.bus([:]) == "unix:path=/run/dbus/system_bus_socket")
        let address = ["DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/x/bus,guid=1"]
        #expect(AvahiAnnouncement.bus(address) == "unix:path=/x/bus,guid=1")
    }
}
