// Fuzz target for the metadata of audio files, which devices may have sent in any form.
import AudioTags
import FuzzSupport

enum TagTargets {
    static let all = [FuzzTarget(name: "audio-tags", run: tags)]

    private static func tags(_ input: [UInt8]) {
        let fields = [(key: "GUANO|Version", value: "1.0"), ("Serial", "lake-7")]
        for type in ["wav", "flac", "ogg", "aac"] {
            let tagged = TaggedFile.tagged(input, type: type, fields)
            // Files that have the fields already stay as they are.
            precondition(TaggedFile.tagged(tagged, type: type, fields) == tagged)
            if type == "wav" { precondition(tagged.dropFirst(8).starts(with: input.dropFirst(8))) }
            let (first, _) = TaggedFile.started(input, type: type, fields)
            precondition(first.count >= input.count / 2 || type != "wav")
        }
    }
}
