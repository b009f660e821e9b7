// Warns of a daily budget, or of records of sound, that are valid but do not fit together.
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

    /// Returns the problem and the remedy if a record of sound may be larger than a body that the
    /// server takes; nil if it fits.
    ///
    /// `maxBody`: in bytes; nil for the default of `waypost-receiver`.
    package func sizeAdvice(_ maxBody: Int64?) -> (what: String, next: String)? {
        guard audio.isEnabled, upload.destination == .ingest else { return nil }
        let maximum = min(max(maxBody ?? 16 << 20, 1 << 16), 1 << 40)
        // In base64; the other members and the batch's are beside it.
        let (fitting, bytes) = ((maximum - 4096) * 3 / 4, chunkBytes * 4 / 3 + 4096)
        guard bytes > maximum else { return nil }
        let step = audio.overlap > .zero ? audio.overlap : .seconds(2)
        let steps = Int64(audio.chunk / step * Double(fitting) / Double(chunkBytes))
        let what =
            "a record of sound is up to \(roughSize(bytes)), and the server takes \(sizeText(maximum))"
            + (maxBody == nil ? " by default" : "")
        let next =
            (steps < 2
                ? "lower audio.rate" : "lower audio.chunk to \(durationText(step * Int(steps)))")
            + ", or raise --max-body on the server (64MiB at most)"
        return (what, next)
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
