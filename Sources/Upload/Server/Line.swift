// The line to an endpoint: its connection, and the cap on bytes a second over all requests.
import Host
import HTTP
import Queue

/// Owns the transport of a destination; used by its thread only.
final class Line {
    private let transport: Transport
    private let clock = SystemClock()
    private var rate: RateLimit
    /// The next request makes a connection of its own and asks DNS again.
    private var wantsFreshConnection = false

    init(_ settings: TransportSettings) throws {
        transport = try Transport(settings)
        rate = RateLimit(bytesPerSecond: settings.maxRate)
    }

    func networkChanged() { wantsFreshConnection = true }

    /// Bytes on the wire since it was last asked.
    func takeTraffic() -> Traffic {
        defer { transport.meter.clear() }
        return transport.meter.traffic
    }

    /// The bytes on the wire that a request is expected to take: those of its body and header, and of a short answer.
    ///
    /// Of a batch to our own receiver the header is 330 bytes, a third of it `headers`, and the answer 170: the rest is for
    /// a signature and for servers that say more.
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
    /// The last exchange of a batch is over, its traffic counted; `judge` knows what an answer means there.
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
