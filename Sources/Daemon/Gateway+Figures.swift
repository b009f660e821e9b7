// The gateway's own figures, for `waypost measure`.
import Host
import Queue
import Setup
import Status
import StatusBoard

extension Gateway {
    /// Returns a function that reads the figures of this process.
    var figures: @Sendable () -> GatewayFigures {
        let (context, started, services) = (context, started, services)
        return {
            let sources = context.board.sources.mapValues { $0.state.value }
            let tally = context.board.uploadTally.value
            var figures = GatewayFigures()
            figures.startedS = started.seconds
            figures.firstRecordS = sources.values.compactMap { $0?.firstRecordAt?.boot.seconds }
                .min()
            figures.firstUploadS = tally.firstSuccessAt?.seconds
            figures.audioOverruns = sources[.audio]??.overruns ?? 0
            for (stream, bytes) in tally.bodyBytes {
                let wire = services.configuration.wire(of: stream, in: context.queue.streams)
                figures.bodyBytes[wire, default: 0] += bytes
            }
            let heard = context.clockWatch.heard
            (figures.gnssMs, figures.gnssBootNs) = (
                heard?.wall.milliseconds, heard?.boot.nanoseconds
            )
            return figures
        }
    }
}

extension BootInstant {
    fileprivate var seconds: Double { rounded(Double(nanoseconds) / 1e9, 1000) }
}
