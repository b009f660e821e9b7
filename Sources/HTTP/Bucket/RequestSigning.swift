// Signs requests to an object store: AWS Signature Version 4, made by libcurl.
import CCurl

/// The region, keys and digest that make a request a signed PUT of an object.
package struct RequestSigning {
    var region: String
    /// `ID:SECRET`.
    var keys: String
    /// The body's SHA-256 in hex.
    var digest: String

    /// The header that covers the body: a store refuses other bytes, and the signature includes it.
    ///
    /// Without it, libcurl 7.88 signs a body that it has not read yet as an empty one.
    var header: String { "x-amz-content-sha256: \(digest)" }

    /// libcurl can be stopped from sending `Expect: 100-continue` with an object over 1 MB.
    ///
    /// That takes an empty header, which libcurl before 8.3 signs and does not send, so a store
    /// refuses it.
    package static let canOmitExpect = waypost_curl_version() >= 0x080300

    /// The header lines to add to the request.
    var headers: [String] { Self.canOmitExpect ? [header, "Expect:"] : [header] }

    /// Changes a handle prepared for a POST into a signed PUT.
    func apply(to easy: UnsafeMutableRawPointer) {
        let parts = keys.split(separator: ":", maxSplits: 1).map { String($0) }
        // A renamed POST: with CURLOPT_UPLOAD every object, however small, would ask for `100
        // Continue`.
        waypost_curl_set_string(easy, CURLOPT_CUSTOMREQUEST, "PUT")
        // Many stores and proxies never send it: an older libcurl, which asks, must not wait a
        // second.
        waypost_curl_set_long(easy, CURLOPT_EXPECT_100_TIMEOUT_MS, 1)
        waypost_curl_set_string(easy, CURLOPT_AWS_SIGV4, "aws:amz:\(region):s3")
        waypost_curl_set_string(easy, CURLOPT_USERNAME, parts.first ?? "")
        waypost_curl_set_string(easy, CURLOPT_PASSWORD, parts.count > 1 ? parts[1] : "")
    }
}
