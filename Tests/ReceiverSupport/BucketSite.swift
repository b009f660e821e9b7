// An object store, servers in bucket mode in front of it, and a load balancer.
import Foundation
package import Support

/// A test's own store (moto, which checks signatures), and the settings a server needs to write
/// there.
package final class BucketSite {
    package let store: ObjectStore
    package let folder = TemporaryFolder("bodies")
    private let keys: String

    package struct Counts: Equatable {
        package var records: Int
        package var ids: Int

        /// Returns counts of that many records, each once.
        package static func once(_ count: Int) -> Counts { Counts(records: count, ids: count) }
    }

    /// Starts a store; `faults` are applied to the first objects in turn (see
    /// Tests/Peers/store.py).
    package init(faults: [String] = []) throws {
        store = try ObjectStore(faults: faults)
        keys = try folder.write(store.access.keys, to: "keys")
    }

    /// Returns a server whose objects are under `via/`; `url` replaces the store's bucket.
    package func receiver(_ arguments: [String] = [], url: String? = nil) throws -> ReceiverProcess
    {
        try ReceiverProcess(
            ["--bucket-url", url ?? store.access.url, "--credentials-file", keys] + arguments,
            environment: ["TMPDIR": folder.path + "/bodies"],
            in: "s3://\(store.access.bucket)/via"
        )
    }

    /// Counts the records in the whole bucket, and their distinct ids.
    package func counts() throws -> Counts {
        let rows = try store.contents().rows
        return Counts(
            records: rows.reduce(0) { $0 + $1.records },
            ids: rows.reduce(0) { $0 + $1.ids }
        )
    }
}

extension ReceiverProcess {
    /// Sends a batch under a key from a new source address.
    package func post(_ key: String, _ body: [UInt8], token: String = "t") throws
        -> RawClient.Answer
    {
        try request(RawRequest.head(key, length: body.count, token: token), body)
    }
}

/// Distributes connections over ports in turn and skips closed ones, like a load balancer.
package final class Balancer {
    private static let script = """
        import asyncio, itertools, sys
        ports = [int(port) for port in sys.argv[1].split(",")]
        turn = itertools.count()
        async def pump(reader, writer):
            try:
                while data := await reader.read(65536):
                    writer.write(data)
                    await writer.drain()
                writer.write_eof()
            except OSError:
                writer.close()
        async def serve(reader, writer):
            for _ in ports:
                try:
                    there = await asyncio.open_connection("127.0.0.1", ports[next(turn) % len(ports)])
                except OSError:
                    continue
                await asyncio.gather(pump(reader, there[1]), pump(there[0], writer))
                there[1].close()
                break
            writer.close()
        async def main():
            server = await asyncio.start_server(serve, "127.0.0.1", 0)
            print(server.sockets[0].getsockname()[1], flush=True)
            await server.serve_forever()
        asyncio.run(main())
        """
    private let server: StubServer

    package init(_ receivers: [ReceiverProcess]) throws {
        server = try StubServer(
            Self.script,
            receivers.map { "\($0.port)" }.joined(separator: ",")
        )
    }

    deinit { server.stop() }

    package var port: UInt16 { UInt16(server.port) ?? 0 }
}
