// Folders that a pruning is deleting.
import Foundation

enum PrunedFolder {
    /// Begins the names of these folders.
    static let prefix = ".receiver-pruned-"

    /// Returns whether a path is, or is in, a folder that is being deleted.
    static func contains(_ path: String) -> Bool { path.contains(prefix) }
}
