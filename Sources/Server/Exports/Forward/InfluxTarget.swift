// The InfluxDB 1 or 2 that receives points, and its credentials.
import Foundation
import Host

/// The URL that points are posted to.
package struct InfluxTarget: Sendable {
    /// The environment variable with the token, if there is no token file.
    package static let variable = "WAYPOST_INFLUX_TOKEN"

    package let url: String
    /// The file with the token; read before each request, so that it can be changed.
    private let tokenFile: String?
    /// True if the server has the API of InfluxDB 2.
    private let isSecond: Bool

    /// Checks a URL with `/write?db=…` or `/api/v2/write?org=…&bucket=…`.
    ///
    /// Throws a `Failure` for any other URL, and if the file cannot be read.
    package init(url: String, tokenFile: String? = nil) throws {
        guard let parts = URLComponents(string: url), parts.host?.isEmpty == false,
            ["http", "https"].contains(parts.scheme?.lowercased() ?? "")
        else { throw Failure("http://… or https://…") }
        let names = Set((parts.queryItems ?? []).map(\.name))
        isSecond = parts.path.hasSuffix("/api/v2/write")
        guard parts.path.hasSuffix("/write"), names.contains(isSecond ? "bucket" : "db") else {
            throw Failure("an address of /write?db=NAME or /api/v2/write?org=NAME&bucket=NAME")
        }
        guard parts.user == nil, parts.password == nil, names.isDisjoint(with: ["u", "p"]) else {
            throw Failure("an address without a password: others see it in the list of processes")
        }
        guard !names.contains("precision") else { throw Failure("an address without precision=") }
        self.url = url
        self.tokenFile = tokenFile
        _ = try authorization()
    }

    /// Returns the Authorization header; nil if there is no token.
    ///
    /// `user:password` for InfluxDB 1, a token for InfluxDB 2. Throws a `Failure` if the file cannot be
    /// read.
    package func authorization() throws -> String? {
        guard let token = try token(), !token.isEmpty else { return nil }
        let scheme = isSecond ? "Token \(token)" : "Basic \(Data(token.utf8).base64EncodedString())"
        return "Authorization: \(scheme)"
    }

    private func token() throws -> String? {
        let text: String?
        if let tokenFile {
            guard let data = FileManager.default.contents(atPath: tokenFile) else {
                throw Failure("a readable token file; not \(tokenFile)")
            }
            text = String(decoding: data, as: UTF8.self)
        } else {
            text = ProcessInfo.processInfo.environment[Self.variable]
        }
        let token = text.map { trimmed($0) }
        // The token becomes a header, where a line end would start another one.
        guard token?.unicodeScalars.allSatisfy({ $0.value >= 32 && $0.value != 127 }) != false
        else { throw Failure("a token of one line") }
        return token
    }
}
