// The answer of `waypost` to a command that it does not have.
import Foundation
import Support
import Testing

@Suite struct UnknownCommandTests {
    private func run(_ arguments: String...) throws -> Outcome {
        try Process.run(Tree.program("waypost"), arguments)
    }

    @Test func misspelledCommand_getsTheNearestName() throws {
        let outcome = try run("statsu", "--json")
        #expect(outcome.status == 64)
        #expect(outcome.error == "waypost: unknown command statsu; did you mean status?\n")
    }

    @Test func otherArguments_areArgumentParsers() throws {
        #expect(try run("help", "status").status == 0)
        let outcome = try run("nonsense")
        #expect(outcome.status == 64)
        #expect(outcome.error.contains("Unexpected argument 'nonsense'"))
    }
}
