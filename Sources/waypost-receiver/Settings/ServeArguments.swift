// Turns the configuration file of `serve --config` into options.
import ArgumentParser
import Configuration

/// The command line of `serve`, with the values of its configuration file as options before it.
///
/// The later option counts, so the command line wins over the file, and one code checks both.
struct ServeArguments {
    private let given: [String]
    /// The configuration file; nil without one, or for another command.
    private let file: String?

    init(_ given: [String]) {
        self.given = given
        let isServe = given.first.map { $0 == "serve" || $0.hasPrefix("-") } ?? false
        file = isServe ? Self.file(in: given) : nil
    }

    private static func file(in given: [String]) -> String? {
        let option = "--config"
        for (index, word) in given.enumerated().reversed() {
            if word.hasPrefix(option + "=") { return String(word.dropFirst(option.count + 1)) }
            if word == option, index + 1 < given.count { return given[index + 1] }
        }
        return nil
    }

    /// Parses the command of a program; ends the process with status 64 or, for errors of the file, 78.
    func command(of program: any ParsableCommand.Type) -> any ParsableCommand {
        do {
            guard let file else { return try program.parseAsRoot(given) }
            let rest = given.first == "serve" ? Array(given.dropFirst()) : given
            let options = Self.options(try ReceiverSettings.load(file).values)
            return try program.parseAsRoot(["serve"] + options + rest)
        } catch let errors as ConfigurationErrors {
            report("\(errors)")
        } catch {
            let isOfFile =
                file != nil && !program.exitCode(for: error).isSuccess
                && (try? program.parseAsRoot(given)) != nil
            guard let file, isOfFile else { program.exit(withError: error) }
            report("\(file): as options: \(program.message(for: error))")
        }
        program.exit(withError: ExitCode(78))
    }

    static func options(_ settings: ReceiverSettings) -> [String] {
        ReceiverSettings.table.literals(settings).flatMap { path, value -> [String] in
            let name = path.replacing("_", with: "-")
            return switch value {
            case .string(let text): ["--\(name)=\(text)"]
            case .integer(let number): ["--\(name)=\(number)"]
            case .boolean(let isOn): [isOn ? "--\(name)" : "--no-\(name)"]
            case .strings(let texts): texts.map { "--\(name)=\($0)" }
            default: []
            }
        }
    }
}
