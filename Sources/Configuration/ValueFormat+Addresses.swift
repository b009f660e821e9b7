// Value formats that several rooms share: paths, names, network addresses.
package import Host

extension ValueFormat where Value == String {
    /// An absolute path; messages never quote it, since a token may have been put in its place.
    package static func path(limit: Int = 1024) -> Self {
        var format = text("an absolute path of at most \(limit) bytes", isDiscreet: true) {
            pathProblem($0, limit: limit)
        }
        format.namesFile = { _ in true }
        return format
    }

    /// A name that is safe in a URL and as a folder; `first` restricts its first byte.
    package static func name(
        _ what: String,
        first: (text: String, isRight: @Sendable (UInt8) -> Bool)? = nil
    ) -> Self {
        .text(
            "1 to 64 of the characters A-Z a-z 0-9 _ -" + (first.map { ", \($0.text)" } ?? ""),
            no: what
        ) { text in
            let bytes = text.utf8
            let isSafe = bytes.allSatisfy { $0.isLetter || $0.isDigit || $0 == 95 || $0 == 45 }
            guard isSafe, (1...64).contains(bytes.count), let start = bytes.first else {
                return false
            }
            return first?.isRight(start) ?? true
        }
    }
}

private func pathProblem(_ path: String, limit: Int) -> String? {
    let bytes = path.utf8
    if bytes.isEmpty { return "is empty" }
    if bytes.first != UInt8(ascii: "/") { return "is not an absolute path: it must begin with /" }
    if bytes.contains(where: { $0 < 32 || $0 == 127 }) { return "holds a control character" }
    return bytes.count > limit ? "is longer than \(limit) bytes" : nil
}

extension ValueFormat where Value == HostPort {
    package static let hostPort = ValueFormat.text(
        "host:port, as localhost:2947 or [::1]:2947",
        no: "host:port",
        parse: { HostPort($0[...]) },
        written: \.description
    )
}
