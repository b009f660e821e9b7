// Runs each input of the server's corpora through its target.
import FuzzSupport
import Testing

@Suite struct ReceiverCorpusTests {
    @Test(arguments: FuzzTarget.receiver.map(\.name))
    func everyInput_isTakenOrRefused(name: String) throws {
        try Corpus.run(try #require(FuzzTarget.receiver.first { $0.name == name }))
    }

    @Test func eachCorpus_hasItsTarget() throws {
        let names = try Corpus.names().filter { $0.hasPrefix("receiver-") }
        #expect(names == Set(FuzzTarget.receiver.map(\.name)))
        #expect(names.count == FuzzTarget.receiver.count)
    }
}
