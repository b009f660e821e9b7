// All that a gateway shows of itself, as it is now.
internal import Board
internal import Upload

/// Every state that a gateway shows, and who is to be told of a change.
final class GatewayBoard: Sendable {
    let sources: [SourceName: Publisher<SourceReport>]
    let upload = Publisher<UploadReport>()
    /// Why a source does not run: `disabled`, `waiting for enrolment`.
    let resting = StateBox([SourceName: String]())
    /// Keys of the configuration that were changed and take effect with the next start.
    let needRestart = StateBox([String]())
    let errors = ErrorLog()
    /// What was known before this start.
    let past: Past

    init(past: Past = Past()) {
        self.past = past
        sources = Dictionary(
            uniqueKeysWithValues: SourceName.allCases.map { ($0, Publisher<SourceReport>()) }
        )
    }
}
