// `waypost-receiver conformance`: tries a server against the protocol.
import ArgumentParser
import Foundation
import Host
import ServerBase
import ServerConformance

struct ConformanceCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "conformance",
        abstract: "Try whether a server keeps the protocol of gateways.",
        discussion: """
            Prints a line per sentence of waypost-protocol(7), A SERVER OF YOUR OWN, as it is tried, and for a failed \
            one what was sent and what came back. It sends more than 64 MB, and stores some records under a device named \
            conformance-…, so give it a token and, with --code, a code that can be spent. It can be repeated.

            Exit status: 0 every required sentence is kept, 1 one is not, 2 the server cannot be reached, or the URL \
            or the token is of something else, 3 none is broken, but some cannot be tried, because the answers do not \
            have duplicates.

              waypost-receiver conformance http://127.0.0.1:8080 --token token.txt
            """
    )

    @Argument(help: "The server's URL, such as https://waypost.example.org.") var url: String
    @Option(help: ArgumentHelp("A file with a token of the server.", valueName: "file"))
    var token: String
    @Option(help: ArgumentHelp("The device of a token that only one may use.", valueName: "id"))
    var device: String?
    @Option(help: "An enrolment code, which is then used up.") var code: String?
    @Option(help: ArgumentHelp("Extra certificate authorities, in PEM.", valueName: "file"))
    var caFile: String?
    @Option(help: ArgumentHelp("The longest wait for one answer.", valueName: "seconds"))
    var patience = 10
    @Flag(help: "Print one JSON object at the end.") var json = false

    mutating func validate() throws {
        guard (1...600).contains(patience) else {
            throw ValidationError("--patience is a number of seconds from 1 to 600")
        }
    }

    func run() throws {
        var results: [ConformanceResult] = []
        let device: String
        do {
            device = try Conformance.run(try target()) {
                results.append($0)
                if !json { Self.show($0) }
            }
        } catch {
            complain("\(error)")
            throw ExitCode(2)
        }
        try end(results, device)
    }

    /// Prints the end of the report, and throws the exit status.
    private func end(_ results: [ConformanceResult], _ device: String) throws {
        let required = results.filter(\.check.isRequired)
        let unseen = required.count(where: \.isUnseen)
        let status: Int32 = required.contains { $0.verdict == .failed } ? 1 : unseen > 0 ? 3 : 0
        if json {
            print(try Self.document(results, device, isPassed: status == 0))
        } else if unseen > 0 {
            print("\(unseen) required sentences could not be tried: storing cannot be seen")
        }
        if status > 0 { throw ExitCode(status) }
    }

    private func target() throws -> ConformanceTarget {
        // Waits for a pipe, so that a shell can pass the token without a file.
        let bytes = try SmallFile.read(token, limit: 64 << 10, wait: true).bytes
        let text = String(decoding: bytes, as: UTF8.self)
        // A file of tokens has a device's id after some, and comments.
        let lines = text.split(whereSeparator: \.isNewline).map { line in
            line.split(whereSeparator: \.isWhitespace).prefix { !$0.hasPrefix("#") }
        }
        guard let words = lines.first(where: { !$0.isEmpty }), let word = words.first else {
            throw Failure("\(token) does not hold a token; put one on its first line")
        }
        let target = ConformanceTarget(
            url: url,
            token: String(word),
            device: device ?? words.dropFirst().first.map(String.init),
            code: code,
            certificates: caFile,
            patience: .seconds(patience)
        )
        guard target.device.map(isName) ?? true else {
            throw Failure("the device's id may have letters, digits, ., _ and - only")
        }
        if target.isExposed { complain("http:// shows the token to anyone on the way") }
        return target
    }

    private static func show(_ result: ConformanceResult) {
        let verdict = result.verdict.rawValue.padding(toLength: 8, withPad: " ", startingAt: 0)
        let weight = result.check.isRequired ? "required   " : "recommended"
        let reason = result.verdict == .skipped ? " (\(result.reason))" : ""
        print("\(verdict) \(weight)  \(result.check.sentence)\(reason)")
        if result.verdict == .failed {
            print("         sent      \(result.sent)\n         expected  \(result.reason)")
            print("         got       \(result.got)")
        }
        // Each line is seen while the next sentence is tried, also through a pipe.
        fflush(nil)
    }

    private static func document(
        _ results: [ConformanceResult],
        _ device: String,
        isPassed: Bool
    ) throws -> String {
        let lines = results.map { result in
            [
                "name": result.check.name, "sentence": result.check.sentence,
                "weight": result.check.isRequired ? "required" : "recommended",
                "verdict": result.verdict.rawValue.lowercased(), "reason": result.reason,
                "sent": result.sent, "got": result.got,
            ]
        }
        let object: [String: Any] = ["passed": isPassed, "device_id": device, "results": lines]
        let options: JSONSerialization.WritingOptions = [.prettyPrinted, .sortedKeys]
        let data = try JSONSerialization.data(withJSONObject: object, options: options)
        return String(decoding: data, as: UTF8.self)
    }
}
