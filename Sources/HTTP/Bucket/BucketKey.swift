// Where objects lie in a bucket: the Hive layout that query engines read as it stands.
package import Host

/// The names of objects, as they are before percent-encoding.
package struct BucketFolder: Sendable, Equatable {
    /// `stream=…/date=…/device=…`.
    package var path: String

    /// `date`: a moment of the day (UTC) that the folder is of.
    package init(stream: String, date: WallTime, device: String) {
        path = "stream=\(stream)/date=\(date.rfc3339.prefix(10))/device=\(device)"
    }

    package init(path: String) { self.path = path }

    /// The object of a batch: its name is the batch's id, so each try writes the same one.
    package func key(_ batch: String, _ compression: Compression) -> String {
        "\(path)/\(batch).ndjson\(compression.fileSuffix)"
    }

    /// The object of a chunk of sound.
    package func key(sound name: String) -> String { "\(path)/\(name)" }
}

/// What a signed request to a bucket is made of.
package enum BucketURL {
    /// The address of an object; `bucket` is the configured URL.
    ///
    /// Percent-encoded as signatures want it, because libcurl 7.88 signs a path as it is given: a store
    /// would sign `=` as `%3D`. Keys hold no other character that needs it.
    package static func object(_ key: String, in bucket: String) -> String {
        let base = bucket.hasSuffix("/") ? String(bucket.dropLast()) : bucket
        var path = ""
        for character in key {
            if character == "=" { path += "%3D" } else { path.append(character) }
        }
        return "\(base)/\(path)"
    }

    /// Why a URL is none for a bucket; some characters would be signed differently from how a store reads them.
    package static func problem(_ text: String, _ names: SettingNames = SettingNames()) -> String? {
        if text.contains("@") { return "names a user: keys belong in \(names.keys)" }
        if text.contains("?") { return "has a ?query; remove it" }
        guard let host = text.firstRange(ofPart: "://") else { return nil }
        let path = text[host.upperBound...].drop { $0 != "/" }
        let plain = path.utf8.allSatisfy { byte in
            byte.isLetter || byte.isDigit || "-._~/".utf8.contains(byte)
        }
        guard plain else { return "holds a character in its path other than A-Z a-z 0-9 - . _ ~ /" }
        let parts = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
            .dropLast()
        let last = path.split(separator: "/").last ?? ""
        guard !parts.contains(where: { $0.isEmpty || $0 == "." || $0 == ".." }), last != ".",
            last != ".."
        else { return "has an empty part, . or .. in its path" }
        return nil
    }
}

extension Compression {
    /// What engines know a compressed file by.
    package var fileSuffix: String {
        switch self {
        case .gzip: ".gz"
        case .zstd: ".zst"
        case .none: ""
        }
    }

    /// The media type of newline-delimited JSON in this encoding.
    ///
    /// No `Content-Encoding`: a client would then undo what the object's name promises.
    package var objectType: String {
        switch self {
        case .gzip: "application/gzip"
        case .zstd: "application/zstd"
        case .none: "application/x-ndjson"
        }
    }
}
