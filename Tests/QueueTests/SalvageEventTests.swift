// The event that reports a salvage.
import Foundation
import Support
import Testing

import Queue
import QueueSupport
import Records

@Suite struct SalvageEventTests {
    /// The database that reported the previous salvage is damaged itself.
    @Test func salvage_isReportedOnce_acrossManyDatabases() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        queue.accept(testSighting(0))
        try queue.flushed()
        for round in 1...3 {
            try queue.damage()
            var files: [String] = []
            try queue.reader().events(1...100) { _, kind, _, detail in
                guard kind == "database_salvaged" else { return }
                let object = try JSONSerialization.jsonObject(with: Data(detail.utf8))
                files.append((object as? [String: Any])?["database"] as? String ?? "")
            }
            #expect(files.count == 1, "round \(round): \(files)")
        }
        queue.close()
    }
}
