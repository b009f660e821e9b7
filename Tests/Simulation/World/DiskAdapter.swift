// Adapts the simulated disk to the queue.
internal import Queue
internal import SQLite
internal import SimulatedDisk

/// Performs the queue's file operations outside SQLite on a simulated disk.
struct DiskAdapter: QueueDisk {
    let disk: SimulatedDisk

    var vfs: String? { disk.vfs }

    func exists(_ path: String) -> Bool { disk.exists(path) }

    func size(_ path: String) -> Int64 { disk.size(path) ?? 0 }

    func rename(_ path: String, to other: String) throws -> Bool {
        guard disk.exists(path) else { return false }
        try disk.rename(path, to: other)
        return true
    }

    func remove(_ path: String) -> Bool { (try? disk.remove(path)) != nil }

    func names(in folder: String) -> [String] { disk.names(in: folder) }

    func read(_ path: String, at place: Int64, count: Int) throws -> [UInt8] {
        guard disk.size(path) != nil else { return [] }
        do { return try disk.read(path, at: place, count: count) } catch {
            throw SQLiteError(code: 10, message: "\(path) cannot be read", statement: "")
        }
    }

    func write(_ path: String, _ bytes: [UInt8]) throws {
        if disk.exists(path) { try disk.truncate(path, to: 0) }
        try disk.write(path, at: 0, bytes)
        try disk.sync(path)
    }

    func writeAgain(_ path: String) throws {
        guard let size = disk.size(path), size > 0 else { return }
        do {
            try disk.write(path, at: 0, try disk.read(path, at: 0, count: Int(size)))
            try disk.sync(path)
        } catch {
            throw SQLiteError(code: 10, message: "\(path) cannot be written", statement: "")
        }
    }

    func extend(_ path: String, to bytes: Int64) throws {
        // Memory has no sparse files, and a damaged header may ask for a terabyte.
        guard bytes <= 1 << 30 else {
            throw SQLiteError(code: 11, message: "\(path) would be too large", statement: "")
        }
        do {
            try disk.truncate(path, to: bytes)
            try disk.sync(path)
        } catch {
            throw SQLiteError(code: 10, message: "\(path) cannot be changed", statement: "")
        }
    }

    func reserve(_ path: String, bytes: Int64) -> Bool {
        do {
            try disk.allocate(path, bytes: bytes)
            return true
        } catch {
            try? disk.remove(path)
            return false
        }
    }

    func free(_ folder: String) -> Int64? { min(1 << 40, disk.freeBytes) }
}
