// The options for `--data s3://BUCKET/PREFIX`: a bucket instead of a folder.
import ArgumentParser
import Foundation
import HTTP
import Host
import ServerBase
import ServerExports

struct BucketOptions: ParsableArguments {
    static let scheme = "s3://"
    private static let nameBytes = Set(
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
    )

    @Option(
        name: .customLong("bucket-url"),
        help: ArgumentHelp(
            "With --data s3://…: https://host/bucket or https://bucket.host/; AWS without it.",
            valueName: "url"
        )
    )
    var bucketURL: String?
    @Option(help: "With --data s3://…: the bucket's region (default: us-east-1).")
    var region: String?
    @Option(
        help: ArgumentHelp(
            "With --data s3://…: a file of mode 0600 with ID:SECRET or an AWS profile.",
            discussion: "Without it the systemd credential waypost.s3.",
            valueName: "file"
        )
    )
    var credentialsFile: String?
    @Option(help: ArgumentHelp("With --data s3://…: additional CAs to trust.", valueName: "file"))
    var caFile: String?
    @Flag(
        inversion: .prefixedNo,
        help: "With --data s3://…: http:// to other machines, which anyone on the way can read."
    )
    var allowPlaintext = false

    static func isBucket(_ data: String) -> Bool { data.hasPrefix(scheme) }

    /// Throws a ValidationError if `--data` and these options do not fit together.
    func check(_ data: String) throws {
        if Self.isBucket(data) {
            _ = try url(data)
        } else if bucketURL ?? region ?? credentialsFile ?? caFile != nil || allowPlaintext {
            throw ValidationError("the options of a bucket need --data s3://BUCKET/PREFIX")
        }
    }

    /// Returns the bucket; nil if `data` is a folder.
    ///
    /// Throws a StartError if its keys cannot be read.
    func place(_ data: String) throws -> BucketPlace? {
        guard Self.isBucket(data) else { return nil }
        let (url, file) = (try url(data), credentialsFile)
        let keys: @Sendable () throws -> String = {
            try StoreKeys.read(
                file: file,
                environment: ProcessInfo.processInfo.environment,
                for: url,
                key: "--credentials-file"
            )
        }
        do { _ = try keys() } catch { throw StartError("--data \(data)", error) }
        return BucketPlace(
            url: url,
            region: regionName,
            certificateFile: caFile,
            userAgent: "waypost-receiver/\(currentVersion)",
            keys: keys
        )
    }

    private var regionName: String { region ?? "us-east-1" }

    /// Returns the bucket's URL, including the folder.
    private func url(_ data: String) throws -> String {
        let parts = data.dropFirst(Self.scheme.count).split(
            separator: "/",
            maxSplits: 1,
            omittingEmptySubsequences: false
        )
        let bucket = String(parts.first ?? "")
        guard (1...63).contains(bucket.count), bucket.allSatisfy(Self.nameBytes.contains),
            (1...64).contains(regionName.count), regionName.allSatisfy(Self.nameBytes.contains)
        else { throw ValidationError("--data takes s3://BUCKET/PREFIX; not \(data)") }
        let base = bucketURL ?? amazon(bucket)
        let prefix = (parts.count > 1 ? parts[1] : "").drop { $0 == "/" }
        let url = base + (base.hasSuffix("/") || prefix.isEmpty ? "" : "/") + prefix
        if let problem = BucketURL.problem(url) {
            throw ValidationError("--data \(data) at \(base): its URL \(problem)")
        }
        try check(url, of: bucket)
        return url
    }

    private func amazon(_ bucket: String) -> String {
        // A certificate for *.s3… covers only one label.
        bucket.contains(".")
            ? "https://s3.\(regionName).amazonaws.com/\(bucket)"
            : "https://\(bucket).s3.\(regionName).amazonaws.com"
    }

    private func check(_ url: String, of bucket: String) throws {
        switch Endpoint.parse(url) {
        case .failure(let problem): throw ValidationError("--bucket-url \(problem.message)")
        case .success(let endpoint):
            let path = url.split(separator: "/").dropFirst(2).map(String.init)
            guard endpoint.host.hasPrefix(bucket + ".") || path.contains(bucket) else {
                throw ValidationError("--bucket-url names another bucket than --data: \(bucket)")
            }
            guard endpoint.isEncrypted || endpoint.isLoopback || allowPlaintext else {
                throw ValidationError(
                    "--bucket-url with http:// would show the data to anyone on the way; "
                        + "https://, or --allow-plaintext"
                )
            }
        }
    }
}
