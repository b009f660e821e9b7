// The real program with a bucket as its destination: enrolment, kill -9, status.
import Foundation
import Glibc
import Support
import Testing

@Suite(.serialized) struct BucketSystemTests {
    private final class Fixture: Device {
        let store: ObjectStore

        init(faults: [String]) throws {
            store = try ObjectStore(faults: faults)
            try super.init()
            try write(
                """
                [default]
                aws_access_key_id = \(store.access.id)
                aws_secret_access_key = \(store.access.secret)
                """,
                "s3",
                mode: 0o600
            )
            try configure(
                """
                device_id = "pi-1"
                [upload]
                destination = "s3"
                bucket_url = "\(store.access.url)"
                credentials_file = "\(folder)/s3"
                compression = "zstd"
                interval = "500ms"
                [beacons]
                source = "btsnoop:\(Tree.path("Tests/Fixtures/beacons/capture.btsnoop"))"
                replay_speed = 0
                """
            )
        }

        /// The number of records that the gateway believes to be stored, by stream.
        func uploaded() throws -> [String: Int] {
            let streams = try status()["streams"] as? [String: [String: Any]] ?? [:]
            return streams.compactMapValues { $0["uploaded"] as? Int }.filter { $0.value > 0 }
        }

        /// Waits until records of a stream are stored and none is pending.
        func waitForUpload(of stream: String) throws {
            try waitUntil("uploads of \(stream)") {
                try (try? uploaded())?[stream] != nil && run("sync", "--wait", "30").status == 0
            }
        }
    }

    @Test func killBeforeCommit_storesSameObject_eachRecordOnce() throws {
        let fixture = try Fixture(faults: ["hang"])
        try fixture.launch()
        // Its answer never arrives.
        var hung = fixture.store.nextPut()
        while !hung.hasPrefix("hang ") { hung = fixture.store.nextPut() }
        fixture.killDaemon()
        try fixture.launch()
        try fixture.waitForUpload(of: "linux_bluez_beacons")
        let uploaded = try fixture.uploaded()
        fixture.killDaemon()
        let contents = try fixture.store.contents()
        let key = String(hung.dropFirst("hang ".count))
        #expect(contents.objects[key] == "application/zstd")
        let stored = contents.rows.reduce(into: [:]) { $0[$1.stream, default: 0] += $1.records }
        #expect(stored == uploaded)
        #expect(contents.rows.allSatisfy { $0.ids == $0.records && $0.device == "pi-1" })
        // Collecting began only once the bucket had accepted a first object.
        #expect(contents.objects["_waypost/device=pi-1.json"] == "application/json")
        #expect(FileManager.default.fileExists(atPath: fixture.folder + "/state/enrolled"))
    }

    @Test func keys_areShownNowhere() throws {
        let fixture = try Fixture(faults: ["403", "403", "403"])
        try fixture.launch()
        var status = ""
        try waitUntil("E002") {
            status = try fixture.run("status", "--json").output
            return status.contains("E002")
        }
        #expect(status.contains("the store refused the keys"))
        let shown = try fixture.run("config", "show").output
        #expect(shown.contains("destination = \"s3\""))
        for text in [status, shown, try fixture.run("status").output] {
            #expect(!text.contains(fixture.store.access.secret))
            #expect(!text.contains(fixture.store.access.id))
        }
    }
}
