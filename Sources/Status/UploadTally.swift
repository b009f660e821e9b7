// Counts bytes of uploads by stream.
package import Host
package import Records
package import Upload

/// The uploads since the start, from the uploader's published reports.
package struct UploadTally: Sendable {
    /// When the server accepted the first batch.
    package private(set) var firstSuccessAt: BootInstant?
    /// Bytes of bodies by stream, retries included; a request has records of one stream.
    package private(set) var bodyBytes: [Records.Stream: Int64] = [:]
    private var last = UploadReport()

    package init() {}

    package mutating func receive(_ report: UploadReport) {
        firstSuccessAt = firstSuccessAt ?? report.lastSuccessAt?.boot
        let bytes = report.bytesSent - last.bytesSent
        if bytes > 0, let stream = last.streams.first(where: { $0.value.inFlight > 0 })?.key {
            bodyBytes[stream, default: 0] += bytes
        }
        last = report
    }
}
