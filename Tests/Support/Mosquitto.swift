// A mosquitto for one test.
internal import Foundation

/// A broker on a loopback port, with a folder of its own; killed at its end.
package final class Mosquitto {
    package let port: UInt16
    /// The authority of its certificate.
    package var caFile: String { folder.path + "/ca.pem" }
    private let folder = TemporaryFolder()
    private var process: Process?

    /// Starts a broker with a password for the user `user`; without one anybody may connect.
    ///
    /// `access`: lines of an access list. `more`: lines of the configuration.
    package init(
        password: String? = nil,
        isEncrypted: Bool = false,
        access: String? = nil,
        more: String = ""
    ) throws {
        port = freePort()
        var text = """
            user root
            listener \(port) 127.0.0.1
            persistence true
            persistence_location \(folder.path)/
            max_queued_messages 0
            allow_anonymous \(password == nil)
            \(more)

            """
        if let password {
            // mosquitto_passwd would make this line: PBKDF2 is not needed for a test.
            try write("user:\(password)\n", "passwords")
            _ = try Process.run(
                Tree.tool("mosquitto_passwd"),
                ["-U", folder.path + "/passwords"]
            )
            text += "password_file \(folder.path)/passwords\n"
        }
        if let access {
            try write(access, "access")
            text += "acl_file \(folder.path)/access\n"
        }
        if isEncrypted {
            try makeCertificate()
            text += "certfile \(folder.path)/ca.pem\nkeyfile \(folder.path)/key.pem\n"
        }
        try write(text, "mosquitto.conf")
        try start()
    }

    deinit { kill() }

    private func write(_ text: String, _ name: String) throws {
        try text.write(toFile: folder.path + "/" + name, atomically: true, encoding: .utf8)
    }

    private func makeCertificate() throws {
        let made = try Process.run(
            Tree.tool("openssl"),
            [
                "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
                "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout",
                folder.path + "/key.pem", "-out", caFile,
            ]
        )
        guard made.status == 0 else { throw NeverHappened(what: "a certificate: \(made.error)") }
    }

    /// Starts it, with the sessions that it had stored when it was stopped.
    package func start() throws {
        process = try .started(Tree.tool("mosquitto"), ["-c", folder.path + "/mosquitto.conf"])
        try waitUntil("mosquitto listens") {
            guard process?.isRunning == true else { throw NeverHappened(what: "mosquitto runs") }
            return try Process.run(
                "/bin/bash",
                ["-c", "exec 3<>/dev/tcp/127.0.0.1/\(port)"]
            ).status == 0
        }
    }

    /// Stops it in order: it stores its sessions.
    package func stop() {
        process?.terminate()
        process?.waitUntilExit()
    }

    /// Kills it; called at the end of the test, which keeps a reference until then.
    package func kill() { process?.killAndWait() }

    /// Sends it a signal, such as SIGSTOP: it then reads nothing.
    package func signal(_ number: Int32) {
        if let process { Foundation.kill(process.processIdentifier, number) }
    }

    /// Publishes one message per line with QoS 1.
    package func publish(_ topic: String, _ lines: [String], _ arguments: [String] = []) throws {
        let done = try Process.run(
            Tree.tool("mosquitto_pub"),
            ["-h", "127.0.0.1", "-p", "\(port)", "-t", topic, "-q", "1", "-l"] + arguments,
            input: lines.map { $0 + "\n" }.joined()
        )
        guard done.status == 0 else { throw NeverHappened(what: "a publication: \(done.error)") }
    }
}
