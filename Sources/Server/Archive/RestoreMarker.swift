// The mark of a restore that has not ended.
import Host

/// The file in the data folder that keeps a server from starting until a restore is complete.
enum RestoreMarker {
    static let name = ".receiver-restore"

    /// Throws a `Failure` if a restore into a folder has not ended.
    static func expectEnded(in directory: String) throws {
        let path = "\(directory)/\(name)"
        guard fileKind(path) != 0 else { return }
        throw Failure(
            "a restore into \(directory) was refused or interrupted: run it again, or delete \(path) to start "
                + "with what is there"
        )
    }
}
