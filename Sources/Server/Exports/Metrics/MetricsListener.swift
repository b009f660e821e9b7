// Serves the metrics on an address of their own, which a proxy does not pass on.
import Host
import ServerBase
import ServerWeb

/// A small HTTP server with one page, `/metrics`.
package final class MetricsListener {
    private let daemon: HTTPDaemon

    /// Takes ownership of the socket.
    package init(socket: Int32, metrics: ServerMetrics) throws {
        var bounds = HTTPBounds()
        bounds.connections = 8
        bounds.perAddress = 0
        bounds.workers = 1
        daemon = try HTTPDaemon(
            listener: socket,
            bounds: bounds,
            application: MetricsPage(metrics: metrics)
        )
    }

    package func windDown() { daemon.windDown() }
}

/// The routes of the listener.
private struct MetricsPage: HTTPApplication {
    let metrics: ServerMetrics

    /// No request has a body that is read.
    var spoolFolder: String { "/var/tmp" }

    /// Reads the databases on the serving thread: nobody else waits for it.
    func plan(_ head: RequestHead) -> RequestPlan {
        do {
            guard case .metrics = head.route else {
                throw HTTPError(status: 404, reason: "no such path; GET /metrics")
            }
            try head.expect("GET")
            var answer = HTTPAnswer(200, body: Array(try metrics.text().utf8))
            answer.headers = [("Content-Type", PrometheusText.contentType)]
            return .answer(answer)
        } catch let refusal as HTTPError {
            return .answer(HTTPAnswer(refusal))
        } catch {
            return .answer(HTTPAnswer(HTTPError(status: 500, reason: "\(error)")))
        }
    }
}
