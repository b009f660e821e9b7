// The kinds of text that name a bucket.

extension ValueFormat where Value == String {
    /// The URL of a bucket, in the path or in the host, perhaps with a folder in it.
    static let bucketURL = ValueFormat.discreetText(
        "https://host/bucket or https://bucket.host/",
        parse: { text in
            if let problem = bucketProblem(text) { return .failure(Mismatch(problem)) }
            switch Endpoint.parse(text) {
            case .success: return .success(text)
            case .failure(let mismatch): return .failure(mismatch)
            }
        },
        written: { $0 }
    )

    static let region = ValueFormat.text(
        "1 to 64 of the characters A-Z a-z 0-9 _ -",
        parse: { text in
            let safe = text.utf8.allSatisfy { $0.isLetter || $0.isDigit || $0 == 45 || $0 == 95 }
            guard (1...64).contains(text.utf8.count), safe else {
                return .failure(Mismatch("\"\(printable(text))\" is no region"))
            }
            return .success(text)
        },
        written: { $0 }
    )
}

/// What would be signed otherwise than a store reads it, or be no bucket's URL at all.
private func bucketProblem(_ text: String) -> String? {
    if text.contains("@") { return "names a user: keys belong in upload.credentials_file" }
    if text.contains("?") { return "has a ?query, which no bucket has" }
    guard let host = text.firstRange(of: "://") else { return nil }
    let path = text[host.upperBound...].drop { $0 != "/" }
    let plain = path.utf8.allSatisfy { byte in
        byte.isLetter || byte.isDigit || "-._~/".utf8.contains(byte)
    }
    guard plain else { return "holds a character in its path other than A-Z a-z 0-9 - . _ ~ /" }
    let parts = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false).dropLast()
    let last = path.split(separator: "/").last ?? ""
    guard !parts.contains(where: { $0.isEmpty || $0 == "." || $0 == ".." }), last != ".",
        last != ".."
    else { return "has an empty part, . or .. in its path" }
    return nil
}
