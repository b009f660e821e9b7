// Writes a record as the line that is stored.
package import ServerBase

/// The store that a line is written for.
package enum LineDestination {
    case archive
    /// As a gateway writes it there itself.
    case bucket
}

extension IncomingRecord {
    /// The name of its audio file; nil if it has none.
    package var soundName: String? { audio.map { "\(time.compact)_\(id).\($0.format)" } }

    /// Passes on the record's line without its end, piece by piece.
    ///
    /// The line is as received, except that a file name replaces the audio data, and that the
    /// archive stores a microphone as `capture_device`, because `device` is a partition's column.
    /// `isAhead`: the record is dated more than a day after the server's clock, so its `clock`
    /// becomes `future`. A piece is valid only during the call.
    package func writeLine(
        of body: ByteView,
        for destination: LineDestination,
        isAhead: Bool = false,
        _ receive: (UnsafeRawBufferPointer) throws -> Void
    ) throws {
        guard soundName != nil || isAhead else { return try Self.write(extent, of: body, receive) }
        var text = BodyJSON(body, at: extent.lowerBound)
        let line = try RecordLine(&text)
        let names = line.members.map { $0.name?.lowercased() }
        let renames =
            destination == .archive && soundName != nil && !names.contains("capture_device")
        var separator: StaticString = "{"
        for (member, name) in zip(line.members, names) {
            // Query engines do not distinguish the case of names.
            if isAhead, name == "clock" { continue }
            try Self.write(separator, receive)
            separator = ","
            if let soundName, member.name == "audio_data" {
                try Array("\"audio_file\":\"\(soundName)\"".utf8).withUnsafeBytes(receive)
            } else {
                if renames, name == "device" {
                    try Self.write(#""capture_device""#, receive)
                } else {
                    try Self.write(member.key, of: body, receive)
                }
                try Self.write(":", receive)
                try Self.write(member.value, of: body, receive)
            }
        }
        try Self.write(isAhead ? #","clock":"future"}"# : "}", receive)
    }

    private static func write(
        _ text: StaticString,
        _ receive: (UnsafeRawBufferPointer) throws -> Void
    ) throws {
        try receive(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// In valid JSON, line ends occur only between values, so they can be dropped.
    private static func write(
        _ range: Range<Int>,
        of body: ByteView,
        _ receive: (UnsafeRawBufferPointer) throws -> Void
    ) throws {
        var start = range.lowerBound
        while start < range.upperBound {
            let end = min(range.upperBound, start + (64 << 10))
            if body.hasLineEnd(start..<end) {
                let kept = body[start..<end].filter { $0 != 10 && $0 != 13 }
                try kept.withUnsafeBytes(receive)
            } else {
                try receive(body[start..<end])
            }
            body.release(start..<end)
            start = end
        }
    }
}
