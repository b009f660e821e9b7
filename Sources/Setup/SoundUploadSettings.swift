// Which recorded sound is uploaded, and which streams mark it.
package import Configuration
import Host
package import Queue
package import Records
package import Upload

/// The keys of `[audio]` that say what of the sound is uploaded; the source need not restart for them.
package struct SoundUploadSettings: Configurable, Equatable {
    package var upload = AudioUpload.all
    package var margin = SoundUpload().margin
    package var fillsBudget = false

    package init() {}

    package static var keys: [Key<Self>] {
        Key("upload", \.upload, .choice()).remote().says(
            "Sound that is uploaded: all, only what is marked, or none; the rest is held on the card."
        )
        Key("mark_margin", \.margin, .duration(.zero ... .seconds(600)))
            .remote().says(
                "Sound this long before and after a record of a stream with marks_audio is marked."
            )
        Key("fill_budget", \.fillsBudget, .boolean)
            .remote().says(
                "With upload = \"marked\": what is left of upload.daily_budget goes to other sound, the newest first."
            )
    }
}

extension Configuration {
    /// The selection of sound that is uploaded, in the queue's type.
    package var sound: SoundUpload {
        SoundUpload(
            soundUpload.upload,
            markingStreams: Set(userStreams.filter(\.marksAudio).map(\.name)),
            margin: soundUpload.margin
        )
    }

    /// The settings of the uploader, which has to know of one key of `[audio]`.
    package var uploaderSettings: UploadSettings {
        var settings = upload
        settings.fillsBudget = soundUpload.fillsBudget && soundUpload.upload == .marked
        return settings
    }
}
