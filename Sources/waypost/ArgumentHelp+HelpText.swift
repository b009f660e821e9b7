// Parts of the help that the commands share.
import ArgumentParser

extension ArgumentHelp {
    /// Returns a help text whose usage shows `name` for the value, such as FILE.
    static func value(_ name: String, _ text: String) -> ArgumentHelp {
        ArgumentHelp(text, valueName: name)
    }
}

/// Returns the end of a command's help: what a person may type.
func examples(_ lines: String...) -> String {
    "\n\nExamples:\n" + lines.map { "  \($0)" }.joined(separator: "\n")
}
