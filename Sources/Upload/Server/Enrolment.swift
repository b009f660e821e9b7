// Asking a server whether it knows this device, before anything is collected for it.
internal import Board
package import Host
package import Queue
internal import Streams

/// Checks URL, TLS and token against the server in one request.
package enum Enrolment {
    /// `https://host/api/ingest` is verified at `https://host/api/device/verify` (contract, section 7).
    package static func url(ingest: String) -> String {
        let suffix = "/ingest"
        let base = ingest.hasSuffix(suffix) ? String(ingest.dropLast(suffix.count)) : ingest
        return base + "/device/verify"
    }

    /// Throws a Failure with what the server or the network said; returns when the token is good.
    package static func verify(
        _ settings: TransportSettings,
        token: String,
        until stop: StopSignal,
        onTraffic: (Traffic) -> Void = { _ in }
    ) throws {
        let transport = try Transport(settings)
        let exchange = transport.post(
            MemoryBody([]),
            headers: ["X-Device-Token: \(token)", "Accept: application/json"],
            to: url(ingest: settings.endpoint),
            until: stop
        )
        onTraffic(transport.meter.traffic)
        switch exchange {
        case .stopped: throw Failure("enrolment was interrupted")
        case .failed(let failure): throw failure
        case .answered(let answer):
            switch Verdict(answer) {
            case .accepted: return
            case .unreachable(let failure), .retry(let failure, _), .tokenRefused(let failure),
                .endpointWrong(let failure):
                throw failure
            case .tooLarge(let words), .refused(let words):
                throw Failure("the server refused the enrolment: \(words)", code: .server)
            }
        }
    }
}
