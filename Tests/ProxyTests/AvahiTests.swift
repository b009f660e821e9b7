// The announcement by mDNS, against a bus that this test plays byte by byte.
import CLinux
import Foundation
import Host
import Support
import Testing

@testable import Proxy

/// A message from the bus; each value is a text.
private func message(
    _ kind: DBusMessage.Kind,
    fields: [(UInt8, String, String)] = [],
    replyTo: UInt32? = nil,
    body values: [String] = []
) -> [UInt8] {
    var (header, body, message) = (DBusWriter(), DBusWriter(), DBusWriter())
    for value in values { body.add(value) }
    for (code, type, text) in fields {
        header.align(8)
        header.add(byte: code)
        header.add(signature: type)
        header.add(text)
    }
    if let replyTo {
        header.align(8)
        header.add(byte: 5)
        header.add(signature: "u")
        header.add(replyTo)
    }
    message.append([UInt8(ascii: "l"), kind.rawValue, 0, 1])
    message.add(UInt32(body.bytes.count))
    message.add(UInt32(7))
    message.add(UInt32(header.bytes.count))
    message.append(header.bytes)
    message.align(8)
    return message.bytes + body.bytes
}

@Suite struct AvahiTests {
    private let folder = TemporaryFolder()
    private let identity = ProxyIdentity(name: "roof", area: nil, deviceID: "a", version: "1")

    @Test func service_isAnnounced_onceAvahiIsThere() throws {
        let path = folder.path + "/bus"
        var announcement = AvahiAnnouncement(identity, port: 6053, bus: path)
        announcement.check()
        let absent = try #require(announcement.problem)
        #expect(absent.contains("D-Bus is not running"))
        #expect(absent.hasSuffix("add ESPHome with this device's address and port 6053"))

        let listener = try UnixListener(path: path, name: "bus", waiting: 1)
        announcement.check()
        var accepted: Int32 = -1
        #expect(listener.acceptAll { accepted = $0 })
        let bus = accepted
        let sent = {
            var bytes = [UInt8](repeating: 0, count: 4096)
            let count = read(bus, &bytes, bytes.count)
            return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
        }
        func says(_ bytes: [UInt8]) {
            #expect(write(bus, bytes, bytes.count) == bytes.count)
            announcement.receive()
        }
        let user = String(geteuid()).utf8.map { hex([$0]) }.joined()
        #expect(sent() == "\0AUTH EXTERNAL \(user)\r\n")
        says(Array("OK 1234\r\n".utf8))
        let introduction = sent()
        for text in ["BEGIN\r\n", "Hello", "NameOwnerChanged", "EntryGroupNew"] {
            #expect(introduction.contains(text))
        }
        says(message(.error, fields: [(4, "s", "org.freedesktop.DBus.Error.X")], replyTo: 3))
        #expect(announcement.problem?.contains("Avahi is not running") == true)

        // Avahi starts; the message comes in two pieces.
        let (driver, entries) = ("org.freedesktop.DBus", "org.freedesktop.Avahi.EntryGroup")
        func signal(_ member: String, from sender: String, _ path: String, _ interface: String)
            -> [(UInt8, String, String)]
        {
            [(1, "o", path), (2, "s", interface), (3, "s", member), (7, "s", sender)]
        }
        let news = message(
            .signal,
            fields: signal("NameOwnerChanged", from: driver, "/org/freedesktop/DBus", driver),
            body: ["org.freedesktop.Avahi", "", ":1.5"]
        )
        says(Array(news.prefix(20)))
        says(Array(news.dropFirst(20)))
        #expect(sent().contains("EntryGroupNew"))
        // The same from a local user.
        says(
            message(
                .signal,
                fields: signal("NameOwnerChanged", from: ":1.9", "/org/freedesktop/DBus", driver),
                body: ["org.freedesktop.Avahi", "", ":1.9"]
            )
        )
        let group = "/Client0/EntryGroup1"
        says(message(.answer, fields: [(7, "s", ":1.5")], replyTo: 3, body: [group]))
        let service = sent()
        #expect(!service.contains("EntryGroupNew"))
        for text in [
            "AddService", "/Client0/EntryGroup1", "_esphomelib._tcp", "Commit", "iiussssqaay",
            "mac=\(identity.macDigits)", "api_encryption=\(NoiseHandshake.protocolName)",
        ] {
            #expect(service.contains(text), "\(text)")
        }
        says(message(.answer, replyTo: 4) + message(.answer, replyTo: 5))
        #expect(announcement.problem == nil)

        for forged in [
            signal("StateChanged", from: ":1.9", group, entries),
            signal("StateChanged", from: ":1.5", "/Client0/EntryGroup2", entries),
            signal("StateChanged", from: ":1.5", group, "org.freedesktop.Avahi.Server"),
        ] {
            says(message(.signal, fields: forged, body: ["xxx"]))
            #expect(announcement.problem == nil)
        }
        // The length of this text is the number of the state.
        let collision = signal("StateChanged", from: ":1.5", group, entries)
        says(message(.signal, fields: collision, body: ["xxx"]))
        #expect(announcement.problem?.contains("is called roof; set proxy.name") == true)
        close(bus)
        announcement.receive()
        #expect(announcement.problem?.contains("connection to D-Bus has ended") == true)
        #expect(announcement.entry.descriptor == -1)
    }

    @Test func bytesThatAreNoMessages_endTheConnection() throws {
        let path = folder.path + "/bus"
        let listener = try UnixListener(path: path, name: "bus", waiting: 1)
        var announcement = AvahiAnnouncement(identity, port: 6053, bus: path)
        announcement.check()
        var bus: Int32 = -1
        #expect(listener.acceptAll { bus = $0 })
        let bytes = Array("OK\r\n".utf8)
        #expect(write(bus, bytes, bytes.count) == bytes.count)
        announcement.receive()
        #expect(announcement.problem?.contains("does not accept this user") == true)
        close(bus)
    }

    @Test func busAddress_isTheEnvironmentsOne() {
        #expect(AvahiAnnouncement.bus([:]) == "/run/dbus/system_bus_socket")
        let address = ["DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/x/bus,guid=1"]
        #expect(AvahiAnnouncement.bus(address) == "/x/bus")
    }
}
