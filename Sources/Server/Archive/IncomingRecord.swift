// One record of a body: the facts that the archive needs, and its range in the body.
import Host
package import ServerBase

/// A record that is fit to be stored; its bytes stay in the body.
package struct IncomingRecord: Sendable {
    package struct Audio: Sendable {
        /// The range of the string `audio_data`.
        package var data: Range<Int>
        package var format: String
    }

    /// Its range in the body.
    package let extent: Range<Int>
    package let id: String
    package let time: RecordTime
    /// Nil if it has no audio.
    package private(set) var audio: Audio?
    /// The kind and source of an event about a source's state.
    private(set) var state: String?
    /// Nil if it is not a reply to a job.
    let reply: IncomingReply?

    /// Reads the next record; throws `RecordError`, or `BodyError` if it is not valid JSON.
    package init(_ text: inout BodyJSON) throws {
        guard text.next() == UInt8(ascii: "{") else {
            try text.value()
            throw RecordError(reason: "not an object")
        }
        let line = try RecordLine(&text)
        guard line[""] == nil else { throw RecordError(reason: "a member without a name") }
        guard let id = line.text("id"), isName(id) else {
            throw RecordError(reason: "id is missing or not a plain name")
        }
        guard let time = line.writtenTime.flatMap(RecordTime.init) else {
            throw RecordError(reason: "timestamp is missing or not RFC 3339")
        }
        (extent, self.id, self.time) = (line.extent, id, time)
        reply = IncomingReply(line, date: time.date)
        if let event = line.event, RecordLine.stateKinds.contains(event.kind) {
            state = "\(event.kind) \(event.source)"
        }
        // Without a known audio format it belongs to another stream, and is stored unchanged.
        guard let data = line["audio_data"], line.begins(data, "\""),
            let format = line.text("audio_format"), ["ogg", "flac", "aac", "wav"].contains(format)
        else { return }
        guard !line.members.contains(where: { $0.name?.lowercased() == "audio_file" }) else {
            throw RecordError(reason: "audio_file beside audio_data; the server sets audio_file")
        }
        audio = Audio(data: data, format: format)
    }
}
