// Names the programs that listen on a TCP port.
import Glibc

extension SystemError {
    /// The reason why bind(2) failed, with the programs that have the port.
    package func reason(atPort port: UInt16) -> String {
        reason + (code == EADDRINUSE ? SystemFiles().portHolders(port) : "")
    }
}

extension SystemFiles {
    /// Returns " by PROGRAM (process PID)", to append to "Address already in use".
    ///
    /// Everyone may read which user owns a socket, but only root sees the processes of other users.
    /// Without the process, the text names the user and the command that shows it.
    package func portHolders(_ port: UInt16) -> String {
        var sockets = listeners(on: port)
        var holders: [String] = []
        // A server has a lower number than its workers, which share its socket.
        for process in names(in: "/proc").compactMap({ Int($0) }).sorted() {
            let open = names(in: "/proc/\(process)/fd").compactMap {
                target("/proc/\(process)/fd/\($0)")
            }
            let count = open.count { sockets.removeValue(forKey: $0) != nil }
            guard count > 0 else { continue }
            let program = target("/proc/\(process)/exe")?.split(separator: "/").last ?? "a program"
            holders.append("\(String(program).plainWords(atMost: 60)) (process \(process))")
        }
        holders += Set(sockets.values).sorted().map { "a program of user \(userName($0))" }
        let isKnown = sockets.isEmpty && !holders.isEmpty
        return (holders.isEmpty ? "" : " by \(holders.joined(separator: " and "))")
            + (isKnown ? "" : "; run: sudo ss -ltnp sport = :\(port)")
    }

    /// Returns the owners of the listening sockets, by the name that /proc/PID/fd links to.
    ///
    /// Parses lines such as `0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000
    /// 33 0 131` (proc_net_tcp(5)): state 0A listens, then come the user and, last, the inode. Unlike
    /// /proc/net, /proc/self/net is there under systemd's `ProcSubset=pid`, too.
    private func listeners(on port: UInt16) -> [String: uid_t] {
        let suffix = ":" + ("000" + String(port, radix: 16, uppercase: true)).suffix(4)
        var owners: [String: uid_t] = [:]
        for table in ["tcp", "tcp6"] {
            let text = text("/proc/self/net/\(table)", limit: 1 << 20) ?? ""
            for words in text.split(separator: "\n").map({ $0.split(separator: " ") })
            where words.count > 9 && words[1].hasSuffix(suffix) && words[3] == "0A" {
                owners["socket:[\(words[9])]"] = uid_t(words[7])
            }
        }
        return owners
    }
}
