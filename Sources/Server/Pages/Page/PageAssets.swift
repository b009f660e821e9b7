// The pages' own scripts, style sheet and icon, which are installed with the program.
import Foundation
import Host
import ServerBase
import ServerWeb

/// The files of `Pages/Assets`, read once at the start.
struct PageAssets: Sendable {
    private static let types = [
        "icon.svg": "image/svg+xml", "style.css": WebLibraries.sheet,
        "live.js": WebLibraries.script, "plots.js": WebLibraries.script,
        "days.js": WebLibraries.script,
        "map.js": WebLibraries.script, "sound.js": WebLibraries.script,
        "spectrogram.js": WebLibraries.script,
    ]

    /// By their addresses; each belongs to no session.
    let answers: [String: HTTPAnswer]

    /// Throws a `StartError` if a file is missing.
    init(folder: String = Self.folder(of: "/proc/self/exe")) throws {
        var answers: [String: HTTPAnswer] = [:]
        for (name, type) in Self.types.sorted(by: { $0.key < $1.key }) {
            let path = "\(folder)/\(name)"
            do throws(SystemError) {
                let bytes = try SmallFile.read(path, limit: WebLibraries.largest).bytes
                answers["/\(name)"] = HTTPAnswer(200, type: type, bytes, cache: "max-age=300")
            } catch {
                throw StartError(
                    "the pages cannot be shown without \(path) (\(error.reason)); "
                        + "run: apt install --reinstall waypost-receiver"
                )
            }
        }
        self.answers = answers
    }

    /// Returns `PREFIX/share/waypost-receiver/assets` for `PREFIX/bin/waypost-receiver`, or if that
    /// is missing, the folder of the sources for a program in a build folder.
    static func folder(of program: String) -> String {
        let folders = URL(fileURLWithPath: program).resolvingSymlinksInPath().path.split(
            separator: "/"
        ).dropLast()
        let prefix = folders.dropLast().map { "/\($0)" }.joined()
        let installed = "\(prefix)/share/waypost-receiver/assets"
        // First: whoever may write above the program must not choose its scripts.
        if fileKind(installed) == S_IFDIR { return installed }
        for count in (1...max(1, folders.count)).reversed() {
            let sources =
                "/\(folders.prefix(count).joined(separator: "/"))/Sources/Server/Pages/Assets"
            if fileKind(sources) == S_IFDIR { return sources }
        }
        return installed
    }
}
