// Folders that a pruning is deleting.
import Foundation

package enum PrunedFolder {
    /// Begins the names of these folders.
    package static let prefix = ".receiver-pruned-"

    /// Returns whether a path is, or is in, a folder that is being deleted.
    package static func contains(_ path: String) -> Bool { path.contains(prefix) }
}
