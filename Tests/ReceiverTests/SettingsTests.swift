// The configuration file of the server, and the data folder that other commands take from it.
import Foundation
import ReceiverSupport
import Support
import Testing

@Suite struct SettingsTests {
    private let folder = TemporaryFolder()
    private let program = Tree.program("waypost-receiver")

    private func run(_ words: String...) throws -> Outcome { try Process.run(program, words) }

    private func file(_ text: String) throws -> String { try folder.write(text, to: "r.toml") }

    @Test func errorsOfTheFile_areAllNamed_withLineAndNearestKey() throws {
        let file = try file(
            """
            lisen = "127.0.0.1:0"
            max_body = true
            [alerts]
            """
        )
        for words in [
            ["--config", file], ["serve", "--config=\(file)"],
            ["config", "check", "--config", file],
        ] {
            let outcome = try Process.run(program, words)
            #expect(outcome.status == 78, "\(words)")
            let lines = outcome.error.split(separator: "\n")
            #expect(lines.count == 3, "\(outcome.error)")
            #expect(outcome.error.contains("\(file):1: lisen: unknown key; did you mean listen?"))
            #expect(outcome.error.contains("\(file):2: max_body: found true; allowed: a size"))
            #expect(outcome.error.contains("\(file):3: alerts: unknown section"))
        }
    }

    @Test(arguments: [
        #"listen = "everywhere""#, #"data = "relative""#, #"alert_command = "/nonexistent""#,
        #"alert_url = "ftp://secret.example.org""#, #"influx = "http://localhost:8086/""#,
        #"region = "eu""#, "max_body = \"2GiB\"", #"tokens = "tokens""#,
        "data = \"s3://b/x\"\nmax_per_day = \"1GB\"",
    ])
    func valueThatCannotBeUsed_namesTheFile(text: String) throws {
        let outcome = try run("--config", try file(text))
        #expect(outcome.status == 78)
        #expect(outcome.error.hasPrefix(folder.path + "/r.toml:"), "\(outcome.error)")
        #expect(!outcome.error.contains("secret"))
    }

    @Test func wrongOption_isWrongUse_alsoWithAFile() throws {
        let file = try file("quiet = true\n")
        #expect(try run("--config", file, "--lisen", "x").status == 64)
        #expect(try run("--config", folder.path + "/none").status == 78)
    }

    /// Also for options that are added later.
    @Test func eachOptionOfServe_isAKey() throws {
        let help = try run("serve", "--help").output
        let lines = help.split(whereSeparator: \.isNewline).filter { $0.hasPrefix("  --") }
        let options = lines.map { String($0.dropFirst(4).prefix { $0 != " " && $0 != "/" }) }
        let text = try run("config", "default").output
        let keys = text.split(whereSeparator: \.isNewline).filter { $0.contains(" = ") }.map {
            $0.drop { $0 == "#" }.prefix { $0 != " " }.replacingOccurrences(of: "_", with: "-")
        }
        // The last is for a try, not for a service.
        let others = ["config", "summary", "json", "version", "torment"]
        #expect(Set(keys).subtracting([""]) == Set(options).subtracting(others))
        // And the file with all defaults is valid, apart from its folder.
        let file = try file(text)
        #expect(try run("config", "check", "--config", file).output == "\(file): ok\n")
        let shown = try run("config", "show", "--config", file).output
        #expect(shown.contains("max_body = \"16MiB\"  # \(file):"))
    }

    @Test func proxyThatCanBeBypassed_isWarnedOf() throws {
        let file = try file("behind_proxy = true\nlisten = \"0.0.0.0:8080\"\n")
        let outcome = try run("config", "check", "--config", file)
        #expect(outcome.status == 0 && outcome.error.contains("whoever reaches 0.0.0.0:8080"))
        let good = try self.file("behind_proxy = true\n")
        #expect(try run("config", "check", "--config", good).error.isEmpty)
    }

    @Test func optionsWinOverTheFile() throws {
        let file = try file("data = \"/nonexistent/data\"\nmax_body = 1024\nbehind_proxy = true\n")
        let receiver = try ReceiverProcess(["--config", file, "--accept-any-token"])
        #expect(try receiver.send(ids: ["a"]) == 200)
        let long = #","x":"\#(String(repeating: "x", count: 2000))""#
        #expect(try receiver.send(padding: long) == 413)
        _ = receiver.terminate()
        let wide = try ReceiverProcess(
            ["--config", file, "--accept-any-token", "--max-body", "1MiB", "--no-behind-proxy"]
        )
        #expect(try wide.send(padding: long) == 200)
    }

    /// With a file, as the package runs it, nobody is let in before a person allows it.
    @Test func serverWithAFile_acceptsNoTokenBeforeTheFirstCode() throws {
        let receiver = try ReceiverProcess(["--config", try file("quiet = true\n")])
        #expect(try receiver.send() == 401)
        #expect(try receiver.verify("t") == 401)
        let token = try receiver.enrol()
        #expect(try receiver.send(token) == 200)
        #expect(try receiver.send() == 401)
    }

    @Test func commands_takeTheDataFolderFromTheFile() throws {
        let receiver = try ReceiverProcess()
        let file = try file("data = \"\(receiver.folder)\"\n")
        let made = try run("codes", "add", "--config", file)
        #expect(made.status == 0, "\(made.error)")
        #expect(try receiver.command("codes", "list").output.hasPrefix("1  open"))
        #expect(try run("devices", "--config", file).status == 0)
        #expect(try run("codes", "list", "--config", try self.file("daat = 1\n")).status == 78)
    }

    @Test func manyCodes_areCSV_andEachIsGood() throws {
        let receiver = try ReceiverProcess()
        let made = try receiver.command("codes", "add", "-n", "200", "--csv")
        let lines = made.output.split(separator: "\n")
        #expect(lines.count == 201)
        #expect(lines[0] == "id,code,valid_until,device")
        #expect(Set(lines.dropFirst().map { $0.split(separator: ",")[1] }).count == 200)
        let last = lines[200].split(separator: ",", omittingEmptySubsequences: false)
        #expect(last[0] == "200" && last[3].isEmpty)
        try receiver.enrol(code: String(last[1]))
        #expect(try receiver.command("codes", "add", "-n", "2", "--device", "d2").status == 64)
        #expect(try receiver.command("codes", "add", "-n", "0").status == 64)
    }

    /// Root becomes the folder's owner, who may not read the file.
    @Test(.enabled(if: getuid() == 0)) func fileThatOnlyRootReads_namesTheFolderOfAnother() throws {
        let receiver = try ReceiverProcess()
        #expect(receiver.terminate() == 0)
        _ = try Process.run("/usr/bin/chown", ["-R", "65534:65534", receiver.folder])
        let file = try file("data = \"\(receiver.folder)\"\n")
        let words = ["-C", folder.path, program, "codes", "add", "--config", file]
        let made = try Process.run("/usr/bin/env", words)
        #expect(made.status == 0, "\(made.error)")
        #expect(try receiver.command("codes", "list").output.hasPrefix("1  open"))
        #expect(!FileManager.default.fileExists(atPath: folder.path + "/waypost-data"))
    }

    /// Root's files in the service's folder would stop the service.
    @Test(.enabled(if: getuid() == 0)) func root_leavesNothingOfItsOwnInAFolderOfTheService() throws
    {
        let receiver = try ReceiverProcess()
        #expect(receiver.terminate() == 0)
        for name in [".receiver-enrolments.sqlite", ".receiver-viewers.sqlite"] {
            try FileManager.default.removeItem(atPath: "\(receiver.folder)/\(name)")
        }
        _ = try Process.run("/usr/bin/chown", ["-R", "65534:65534", receiver.folder])
        #expect(try receiver.command("codes", "add").status == 0)
        #expect(try receiver.command("viewers", "add", "anna").status == 0)
        #expect(try receiver.command("index", "rebuild").status == 0)
        let found = try Process.run("/usr/bin/find", [receiver.folder, "!", "-uid", "65534"])
        #expect(found.output.isEmpty, "\(found.output)")
        let served = try Process.run(program, ["--data", receiver.folder])
        #expect(served.status == 78)
        #expect(served.error.contains("belongs to nobody"), "\(served.error)")
        #expect(served.error.contains("sudo -u nobody"))
    }
}
