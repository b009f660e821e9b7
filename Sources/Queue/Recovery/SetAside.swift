// A quarantined database, as the status shows it.

/// A quarantined database whose file still exists.
package struct SetAside: Sendable, Equatable {
    package var path: String
    /// Its records that are not uploaded yet; nil while it is still being read.
    package var waiting: Int?
    /// It was readable, and had other tables than this version makes.
    package var hasOtherTables = false

    /// The memo that says so.
    static func tablesMemo(_ path: String) -> String { "tables of \(DatabaseFile.name(path))" }
}
