// Gives each file of an export a name of its own.

/// The names of the files that one export has written.
package struct UsedNames {
    private let style: FileNames
    private var names: Set<String> = []

    package init(_ style: FileNames = .waypost) { self.style = style }

    /// Returns the name of a recording's file; a second file of that name gets a number.
    ///
    /// A clock that was set back can give two recordings one start.
    package mutating func name(of recording: Recording, type: String) -> String {
        var (number, name) = (1, recording.fileName(type: type, names: style))
        while !names.insert(name).inserted {
            number += 1
            name = recording.fileName(type: type, number: number, names: style)
        }
        return name
    }
}
