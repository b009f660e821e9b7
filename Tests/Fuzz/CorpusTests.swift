// Runs each input of the corpus through its target, so that earlier findings stay covered.
import FuzzSupport
import Testing

@Suite struct CorpusTests {
    @Test(arguments: FuzzTarget.gateway.map(\.name))
    func everyInput_isTakenOrRefused(name: String) throws {
        try Corpus.run(try #require(FuzzTarget.gateway.first { $0.name == name }))
    }

    @Test func eachCorpus_hasItsTarget() throws {
        let names = try Corpus.names().filter { !$0.hasPrefix("receiver-") }
        #expect(names == Set(FuzzTarget.gateway.map(\.name)))
        #expect(names.count == FuzzTarget.gateway.count)
    }
}
