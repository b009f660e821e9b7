// The links: H4 in pieces over a socket, one packet a read, and a machine without Bluetooth.
import CBlueZ
import CLinux
import Foundation
import Glibc
import Host
import Support
import Testing

@testable import Beacons

/// Two connected sockets; the other end is ours.
struct SocketPair: ~Copyable {
    let near: Int32
    let far: Descriptor

    init(_ type: __socket_type) throws {
        var ends: [Int32] = [-1, -1]
        let flags = Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, Int32(type.rawValue) | flags, 0, &ends) == 0 else {
            throw SystemError.last("socketpair")
        }
        near = ends[0]
        far = Descriptor(owning: ends[1])
    }

    func write(_ bytes: [UInt8]) {
        #expect(send(far.number, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count)
    }

    func read() -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = recv(far.number, &bytes, bytes.count, Int32(MSG_DONTWAIT))
        return Array(bytes.prefix(max(0, count)))
    }

    func close() { shutdown(far.number, Int32(SHUT_RDWR)) }
}

@Suite struct LinkTests {
    private let event = Event.legacy(Event.legacyReport(Sample.iBeacon))

    @Test func h4_putsPiecesTogether_whereverTheyAreCut() throws {
        for cut in 1..<event.count {
            let pair = try SocketPair(SOCK_STREAM)
            let link = H4Link(owning: pair.near, name: "h4:test")
            pair.write(Array(([4] + event).prefix(cut)))
            #expect(try link.receive() == nil)
            pair.write(Array(([4] + event).dropFirst(cut)) + [4, 0x10])
            #expect(try link.receive().map { Array($0) } == event)
            pair.write([1, 0x42])
            #expect(try link.receive().map { Array($0) } == [0x10, 1, 0x42])
            #expect(try link.receive() == nil)
        }
    }

    @Test func h4_passesOverOtherPackets() throws {
        let pair = try SocketPair(SOCK_STREAM)
        let link = H4Link(owning: pair.near, name: "h4:test")
        let others: [UInt8] = [2, 1, 0, 3, 0, 4, 4, 4, 3, 1, 0, 2, 4, 4, 5, 1, 0, 1, 0, 4, 4]
        pair.write(others + event)
        #expect(try link.receive().map { Array($0) } == event)
    }

    @Test func h4_goesOnAfterBytesThatAreNoPacketType() throws {
        let pair = try SocketPair(SOCK_STREAM)
        let link = H4Link(owning: pair.near, name: "h4:test")
        pair.write([0, 0xFF, 0x80] + [4] + event)
        #expect(try link.receive().map { Array($0) } == event)
    }

    @Test func h4_closedByTheController_isAFailure() throws {
        let pair = try SocketPair(SOCK_STREAM)
        let link = H4Link(owning: pair.near, name: "h4:test")
        pair.close()
        #expect(throws: Failure("h4:test: the controller closed the connection")) {
            try link.receive()
        }
        #expect(throws: SystemError.self) { try link.send(HCI.reset) }
    }

    @Test func h4_countsWhatItLost() throws {
        let pair = try SocketPair(SOCK_STREAM)
        let link = H4Link(owning: pair.near, name: "h4:test")
        var bytes: [UInt8] = [0, 0xFF, 0x80, 4]
        bytes += event
        bytes += [0xFF, 4]
        bytes += event.dropLast(3)
        pair.write(bytes)
        #expect(try link.receive() != nil)
        #expect(try link.receive() == nil)
        // Two runs of bytes that were no packet; the last packet may still be completed.
        #expect(link.losses == 2)
        pair.close()
        #expect(throws: Failure.self) { try link.receive() }
        #expect(link.losses == 3)
        #expect(throws: Failure.self) { try link.receive() }
        #expect(link.losses == 3)
    }

    /// As much as was asked for where the rights are there, else what the system allows; never what is the default.
    @Test func kernel_givesALargeBuffer() throws {
        let pair = try SocketPair(SOCK_SEQPACKET)
        var before: Int32 = 0
        var size = socklen_t(4)
        getsockopt(pair.near, SOL_SOCKET, SO_RCVBUF, &before, &size)
        let link = KernelLink(owning: pair.near, name: "hci9")
        #expect(link.room >= Int(before))
        if geteuid() == 0 { #expect(link.room >= 4 << 20) }
    }

    @Test func h4_survivesNoise() throws {
        var generator = SeededRandom(seed: 9)
        let pair = try SocketPair(SOCK_STREAM)
        let link = H4Link(owning: pair.near, name: "h4:test")
        var parser = ReportParser()
        for _ in 0..<2000 {
            pair.write(generator.bytes(Int.random(in: 1...400, using: &generator)))
            while let event = try link.receive() { _ = parser.parse(event) }
        }
    }

    @Test func kernel_takesOnePacketARead() throws {
        let pair = try SocketPair(SOCK_SEQPACKET)
        let link = KernelLink(owning: pair.near, name: "hci9")
        #expect(try link.receive() == nil)
        pair.write([4] + event)
        pair.write([4, 0x10, 1, 0x42])
        #expect(try link.receive().map { Array($0) } == event)
        #expect(try link.receive().map { Array($0) } == [0x10, 1, 0x42])
        #expect(try link.receive() == nil)
        try link.send(HCI.setScanEnable(true))
        #expect(pair.read() == [1, 0x0C, 0x20, 2, 1, 0])
        pair.close()
        #expect(throws: NoAdapterError.self) { try link.receive() }
    }

    @Test func otherProcessCommand_isSkipped_butEffectIsReported() throws {
        let pair = try SocketPair(SOCK_SEQPACKET)
        let link = KernelLink(owning: pair.near, name: "hci9")
        pair.write(bytes("01 0C20 02 0101"))
        pair.write([4] + event)
        #expect(try link.receive().map { Array($0) } == event)
        #expect(link.takeForeignOrder() == .on(filtersDuplicates: true))
        #expect(link.takeForeignOrder() == nil)
        pair.write(bytes("01 4220 06 000000000000"))
        pair.write(bytes("01 0110 00"))
        #expect(try link.receive() == nil)
        #expect(link.takeForeignOrder() == .off)
    }

    /// A datagram socket that is not read counts what it drops, as an HCI socket does.
    @Test func drops_areCountedByTheKernel() throws {
        let receiver = Descriptor(owning: socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        var small: Int32 = 4096
        setsockopt(receiver.number, SOL_SOCKET, SO_RCVBUF, &small, socklen_t(4))
        withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                #expect(bind(receiver.number, $0, size) == 0)
                #expect(getsockname(receiver.number, $0, &size) == 0)
            }
        }
        #expect(KernelLink.drops(of: receiver.number) == 0)
        let sent = 200
        for _ in 0..<sent {
            withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    let count = sendto(receiver.number, event, event.count, 0, $0, size)
                    #expect(count == event.count)
                }
            }
        }
        var received = 0
        var buffer = [UInt8](repeating: 0, count: 512)
        while recv(receiver.number, &buffer, buffer.count, Int32(MSG_DONTWAIT)) > 0 {
            received += 1
        }
        #expect(received < sent)
        #expect(KernelLink.drops(of: receiver.number) == sent - received)
    }

    /// No machine has adapter 999; the message says which of the causes applies.
    @Test func kernel_withoutTheAdapter_saysWhatToDo() {
        let words = [
            "no such Bluetooth adapter", "this kernel has no Bluetooth", "CAP_NET_RAW",
        ]
        do {
            _ = try KernelLink(adapter: 999, life: Heartbeat())
            Issue.record("hci999 was opened")
        } catch let failure as Failure {
            #expect((failure.code == .permission) == failure.message.contains("CAP_NET_RAW"))
            #expect(failure.message.hasPrefix("hci999: "))
            #expect(words.contains { failure.message.contains($0) })
        } catch {
            #expect("\(error)".hasPrefix("hci999: no such Bluetooth adapter; plug it in"))
        }
    }

    @Test func timing_isInUnitsOf625Microseconds_withinItsRange() {
        var scan = ScanSettings()
        #expect(scan.timing == [0xA0, 0x00, 0x50, 0x00])
        scan.interval = .seconds(3600)
        scan.window = .zero
        #expect(scan.timing == [0x00, 0x40, 0x04, 0x00])
    }
}
