// Requests that an object store can check: AWS Signature Version 4, made by libcurl.
import CCurl

/// What turns a request into a signed PUT of an object.
package struct RequestSigning {
    var region: String
    /// `ID:SECRET`.
    var keys: String
    /// The body's SHA-256 in hex.
    var digest: String

    package init(region: String, keys: String, digest: String) {
        self.region = region
        self.keys = keys
        self.digest = digest
    }

    /// A store refuses to keep other bytes than these, and the signature covers them by it.
    ///
    /// libcurl 7.88 signs a body that it has not read yet as an empty one unless this says otherwise.
    var header: String { "x-amz-content-sha256: \(digest)" }

    /// Whether libcurl can be kept from sending `Expect: 100-continue` with an object over 1 MB.
    ///
    /// It is an empty header of ours, which libcurl before 8.3 signs and does not send: a store refuses that.
    package static let canOmitExpect = waypost_curl_version() >= 0x080300

    /// The header lines that go with the request.
    var headers: [String] { Self.canOmitExpect ? [header, "Expect:"] : [header] }

    /// Sets up a handle that is prepared for a POST.
    func apply(to easy: UnsafeMutableRawPointer) {
        let parts = keys.split(separator: ":", maxSplits: 1).map { String($0) }
        // A POST by another name: with CURLOPT_UPLOAD each object, however small, would ask for `100 Continue`.
        waypost_curl_set_string(easy, CURLOPT_CUSTOMREQUEST, "PUT")
        // Many stores and proxies never send it: an older libcurl, which asks for it, does not wait a second for it.
        waypost_curl_set_long(easy, CURLOPT_EXPECT_100_TIMEOUT_MS, 1)
        waypost_curl_set_string(easy, CURLOPT_AWS_SIGV4, "aws:amz:\(region):s3")
        waypost_curl_set_string(easy, CURLOPT_USERNAME, parts.first ?? "")
        waypost_curl_set_string(easy, CURLOPT_PASSWORD, parts.count > 1 ? parts[1] : "")
    }
}
