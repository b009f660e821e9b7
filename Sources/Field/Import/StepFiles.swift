// Durable file operations: each change is on disk when its call returns.
import CLinux
import Glibc
import Host

/// Writes, renames and removes files, with fsync after each step.
package struct StepFiles: Sendable {
    /// Called after each system call that changes something; a test throws here for a power cut.
    var onStep: @Sendable (_ call: String, _ path: String) throws -> Void = { _, _ in }
    /// Called before a file is opened for writing; a test throws here for a disk error.
    var onOpen: @Sendable (_ path: String) throws -> Void = { _ in }

    package init() {}

    /// Makes a folder durably; an existing one is not changed.
    func makeFolder(_ path: String, mode: mode_t) throws {
        guard mkdir(path, mode) == 0 else {
            let error = SystemError.last("mkdir", on: path)
            if error.code == EEXIST { return }
            throw error
        }
        try onStep("mkdir", path)
        try sync(folder(ofPath: path))
    }

    /// Makes or replaces a file atomically: a power cut leaves the old one or the new one.
    func replace(_ path: String, _ text: String, mode: mode_t, owner: FileOwner? = nil) throws {
        let new = path + ".new"
        try write(new, text, mode: mode, owner: owner)
        try rename(new, to: path)
    }

    /// Makes a file in a folder that is not in use yet.
    func write(_ path: String, _ text: String, mode: mode_t, owner: FileOwner? = nil) throws {
        try remove(path)
        let file = try open(path, O_CREAT | O_EXCL, mode)
        try onStep("open", path)
        // Before it has content.
        if let owner { try file.give(to: owner, path) }
        guard fchmod(file.number, mode) == 0 else { throw SystemError.last("chmod", on: path) }
        try write(Array(text.utf8), to: file, path)
    }

    func rename(_ path: String, to new: String) throws {
        guard Glibc.rename(path, new) == 0 else { throw SystemError.last("rename", on: new) }
        try onStep("rename", new)
        try sync(folder(ofPath: new))
    }

    /// Removes a file or an empty folder durably, if it is there.
    func remove(_ path: String) throws {
        guard Glibc.remove(path) == 0 else {
            let error = SystemError.last("remove", on: path)
            if error.code == ENOENT { return }
            // A read-only file system refuses before it checks that the file exists.
            if error.code == EROFS, access(path, F_OK) != 0, errno == ENOENT { return }
            throw error
        }
        try onStep("remove", path)
        try sync(folder(ofPath: path))
    }

    /// Overwrites a file's bytes in place on the disk.
    ///
    /// The first sector is synced before the next is written, because disks write sectors in any
    /// order and the first one shows whether the rest is complete.
    func overwrite(_ path: String, with bytes: [UInt8]) throws {
        let file = try open(path)
        for part in [bytes.prefix(Self.sector), bytes.dropFirst(Self.sector)] where !part.isEmpty {
            try write(Array(part), to: file, path)
        }
    }

    private static let sector = 512

    func sync(_ folder: String) throws {
        try syncFolder(folder)
        try onStep("fsync", folder)
    }

    // MARK: Calls

    private func open(
        _ path: String,
        _ flags: Int32 = 0,
        _ mode: mode_t = 0
    ) throws -> Descriptor {
        try onOpen(path)
        return try Descriptor(opening: path, O_WRONLY | O_NOFOLLOW | flags, mode: mode)
    }

    private func write(
        _ bytes: [UInt8],
        to file: borrowing Descriptor,
        _ path: String
    ) throws {
        try file.write(whole: bytes, path)
        try onStep("write", path)
        try file.sync(path)
        try onStep("fsync", path)
    }
}
