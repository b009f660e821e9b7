// Announces the proxy by mDNS, through Avahi's D-Bus interface (org.freedesktop.Avahi).
import CSystemd
import Host

/// A service `_esphomelib._tcp` in Avahi; it lasts as long as this connection to the bus.
///
/// Never blocks: no call waits for its answer. Used by the proxy's thread.
package final class AvahiAnnouncement {
    /// Returns the address of the system's bus; `$DBUS_SYSTEM_BUS_ADDRESS` may name another one.
    package static func bus(_ environment: [String: String]) -> String {
        environment["DBUS_SYSTEM_BUS_ADDRESS"] ?? "unix:path=/run/dbus/system_bus_socket"
    }

    private static let avahi = "org.freedesktop.Avahi"
    private static let driver = "org.freedesktop.DBus"

    private let identity: ProxyIdentity
    private let port: UInt16
    private let address: String
    private var bus: OpaquePointer?
    /// The subscription to Avahi's starts and stops.
    private var owners: OpaquePointer?
    /// The subscription to the states of the announcement in Avahi; nil while there is none.
    private var states: OpaquePointer?
    /// Why the service is not announced, with the remedy; nil if it is, or that is not known yet.
    private(set) var problem: String?

    /// `bus`: the address of the system's bus.
    init(_ identity: ProxyIdentity, port: UInt16, bus: String) {
        (self.identity, self.port, address) = (identity, port, bus)
    }

    deinit { close() }

    // MARK: The connection

    var entry: PollEntry {
        guard let bus else { return PollEntry(-1) }
        return PollEntry(sd_bus_get_fd(bus), Int16(truncatingIfNeeded: sd_bus_get_events(bus)))
    }

    /// Connects if that is still to do; called from time to time.
    func check() {
        guard bus == nil else { return receive() }
        guard sd_bus_new(&bus) >= 0, sd_bus_set_address(bus, address) >= 0,
            sd_bus_set_bus_client(bus, 1) >= 0, sd_bus_start(bus) >= 0
        else {
            close()
            return fail("D-Bus is not running")
        }
        let driver = Self.driver
        let news = "sender='\(driver)',path='/org/freedesktop/DBus',interface='\(driver)'"
        owners = match("\(news),member='NameOwnerChanged',arg0='\(Self.avahi)'") {
            signal,
            data,
            _ in
            AvahiAnnouncement.at(data)?.ownerChanged(signal)
            return 0
        }
        makeGroup()
    }

    /// Handles what the bus has sent.
    func receive() {
        guard bus != nil else { return }
        var count: Int32 = 1
        while count > 0 { count = sd_bus_process(bus, nil) }
        guard count < 0 else { return }
        close()
        fail("the connection to D-Bus has ended")
    }

    private func close() {
        (owners, states) = (sd_bus_slot_unref(owners), sd_bus_slot_unref(states))
        sd_bus_close(bus)
        bus = sd_bus_unref(bus)
    }

    private func fail(_ why: String) {
        problem =
            "not announced by mDNS: \(why) (package avahi-daemon); in Home Assistant add ESPHome with "
            + "this device's address and port \(port)"
    }

    // MARK: The announcement

    private func ownerChanged(_ signal: OpaquePointer?) {
        // Any local user can send a signal, and sd-bus compares the sender of a rule only if it is
        // a unique name.
        guard let sender = sd_bus_message_get_sender(signal), String(cString: sender) == Self.driver
        else { return }
        let (_, _, owner) = (text(signal), text(signal), text(signal))
        states = sd_bus_slot_unref(states)
        if owner?.isEmpty == false { makeGroup() } else { fail("Avahi is not running") }
    }

    private func makeGroup() {
        call("/", "Server", "EntryGroupNew") { answer, data, _ in
            AvahiAnnouncement.at(data)?.announce(answer)
            return 0
        }
    }

    /// Announces the service in the group that Avahi's answer names.
    private func announce(_ answer: OpaquePointer?) {
        guard sd_bus_message_get_error(answer) == nil, let group = text(answer, "o"),
            let owner = sd_bus_message_get_sender(answer)
        else { return fail("Avahi is not running") }
        sd_bus_slot_unref(states)
        let sender = "sender='\(String(cString: owner))',path='\(group)'"
        states = match(
            "\(sender),interface='\(Self.avahi).EntryGroup',member='StateChanged'"
        ) { signal, data, _ in
            AvahiAnnouncement.at(data)?.stateChanged(signal)
            return 0
        }
        call(group, "EntryGroup", "AddService", fill: describe) { answer, data, _ in
            _ = AvahiAnnouncement.at(data)?.accepts("AddService", answer)
            return 0
        }
        call(group, "EntryGroup", "Commit") { answer, data, _ in
            if let announcement = AvahiAnnouncement.at(data),
                announcement.accepts("Commit", answer)
            {
                announcement.problem = nil
            }
            return 0
        }
    }

    private func accepts(_ call: String, _ answer: OpaquePointer?) -> Bool {
        guard let error = sd_bus_message_get_error(answer) else { return true }
        let name = error.pointee.name.map { printable(String(cString: $0)) } ?? ""
        fail("Avahi refuses it (\(call): \(name))")
        return false
    }

    private func stateChanged(_ signal: OpaquePointer?) {
        var state: Int32 = 0
        // State 3: another device has the name.
        guard sd_bus_message_read_basic(signal, code("i"), &state) > 0, state == 3 else { return }
        fail("another device in this network is called \(identity.name); set proxy.name")
    }

    /// Adds the arguments of AddService, `iiussssqaay`.
    private func describe(_ message: OpaquePointer?) {
        // On all interfaces, by IPv4 and IPv6, under the machine's own host name.
        var (any, flags, port) = (Int32(-1), UInt32(0), port)
        sd_bus_message_append_basic(message, code("i"), &any)
        sd_bus_message_append_basic(message, code("i"), &any)
        sd_bus_message_append_basic(message, code("u"), &flags)
        for text in [identity.name, "_esphomelib._tcp", "", ""] {
            sd_bus_message_append_basic(message, code("s"), text)
        }
        sd_bus_message_append_basic(message, code("q"), &port)
        sd_bus_message_open_container(message, code("a"), "ay")
        for record in records {
            sd_bus_message_append_array(message, code("y"), record, record.utf8.count)
        }
        sd_bus_message_close_container(message)
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

    // MARK: sd-bus

    /// The object that a handler is called for: it closes the bus before it goes.
    private static func at(_ data: UnsafeMutableRawPointer?) -> AvahiAnnouncement? {
        data.map { Unmanaged<AvahiAnnouncement>.fromOpaque($0).takeUnretainedValue() }
    }

    private var data: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

    /// Calls a method of Avahi, without waiting for the answer.
    private func call(
        _ path: String,
        _ interface: String,
        _ member: String,
        fill: (OpaquePointer?) -> Void = { _ in },
        answer: sd_bus_message_handler_t
    ) {
        let (avahi, interface) = (Self.avahi, "\(Self.avahi).\(interface)")
        var message: OpaquePointer?
        sd_bus_message_new_method_call(bus, &message, avahi, path, interface, member)
        defer { sd_bus_message_unref(message) }
        // No automatic start of a service that somebody has switched off.
        sd_bus_message_set_auto_start(message, 0)
        fill(message)
        // Without a limit: the end of Avahi comes as an error or a signal.
        sd_bus_call_async(bus, nil, message, answer, data, .max)
    }

    /// Subscribes to signals; returns the subscription.
    private func match(_ rule: String, _ handler: sd_bus_message_handler_t) -> OpaquePointer? {
        var slot: OpaquePointer?
        sd_bus_add_match_async(bus, &slot, "type='signal',\(rule)", handler, nil, data)
        return slot
    }

    private func text(_ message: OpaquePointer?, _ type: Unicode.Scalar = "s") -> String? {
        var text: UnsafePointer<CChar>?
        guard sd_bus_message_read_basic(message, code(type), &text) > 0 else { return nil }
        return text.map { String(cString: $0) }
    }

    private func code(_ type: Unicode.Scalar) -> CChar { CChar(type.value) }
}
