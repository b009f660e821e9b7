// A page in Debian's Chromium.
import Foundation
import Support

/// An open page; `ask` evaluates JavaScript in it.
package final class Tab {
    package static let isThere = FileManager.default.isExecutableFile(atPath: "/usr/bin/chromium")

    private let (input, output) = (Pipe(), Pipe())
    private let process: Process

    /// `zone`: the browser's time zone.
    package init(_ browser: PageClient, _ path: String, zone: String = "UTC") throws {
        let address = "http://127.0.0.1:\(browser.port)\(path)"
        let script = Tree.path("Tests/Peers/browser.py")
        process = try .started(
            "/usr/bin/python3",
            [script, "--ask", browser.session, address],
            input: input,
            output: output,
            environment: ["TZ": zone]
        )
    }

    package func ask(_ script: String) throws -> String {
        try input.fileHandleForWriting.write(contentsOf: Data("\(script)\n".utf8))
        var line = ""
        while !line.hasSuffix("\n") {
            let part = output.fileHandleForReading.availableData
            guard !part.isEmpty else { throw NeverHappened(what: "an answer to \(script)") }
            line += String(decoding: part, as: UTF8.self)
        }
        return line.trimmingCharacters(in: .newlines)
    }

    package func waitFor(_ value: String, of script: String) throws {
        try waitUntil("\(value) of \(script)") { try ask(script) == value }
    }

    /// Presses the button of a text.
    package func press(_ text: String) throws {
        _ = try ask(
            "[...document.querySelectorAll('button')].find(one => one.textContent === '\(text)').click()"
        )
    }

    /// Returns JavaScript that sends the events of a pointer to a plot.
    ///
    /// `figure`: JavaScript that finds the plot's figure. `x`: pixels from the graph's left, as
    /// JavaScript with its `width`.
    package static func pointer(_ events: [String], on figure: String, x: String) -> String {
        """
        (() => { const canvas = [...\(figure).querySelectorAll('.graph canvas')].at(-1); \
        const { left, top, width } = canvas.getBoundingClientRect(), \
        options = { bubbles: true, cancelable: true, clientX: left + \(x), clientY: top + 40 }; \
        for (const name of \(events)) canvas.dispatchEvent(new MouseEvent(name, options)) })()
        """
    }

    deinit {
        try? input.fileHandleForWriting.close()
        process.waitUntilExit()
    }
}
