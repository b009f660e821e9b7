// Plain files on a simulated disk: a program's file operations outside SQLite, and damage.
internal import CSimulatedDisk

/// A failed operation on a simulated disk, with its errno.
package struct DiskError: Error, Equatable, CustomStringConvertible {
    package var code: Int32

    package init(code: Int32) {
        self.code = code
    }

    package var description: String { "simulated disk: errno \(code)" }
}

extension SimulatedDisk {
    // MARK: Inspection: not counted as operations, never fails

    /// All names, sorted.
    package var files: [String] {
        var names: [String] = []
        while let name = waypost_disk_file(disk, names.count) {
            names.append(String(cString: name))
        }
        return names.sorted()
    }

    /// Returns the names in a folder: their last path components, sorted.
    package func names(in folder: String) -> [String] {
        let prefix = folder.hasSuffix("/") ? folder : folder + "/"
        return files.filter { $0.hasPrefix(prefix) }.map { String($0.dropFirst(prefix.count)) }
            .filter { !$0.contains("/") }
    }

    /// Returns a hash of a file that files with other bytes hardly ever share.
    package func fingerprint(_ path: String) -> UInt64 { waypost_disk_fingerprint(disk, path) }

    package func exists(_ path: String) -> Bool { waypost_disk_size(disk, path) >= 0 }

    package func size(_ path: String) -> Int64? {
        let bytes = waypost_disk_size(disk, path)
        return bytes >= 0 ? bytes : nil
    }

    /// Returns all bytes of a file as they read, synced or not.
    package func contents(_ path: String) -> [UInt8]? {
        guard let size = size(path) else { return nil }
        // Safe because the bytes are copied before anything can change them.
        let bytes = UnsafeRawBufferPointer(start: waypost_disk_bytes(disk, path), count: Int(size))
        return Array(bytes)
    }

    // MARK: Operations

    /// Renames a file and replaces one of the new name; open handles stay with their file.
    package func rename(_ path: String, to other: String) throws(DiskError) {
        try check(waypost_disk_rename(disk, path, other))
    }

    package func remove(_ path: String) throws(DiskError) {
        try check(waypost_disk_remove(disk, path))
    }

    /// Truncates a file, or extends it with zeros that take no space.
    package func truncate(_ path: String, to bytes: Int64) throws(DiskError) {
        try check(waypost_disk_truncate(disk, path, bytes))
    }

    /// Reserves space for a file like `posix_fallocate`, creating it if needed; ENOSPC leaves an
    /// empty file.
    package func allocate(_ path: String, bytes: Int64) throws(DiskError) {
        try check(waypost_disk_allocate(disk, path, bytes))
    }

    /// Reads up to `count` bytes.
    package func read(_ path: String, at offset: Int64, count: Int) throws(DiskError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var length: Int64 = 0
        try check(waypost_disk_read(disk, path, offset, &bytes, Int64(count), &length))
        return Array(bytes.prefix(Int(length)))
    }

    /// Writes into a file, creating it if needed.
    package func write(_ path: String, at offset: Int64, _ bytes: [UInt8]) throws(DiskError) {
        try check(waypost_disk_write(disk, path, offset, bytes, Int64(bytes.count)))
    }

    /// Makes the file durable, and all earlier changes of names.
    package func sync(_ path: String) throws(DiskError) {
        try check(waypost_disk_sync(disk, path))
    }

    // MARK: Damage: durable at once, with all earlier writes of the file

    /// Overwrites bytes.
    package func damage(_ path: String, at offset: Int64, with bytes: [UInt8]) throws(DiskError) {
        try check(waypost_disk_damage(disk, path, offset, bytes, Int64(bytes.count)))
    }

    /// Truncates a file; 0 empties it.
    package func damage(_ path: String, cutTo bytes: Int64) throws(DiskError) {
        try check(waypost_disk_damage_size(disk, path, bytes))
    }

    /// Removes a file.
    package func damage(removing path: String) throws(DiskError) {
        try check(waypost_disk_damage_remove(disk, path))
    }

    private func check(_ code: Int32) throws(DiskError) {
        guard code == 0 else { throw DiskError(code: code) }
    }
}
