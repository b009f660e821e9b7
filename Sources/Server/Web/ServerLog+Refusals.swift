// Logs refused requests.
import ServerBase

extension ServerLog {
    /// Logs a refused request and returns its answer.
    package func refused(_ error: any Error) -> HTTPAnswer {
        let refusal = error as? HTTPError
        refusals.add(refusal?.status ?? 500)
        guard let refusal else {
            write("error: \(error)")
            return HTTPAnswer(HTTPError(status: 500, reason: "\(error)"))
        }
        write("refused \(refusal.status): \(refusal.reason)")
        return HTTPAnswer(refusal)
    }
}
