// Interprets the errors of an S3-compatible object store.
import Host

/// A store's answer and its error: `<Error><Code>…</Code><Message>…</Message></Error>`.
package struct S3ErrorMessages {
    package enum Meaning {
        case stored
        /// A success without an ETag, or refused keys with an HTML page: a captive portal.
        case stranger
        case clock
        case size
        case address
        case keys
        /// The bucket is full or over its quota.
        case full
        /// SlowDown, 5xx and unknown errors: the data was not evaluated, so it is kept.
        case other
    }

    private static let clockCodes: Set<String> = ["RequestTimeTooSkewed", "RequestExpired"]
    private static let addressCodes: Set<String> = [
        "AuthorizationHeaderMalformed", "PermanentRedirect", "InvalidBucketName", "InvalidRegion",
        "IncorrectEndpoint", "IllegalLocationConstraintException", "InvalidLocationConstraint",
    ]
    private static let keyCodes: Set<String> = [
        "InvalidAccessKeyId", "SignatureDoesNotMatch", "AccessDenied", "ExpiredToken",
        "InvalidToken",
    ]

    private static let fullCodes: Set<String> = [
        "QuotaExceeded", "ServiceQuotaExceeded", "XMinioAdminBucketQuotaExceeded",
        "XMinioStorageFull",
    ]

    /// Empty if the body is not a store's error.
    private let code: String
    private let message: String
    private let region: String
    private let answer: Answer

    package init(_ answer: Answer) {
        self.answer = answer
        let body = String(decoding: answer.body.prefix(4096), as: UTF8.self)
        code = Self.element("Code", in: body)
        message = Self.element("Message", in: body)
        let named = Self.element("Region", in: body)
        region = named.isEmpty ? answer.region : named
    }

    /// The meaning; the store's code outranks the status, which differs from store to store.
    package var meaning: Meaning {
        let status = answer.status
        if (200...299).contains(status) { return answer.etag.isEmpty ? .stranger : .stored }
        if status == 511 { return .stranger }
        if Self.clockCodes.contains(code) { return .clock }
        if status == 507 || Self.fullCodes.contains(code) { return .full }
        if status == 413 || code == "EntityTooLarge" { return .size }
        if [404, 405].contains(status) || (300...399).contains(status) { return .address }
        if Self.addressCodes.contains(code) { return .address }
        // Every store refuses keys with a code; a page without one is from something on the way.
        if [401, 403].contains(status), code.isEmpty, answer.isPage { return .stranger }
        return [401, 403].contains(status) || Self.keyCodes.contains(code) ? .keys : .other
    }

    /// The error as one line for people.
    package var text: String {
        guard !code.isEmpty else { return answer.message }
        return "\(answer.statusText) \(code)" + (message.isEmpty ? "" : ": \(message)")
    }

    /// Returns the problem and its remedy, for people.
    package func advice(_ names: SettingNames = SettingNames()) -> String {
        switch meaning {
        case .stored, .size: text
        case .stranger:
            "the answer is not from an object store (\(strange), a captive portal?)"
        case .clock:
            "the store says that the clock of this machine is wrong (\(text)); the request is "
                + "retried and works once NTP or a person has set the clock"
        case .address: "no bucket answers at the address (\(text)); \(addressAdvice(names))"
        case .keys:
            "the store refused the keys (\(text)); check \(names.keys), and that its key may put "
                + "objects into the bucket"
        case .full:
            "the bucket is full (\(text)); delete objects or raise its quota; the records wait until then"
        case .other: "store error: \(text)"
        }
    }

    private var strange: String {
        (200...299).contains(answer.status)
            ? answer.contentType.plainWords(atMost: 80) : answer.message
    }

    private func addressAdvice(_ names: SettingNames) -> String {
        region.isEmpty
            ? "check \(names.bucket) and \(names.region)"
            : "the bucket is in region \(region): set \(names.region), and the host in \(names.bucket)"
    }

    /// Returns the text between two tags: one line of at most 200 printable characters.
    private static func element(_ name: String, in body: String) -> String {
        guard let start = body.firstRange(ofPart: "<\(name)>"),
            let end = body[start.upperBound...].firstRange(ofPart: "</\(name)>")
        else { return "" }
        let scalars = body[start.upperBound..<end.lowerBound].unicodeScalars
        return String(String.UnicodeScalarView(scalars.filter { $0.value >= 32 }.prefix(200)))
    }
}
