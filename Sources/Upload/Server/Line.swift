// The connection to an endpoint, with the rate limit in bytes per second over all requests.
import Host
import HTTP
import Queue

/// Owns the transport of a destination; used by its thread only.
final class Line {
    private let transport: Transport
    private let clock = SystemClock()
    private var rate: RateLimit
    /// The next request opens a new connection and resolves the name again.
    private var wantsFreshConnection = false

    init(_ settings: TransportSettings) throws {
        transport = try Transport(settings)
        rate = RateLimit(bytesPerSecond: settings.maxRate)
    }

    func networkChanged() { wantsFreshConnection = true }

    /// Returns the bytes on the wire since the last call.
    func takeTraffic() -> Traffic {
        defer { transport.meter.clear() }
        return transport.meter.traffic
    }

    /// Returns the bytes on the wire that a request is expected to take: its body and header, and a
    /// short answer.
    ///
    /// For a batch to Waypost's own server the header is 330 bytes, a third of them `headers`, and
    /// the answer 170. The rest allows for a signature and for longer answers.
    static func cost(_ body: any RequestBody, headers: [String]) -> Int64 {
        headers.reduce(Int64(body.length) + 700) { $0 + Int64($1.utf8.count) + 2 }
    }

    func post(
        _ body: any RequestBody,
        headers: [String],
        to url: String? = nil,
        meanwhile: () -> Bool = { false },
        until stop: StopSignal
    ) -> Exchange {
        paced(until: stop) {
            transport.post(
                body,
                headers: headers,
                to: url,
                isFresh: wantsFreshConnection,
                meanwhile: meanwhile,
                until: stop
            )
        }
    }

    func put(
        _ body: any RequestBody,
        headers: [String],
        to url: String,
        signing: RequestSigning,
        until stop: StopSignal
    ) -> Exchange {
        paced(until: stop) {
            transport.put(
                body,
                headers: headers,
                to: url,
                signing: signing,
                isFresh: wantsFreshConnection,
                until: stop
            )
        }
    }

    private func paced(until stop: StopSignal, _ send: () -> Exchange) -> Exchange {
        if stop.sleep(for: rate.delay(at: clock.now())) { return .stopped }
        let (start, before) = (clock.now(), transport.meter.traffic.sent)
        let exchange = send()
        wantsFreshConnection = false
        rate.sent(transport.meter.traffic.sent - before, from: start)
        return exchange
    }
}

extension Delivery {
    /// Records the outcome of a batch's last exchange; its traffic is already counted.
    ///
    /// `judge` maps the destination's answer to a verdict.
    mutating func take(_ exchange: Exchange, judge: (Answer) -> Verdict) {
        switch exchange {
        case .stopped: verdict = nil
        case .failed(let failure):
            verdict = .unreachable(failure)
            isUnsent = traffic.sent == 0
        case .answered(let answer):
            verdict = judge(answer)
            duplicates = answer.reply.duplicates
            if answer.isOfSecondTry { wasRepeated = true }
        }
    }
}
