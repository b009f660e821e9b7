// One HTTP request.

/// A request, which may be sent several times.
package struct HTTPRequest {
    /// nil: the transport's endpoint.
    let url: String?
    package let body: RequestBody
    private let headers: [String]
    private(set) var signing: RequestSigning?
    private(set) var isGet = false
    /// The longest total time, even with progress.
    package var limit: Duration?
    /// Nobody retries it soon.
    package var isOnlyTry = false
    /// An answer counts even if its rest never comes.
    package var isStatusEnough = false
    /// The longest body of an answer, all of which is kept; nil: the usual limits.
    package var maxAnswer: Int?

    package init(posting body: RequestBody, headers: [String], to url: String? = nil) {
        (self.body, self.headers, self.url) = (body, headers, url)
    }

    package init(getting url: String, headers: [String] = []) {
        self.init(posting: RequestBody([]), headers: headers, to: url)
        isGet = true
    }

    /// Puts an object into the bucket at a URL; `keys` is `ID:SECRET`.
    package init(
        putting object: BucketObject,
        into bucket: String,
        region: String,
        keys: String
    ) {
        let url = BucketURL.object(object.key, in: bucket)
        self.init(posting: object.body, headers: ["Content-Type: \(object.type)"], to: url)
        signing = RequestSigning(region: region, keys: keys, digest: object.digest)
    }

    /// The header lines that libcurl does not make by itself.
    var headerLines: [String] {
        if let signing { return headers + signing.headers }
        // An empty Expect header stops libcurl from waiting for `100 Continue`, which some proxies
        // never send.
        return isGet ? headers : headers + ["Expect:"]
    }

    /// The bytes on the wire that it is expected to take: its body and header, and a short answer.
    ///
    /// For a batch to Waypost's own server the header is 330 bytes, a third of them `headers`, and
    /// the answer 170. The rest allows for a signature and for longer answers.
    package var cost: Int64 {
        headers.reduce(Int64(body.length) + 700) { $0 + Int64($1.utf8.count) + 2 }
    }
}
