// The layout of objects in a bucket: Hive partitions, which query engines read directly.
package import Host

/// A folder in a bucket; its names are not percent-encoded.
package struct BucketFolder: Sendable, Equatable {
    private let stream: String
    private let date: String
    private let device: String

    /// `date` is any time within the folder's day (UTC).
    package init(stream: String, date: WallTime, device: String) {
        self.init(stream: stream, day: String(date.rfc3339.prefix(10)), device: device)
    }

    /// `day`: YYYY-MM-DD.
    package init(stream: String, day: String, device: String) {
        (self.stream, date, self.device) = (stream, day, device)
    }

    /// Returns the object name of a batch: its id, so each retry writes the same object.
    package func key(_ batch: String, _ compression: Compression) -> String {
        "stream=\(stream)/date=\(date)/device=\(device)/\(batch).ndjson\(compression.fileSuffix)"
    }

    /// Returns the object name of an audio chunk.
    ///
    /// Apart from the records, because Arrow, Spark and Trino read every object of a partition.
    package func key(sound name: String) -> String { "audio/\(stream)/\(date)/\(device)/\(name)" }
}

/// URLs for signed requests to a bucket.
package enum BucketURL {
    /// Returns the URL of an object; `bucket` is the configured URL.
    ///
    /// Percent-encoded as signatures require, because libcurl 7.88 signs a path as given, whereas a
    /// store signs `=` as `%3D`. Keys contain no other character that needs it.
    package static func object(_ key: String, in bucket: String) -> String {
        let base = bucket.hasSuffix("/") ? String(bucket.dropLast()) : bucket
        var path = ""
        for character in key {
            if character == "=" { path += "%3D" } else { path.append(character) }
        }
        return "\(base)/\(path)"
    }

    /// Returns why a URL is not valid for a bucket: stores would sign some characters differently.
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
    /// The file suffix by which query engines detect compression.
    package var fileSuffix: String {
        switch self {
        case .gzip: ".gz"
        case .zstd: ".zst"
        case .none: ""
        }
    }

    /// The media type of newline-delimited JSON in this encoding.
    ///
    /// Without `Content-Encoding`: a client would decompress, against the object's suffix.
    package var objectType: String {
        switch self {
        case .gzip: "application/gzip"
        case .zstd: "application/zstd"
        case .none: "application/x-ndjson"
        }
    }
}
