// Announces the proxy by mDNS, through Avahi's D-Bus interface (org.freedesktop.Avahi).
import Glibc
import Host

/// A service `_esphomelib._tcp` in Avahi; it lasts as long as this connection to the bus.
///
/// Never blocks: every call is sent without waiting for its answer. Used by the proxy's thread.
package struct AvahiAnnouncement {
    /// Returns the socket of the system's bus; `$DBUS_SYSTEM_BUS_ADDRESS` may name another one.
    package static func bus(_ environment: [String: String]) -> String {
        let (address, prefix) = (environment["DBUS_SYSTEM_BUS_ADDRESS"] ?? "", "unix:path=")
        guard address.hasPrefix(prefix) else { return "/run/dbus/system_bus_socket" }
        return String(address.dropFirst(prefix.count).prefix { $0 != "," && $0 != ";" })
    }

    private static let avahi = "org.freedesktop.Avahi"
    private static let driver = "org.freedesktop.DBus"
    private static let driverPath = "/org/freedesktop/DBus"

    /// A call, which its number identifies in the answer.
    private enum Call: UInt32 {
        case hello = 1, match, newGroup, addService, commit

        var member: String {
            switch self {
            case .hello: "Hello"
            case .match: "AddMatch"
            case .newGroup: "EntryGroupNew"
            case .addService: "AddService"
            case .commit: "Commit"
            }
        }
    }

    private let identity: ProxyIdentity
    private let port: UInt16
    private let path: String
    private var socket: DBusSocket?
    private var isAuthenticated = false
    /// The announcement in Avahi, and Avahi's unique name on the bus; nil while there is none.
    private var group: (path: String, owner: String)?
    /// Why the service is not announced, with the remedy; nil if it is, or that is not known yet.
    private(set) var problem: String?

    /// `bus`: the socket of the system's bus.
    init(_ identity: ProxyIdentity, port: UInt16, bus: String) {
        (self.identity, self.port, path) = (identity, port, bus)
    }

    var entry: PollEntry {
        guard let socket else { return PollEntry(-1) }
        return PollEntry(
            socket.number,
            PollEntry.readable | (socket.hasOutput ? PollEntry.writable : 0)
        )
    }

    /// Connects if that is still to do; called from time to time.
    mutating func check() {
        guard socket == nil else { return }
        (isAuthenticated, group) = (false, nil)
        guard let socket = DBusSocket(path) else { return fail("D-Bus is not running") }
        self.socket = socket
        // Authentication by the user id that the kernel tells the bus ("Authentication Protocol").
        socket.send([0] + "AUTH EXTERNAL \(hex(String(geteuid()).utf8))\r\n".utf8)
    }

    /// Reads what the bus has sent.
    mutating func receive() {
        guard let socket else { return }
        guard socket.receive() else { return drop("the connection to D-Bus has ended") }
        if !isAuthenticated {
            guard let line = socket.nextLine() else {
                if socket.isMalformed { drop("D-Bus does not answer as it should") }
                return
            }
            guard line.starts(with: "OK ".utf8) else {
                return drop("D-Bus does not accept this user")
            }
            isAuthenticated = true
            introduce(socket)
        }
        while let message = socket.nextMessage() { handle(message, socket) }
        if socket.isMalformed { drop("D-Bus does not answer as it should") }
    }

    /// Ends the connection; `check` makes another one.
    private mutating func drop(_ why: String) {
        socket = nil
        fail(why)
    }

    private func introduce(_ socket: DBusSocket) {
        socket.send("BEGIN\r\n".utf8)
        socket.send(Self.message(.hello))
        var rule = DBusWriter()
        rule.add(
            "type='signal',sender='\(Self.driver)',member='NameOwnerChanged',arg0='\(Self.avahi)'"
        )
        socket.send(Self.message(.match, "s", rule.bytes))
        socket.send(Self.message(.newGroup))
    }

    private mutating func handle(_ message: DBusMessage, _ socket: DBusSocket) {
        var body = DBusReader(message.body)
        switch (message.kind, message.replyTo.flatMap(Call.init(rawValue:))) {
        case (.answer, .newGroup):
            guard let path = body.text() else { return }
            group = (path, message.sender)
            socket.send(addService(path))
            socket.send(Self.message(.commit, of: path))
        case (.answer, .commit): problem = nil
        case (.error, .newGroup): fail("Avahi is not running")
        case (.error, let call?):
            fail("Avahi refuses it (\(call): \(printable(message.errorName)))")
        // Anyone on the bus can send a signal to anyone; only the bus passes on the sender's name.
        case (.signal, _)
        where message.member == "NameOwnerChanged" && message.interface == Self.driver
            && message.sender == Self.driver && message.path == Self.driverPath
            && body.text() == Self.avahi:
            _ = body.text()
            group = nil
            if body.text()?.isEmpty == false {
                socket.send(Self.message(.newGroup))
            } else {
                fail("Avahi is not running")
            }
        // State 3: another device has the name.
        case (.signal, _)
        where message.member == "StateChanged" && message.interface == "\(Self.avahi).EntryGroup"
            && group.map { $0 == (message.path, message.sender) } ?? false && body.number() == 3:
            fail("another device in this network is called \(identity.name); set proxy.name")
        default: break
        }
    }

    private mutating func fail(_ why: String) {
        problem =
            "not announced by mDNS: \(why) (package avahi-daemon); in Home Assistant add ESPHome with "
            + "this device's address and port \(port)"
    }

    // MARK: Calls

    /// Returns a call to the bus, to Avahi's server, or to the entry group `group`.
    private static func message(
        _ call: Call,
        of group: String = "",
        _ signature: String = "",
        _ body: [UInt8] = []
    ) -> [UInt8] {
        let (name, path, interface) =
            switch call {
            case .hello, .match: (driver, driverPath, driver)
            case .newGroup: (avahi, "/", "\(avahi).Server")
            case .addService, .commit: (avahi, group, "\(avahi).EntryGroup")
            }
        return DBusMessage.call(
            call.rawValue,
            name,
            path,
            call.member,
            interface: interface,
            signature: signature,
            body: body
        )
    }

    private func addService(_ group: String) -> [UInt8] {
        var body = DBusWriter()
        // On all interfaces, by IPv4 and IPv6, under the machine's own host name.
        body.add(Int32(-1))
        body.add(Int32(-1))
        body.add(UInt32(0))
        for text in [identity.name, "_esphomelib._tcp", "", ""] { body.add(text) }
        body.add(port)
        body.add(list: records)
        return Self.message(.addService, of: group, "iiussssqaay", body.bytes)
    }

    /// The TXT records that Home Assistant reads, as an ESPHome device has them.
    private var records: [String] {
        [
            "friendly_name=\(identity.name)", "version=\(ProxyIdentity.esphomeVersion)",
            "mac=\(identity.macDigits)", "platform=Linux", "board=waypost", "network=ethernet",
            "api_encryption=\(NoiseHandshake.protocolName)", "project_name=Waypost.Gateway",
            "project_version=\(identity.version)",
        ]
    }
}

/// A connection to a bus, with bounded buffers.
private final class DBusSocket {
    private let socket: Descriptor
    private var input: [UInt8] = []
    private var output: [UInt8] = []
    private(set) var isMalformed = false

    /// Returns nil if nobody listens there.
    init?(_ path: String) {
        guard let socket = UnixSocket.connectAtOnce(to: path) else { return nil }
        self.socket = socket
    }

    var number: Int32 { socket.number }
    var hasOutput: Bool { !output.isEmpty }

    func send(_ bytes: some Sequence<UInt8>) {
        output += bytes
        flush()
    }

    private func flush() {
        guard !output.isEmpty else { return }
        let flags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
        let count = Glibc.send(number, output, output.count, flags)
        if count > 0 { output.removeFirst(count) }
    }

    /// Reads once; returns false if the connection has ended.
    func receive() -> Bool {
        flush()
        return withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { buffer in
            let count = recv(number, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
            let code = errno
            if count > 0 { input += buffer[..<count] }
            return count > 0 || (count < 0 && (code == EAGAIN || code == EINTR))
        }
    }

    /// Returns the next line of the authentication.
    func nextLine() -> [UInt8]? {
        guard let end = input.firstIndex(of: 10) else {
            isMalformed = input.count > 1024
            return nil
        }
        defer { input.removeFirst(end + 1) }
        return Array(input[..<end])
    }

    func nextMessage() -> DBusMessage? {
        switch DBusMessage.parse(input[...]) {
        case .incomplete: return nil
        case .malformed:
            isMalformed = true
            return nil
        case .message(let message, let bytes):
            input.removeFirst(bytes)
            return message
        }
    }
}
