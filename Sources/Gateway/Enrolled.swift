// Nothing is collected for a device that its server does not know (contract, `upload.required`).
internal import Glibc
internal import Queue
internal import Streams

extension Configuration {
    /// A file that is there once the device was accepted.
    var enrolmentMark: String { "\(stateDirectory)/enrolled" }

    /// Why nothing may be collected yet; nil where it may.
    var whyNotCollecting: String? {
        // A disk that does not answer says nothing against a device.
        guard upload.required, access(enrolmentMark, F_OK) != 0, errno == ENOENT else { return nil }
        return upload.target == nil
            ? "not enrolled: set upload.endpoint and upload.token_file, or upload.required = false"
            : "waiting for the server to accept this device"
    }
}

/// Takes records of other programs as soon as those of the sources would be taken.
struct EnrolledSink: IntakeSink {
    struct NotEnrolled: Error, CustomStringConvertible {
        var description: String
    }

    let queue: any IntakeSink
    let whyNot: @Sendable () -> String?

    func put(_ records: [UserRecord], done: @escaping @Sendable ((any Error)?) -> Void) {
        if let why = whyNot() { return done(NotEnrolled(description: why)) }
        queue.put(records, done: done)
    }
}
