// A version of the settings that this server gave a device, and what became of it.
import Configuration
package import Host

/// The newest version of a device's settings (waypost-protocol(7), JOBS).
package struct DeviceSettings: Sendable {
    /// The last state that the device reported; it reports neither `waiting` nor `replaced`.
    package enum State: String, Codable, Sendable {
        /// The device has not answered.
        case waiting
        case trial, failed, kept, refused, expired
        case rolledBack = "rolled_back"
        /// A newer version was put on trial or kept.
        case replaced

        /// Replies may come twice or late, so a state is followed only by one of a later step.
        ///
        /// A device that answered `failed` when it was interrupted may still keep the version.
        var step: Int {
            switch self {
            case .waiting: 0
            case .trial: 1
            case .failed: 2
            case .kept: 3
            case .refused, .expired, .rolledBack, .replaced: 4
            }
        }

        /// The state before its time: `in trial since`, `rolled back at`.
        package var words: String {
            switch self {
            case .trial: "in trial since"
            case .waiting, .kept: "\(rawValue) since"
            default: "\(name) at"
            }
        }

        package var name: String { rawValue.replacing("_", with: " ") }
    }

    package let device: String
    package let version: Int64
    /// TOML; empty: the device's own file alone.
    package let text: String
    package let state: State
    /// The device's reason, one line of printable characters; "" if there is none.
    package let message: String
    /// The time at which this server set the version or stored the reply.
    package let at: WallTime
    /// The newest version that is kept or in trial; nil: the device's own file alone.
    package let inForce: Int64?

    /// Returns what a signature covers (waypost-protocol(7), JOBS).
    package static func signedBytes(_ device: String, _ version: Int64, _ text: String) -> [UInt8] {
        Array("waypost-settings 1\n\(device)\n\(version)\n\(text)".utf8)
    }

    /// The settings in force without a version, for people.
    package static let ownFile = "the device's own file alone"

    /// The version in force for people.
    package var inForceWords: String { inForce.map { "version \($0)" } ?? Self.ownFile }

    /// Returns why no device accepts a text as settings, a line for each mistake; empty if one may.
    ///
    /// Only a device checks the values. `name`: the text's file, nil: a form's text.
    package static func errors(in text: String, from name: String? = nil) -> [String] {
        do {
            _ = try Self.text(Array(text.utf8), limit: DeviceJobs.maxSettings, from: name)
        } catch {
            return [error.message]
        }
        return RemoteKeys.names.problems(in: text)
            .map { "\(place(name, $0.line)): \($0.message)" }
    }

    private static func place(_ name: String?, _ line: Int) -> String {
        name.map { "\($0):\(line)" } ?? "line \(line)"
    }

    /// Returns a file's content as text that a device can read; `name`: the file in errors, nil: a
    /// form's text.
    ///
    /// Throws a `Failure` that names the reason: its length, or a byte or character in a line.
    package static func text(_ bytes: [UInt8], limit: Int, from name: String?) throws(Failure)
        -> String
    {
        guard bytes.count <= limit else {
            throw Failure("\(name ?? "the text") has more than \(limit) bytes")
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw Failure("\(name ?? "the text") is not UTF-8; save it as UTF-8")
        }
        let scalars = text.unicodeScalars
        if let bad = scalars.firstIndex(where: \.isForbiddenInLines) {
            let line = scalars[..<bad].filter { $0 == "\n" }.count + 1
            throw Failure("\(place(name, line)): a control or invisible character; delete it")
        }
        return text
    }
}
