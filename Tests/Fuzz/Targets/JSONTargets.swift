// JSON of servers, of gpsd, of the other end of the control socket, and of what was kept before a restart.
import FuzzSupport

@testable import Host
@testable import JSON

enum JSONTargets {
    static let all = [FuzzTarget(name: "json", run: tree)]

    /// What is taken says the same when it is written and read again, and is JSON for Foundation, too; what is no JSON
    /// for us is none for Foundation.
    private static func tree(_ input: [UInt8]) {
        let value: JSONValue
        do throws(JSONFault) {
            value = try JSONValue(input)
        } catch {
            precondition(error.place >= 1 && error.place <= input.count + 1)
            // Foundation takes other encodings than UTF-8, too.
            let isTaken =
                !input.contains(0) && FoundationJSON.decode(AnyJSON.self, from: input) != nil
            precondition(error.isRefusal || !isTaken)
            return
        }
        var written: [UInt8] = []
        value.write(to: &written)
        precondition((try? JSONValue(written)) == value)
        precondition(FoundationJSON.decode(AnyJSON.self, from: input) != nil)
        guard let strict = FoundationJSON.decode(StrictJSON.self, from: written),
            let ours = try? JSONInput.decode(StrictJSON.self, from: input)
        else { return }
        precondition(strict == ours)
    }
}
