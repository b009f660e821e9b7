// The output of an export.
import CLinux
import Glibc
import Host

/// Writes an export to a file that appears once complete, to standard output, or to a device.
final class ExportFile {
    private static let blockSize = 64 << 10

    private let file: WholeFile
    private let modified: WallTime?
    private var block: [UInt8] = []

    /// `isNamedByUs`: a person chose only the folder, so that a link of the name is replaced.
    ///
    /// `holdsAudio`: only the owner and the group may read it, because people's voices may be in
    /// it. `modified`: its modification time; nil for now.
    init(
        _ path: String?,
        isNamedByUs: Bool = false,
        holdsAudio: Bool = false,
        modified: WallTime? = nil
    ) throws {
        self.modified = modified
        guard let path, path != "-" else {
            file = WholeFile(inPlace: Descriptor(owning: dup(STDOUT_FILENO)), "standard output")
            return
        }
        do throws(SystemError) {
            if isNamedByUs || Self.isReplaced(path) {
                file = try WholeFile(path, suffix: ".part", mode: holdsAudio ? 0o640 : 0o644)
            } else {
                let device = try Descriptor(opening: path, O_WRONLY | O_TRUNC)
                file = WholeFile(inPlace: device, path)
            }
        } catch {
            throw Failure("\(error)")
        }
    }

    /// Returns whether a path is a new or regular file, not a device, pipe or link (`/dev/null`).
    private static func isReplaced(_ path: String) -> Bool {
        [0, S_IFREG].contains(fileKind(path))
    }

    func write(_ bytes: [UInt8]) throws {
        keep(bytes)
        try pour()
    }

    /// Buffers bytes for `pour`; never blocks.
    func keep(_ bytes: [UInt8]) { block += bytes }

    /// Writes the buffer once it holds a block; may block.
    func pour() throws { if block.count >= Self.blockSize { try flush() } }

    private func flush() throws {
        do { try file.append(block) } catch { throw Failure("\(error)") }
        block.removeAll(keepingCapacity: true)
    }

    func close() throws {
        try flush()
        modified?.setModification(of: file.file.number)
        do { try file.finish(isSynced: false) } catch { throw Failure("\(error)") }
    }

    /// Syncs the file system, so that a stick can be pulled out once the command has ended.
    static func sync(_ path: String) throws {
        var status = stat()
        guard stat(path, &status) != 0 || [S_IFREG, S_IFDIR].contains(status.st_mode & S_IFMT)
        else { return }
        do { try syncFileSystem(of: path) } catch { throw Failure("\(error)") }
    }
}
