// Fuzz targets for JSON from servers, gpsd, the control socket and the state before a restart.
import FuzzSupport

@testable import Host
@testable import JSON

enum JSONTargets {
    static let all = [FuzzTarget(name: "json", run: tree)]

    /// Checks that accepted JSON is the same when written and parsed again, and that Foundation
    /// accepts and rejects alike.
    private static func tree(_ input: [UInt8]) {
        let value: JSONValue
        do throws(JSONError) {
            value = try JSONValue(input)
        } catch {
            precondition(error.place >= 1 && error.place <= input.count + 1)
            // Foundation also accepts other encodings than UTF-8.
            let isTaken =
                !input.contains(0) && FoundationJSON.decode(AnyJSON.self, from: input) != nil
            precondition(error.isRefusal || !isTaken)
            return
        }
        var json = JSONWriter()
        value.write(to: &json)
        let written = json.bytes
        precondition((try? JSONValue(written)) == value)
        precondition(FoundationJSON.decode(AnyJSON.self, from: input) != nil)
        guard let strict = FoundationJSON.decode(StrictJSON.self, from: written),
            let ours = try? JSONInput.decode(StrictJSON.self, from: input)
        else { return }
        precondition(strict == ours)
    }
}
