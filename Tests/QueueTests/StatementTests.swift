import SQLite
import Support
import Testing

import Queue
import QueueSupport

/// Reuse of prepared statements.
@Suite struct StatementTests {
    private let folder: TemporaryFolder

    init() throws { folder = TemporaryFolder() }

    private func open() throws -> Connection {
        let connection = try Connection(path: folder.database, access: .readWrite)
        try connection.execute("CREATE TABLE t(a); INSERT INTO t VALUES (1), (2), (3)")
        return connection
    }

    @Test func reusedStatement_startsWithoutBindings() throws {
        let connection = try open()
        let sql = "SELECT a, ? FROM t ORDER BY a"
        for _ in 0..<3 {
            let rows = try connection.prepare(sql)
            var found = [try rows.step() ? rows.integer(1) : -1]
            rows.reset()
            try rows.bind([7], from: 1)
            found.append(try rows.step() ? rows.integer(1) : -1)
            #expect(found == [nil, 7])
        }
    }

    @Test func sameStatementTwiceAtOnce_areTwo() throws {
        let connection = try open()
        let sql = "SELECT a FROM t ORDER BY a"
        let outer = try connection.prepare(sql)
        var pairs = 0
        while try outer.step() {
            let inner = try connection.prepare(sql)
            while try inner.step() { pairs += 1 }
        }
        #expect(pairs == 9)
    }

    /// An unfinished statement holds no lock, and is correct after its table was replaced.
    @Test func changeOfTheSchema_isSeen() throws {
        let connection = try open()
        try connection.execute("PRAGMA synchronous=OFF")
        for name in 0..<80 {
            #expect(try connection.integer("SELECT max(a) FROM t") == Int64(3 + name))
            #expect(try connection.integer("SELECT a+\(name) FROM t") == Int64(1 + name))
            try connection.execute("ALTER TABLE t RENAME TO old; CREATE TABLE t(b, a)")
            try connection.execute(
                "INSERT INTO t SELECT 0, a+(a=(SELECT max(a) FROM old)) FROM old"
            )
            try connection.execute("DROP TABLE old")
        }
    }

    /// A queue driven by a test is released with its last reference: its files are closed.
    @Test func queueByHand_goesWithWhoeverHasIt() throws {
        weak var gone: Queue?
        do {
            let queue = try Queue(at: folder.database) {
                $0.isTurnedByHand = true
            }.flushed()
            gone = queue
            #expect(folder.openFiles > 0)
        }
        #expect(gone == nil)
        #expect(folder.openFiles == 0)
    }
}
