// Warns of a daily budget that is valid but too small for the rest of the configuration.
import Audio
import Beacons
import Configuration
import Host
import Location
import Records
import Upload

extension Configuration {
    /// Bytes of header and answer per batch with `waypost-receiver`.
    private static let request: Int64 = 500

    /// Why `upload.daily_budget` is too small for the rest of the configuration; nil if not.
    var budgetAdvice: String? {
        guard let budget = upload.dailyBudget else { return nil }
        let streams = [beacons.isEnabled, location.isEnabled].count { $0 } + userStreams.count
        let uploads = 86_400 / upload.interval.inSeconds
        let reports = health.isEnabled ? min(uploads, 86_400 / healthInterval.inSeconds) : 0
        let headers = Int64(uploads * Double(streams) + reports) * Self.request
        if headers > budget / 2 {
            return "upload.daily_budget is \(sizeText(budget)), and uploads every "
                + "\(durationText(upload.interval)) cost \(roughSize(headers)) per day for their headers alone; "
                + "raise it, or upload.interval"
        }
        guard audio.isEnabled, chunkBytes > budget / 4 else { return nil }
        return "upload.daily_budget is \(sizeText(budget)), and a record of sound is up to "
            + "\(roughSize(chunkBytes)): it may find no room; raise it, or lower audio.chunk or audio.bitrate"
    }

    /// The size of a chunk's file.
    private var chunkBytes: Int64 {
        let seconds = audio.chunk.inSeconds
        return switch audio.codec {
        case .opus, .aac: Int64(Double(audio.bitrate) / 8 * seconds)
        case .wav, .flac: Int64(Double(audio.rate) * 2 * seconds)
        }
    }
}
