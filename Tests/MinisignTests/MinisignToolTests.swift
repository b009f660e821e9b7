// The real minisign, in both directions.
import Foundation
import Host
import Support
import Testing

@testable import Minisign

@Suite(.enabled(if: Tree.hasTool("minisign"), "minisign is not here: deploy/test installs it"))
struct MinisignToolTests {
    private let folder = TemporaryFolder()

    /// Runs minisign with files of the folder, and `input` for its question for a password.
    private func minisign(_ arguments: [String], input: String = "") throws -> Outcome {
        let arguments = arguments.map { $0.contains(".") ? "\(folder.path)/\($0)" : $0 }
        return try Process.run(Tree.tool("minisign"), arguments, input: input)
    }

    /// Makes a key without a password, and writes the message.
    private func prepare(_ message: String) throws -> MinisignSecretKey {
        let made = try minisign(["-G", "-W", "-p", "key.pub", "-s", "key.sec"])
        #expect(made.status == 0, "\(made)")
        try folder.write(message, to: "message.txt")
        return try MinisignSecretKey(try folder.read("key.sec"))
    }

    @Test(arguments: [0, 1, 128, 200_000])
    func signaturesOfMinisign_verify(_ length: Int) throws {
        let message = String(repeating: "\n", count: length)
        let publicHalf = try prepare(message).publicKey
        let key = try MinisignPublicKey(try folder.read("key.pub"))
        #expect(key == publicHalf)
        for options in [["-t", "set by hand"], [], ["-l"]] {
            let sign = ["-S", "-s", "key.sec", "-m", "message.txt", "-x", "message.sig"]
            let signed = try minisign(sign + options)
            #expect(signed.status == 0, "\(signed)")
            let signature = try MinisignSignature(try folder.read("message.sig"))
            #expect(signature.algorithm == (options == ["-l"] ? .legacy : .prehashed))
            try key.verify(signature, of: Array(message.utf8))
            #expect(throws: Failure.self) {
                try key.verify(signature, of: Array("\(message).".utf8))
            }
        }
    }

    @Test(arguments: [0, 1, 128, 200_000])
    func minisign_acceptsOurSignatures(_ length: Int) throws {
        let message = String(repeating: "\n", count: length)
        let key = try prepare(message)
        let long = String(repeating: "x", count: 700)
        for comment in ["settings 12", "", "tab\there", "Łódź", long] {
            let signature = try key.sign(Array(message.utf8), trustedComment: comment)
            try folder.write(signature.text, to: "message.sig")
            let verify = ["-V", "-H", "-p", "key.pub", "-m", "message.txt", "-x", "message.sig"]
            let verified = try minisign(verify)
            #expect(verified.status == 0, "\(verified)")
            #expect(verified.output.contains("Trusted comment: \(comment)\n"))
            try folder.write("\(message).", to: "message.txt")
            #expect(try minisign(verify).status != 0)
            try folder.write(message, to: "message.txt")
        }
    }

    @Test func encryptedKey_isTheSameForBoth() throws {
        try folder.write(Vectors.encryptedKey, to: "key.sec")
        try folder.write(Vectors.otherPublicKey, to: "key.pub")
        try folder.write("Waypost\n", to: "message.txt")
        let sign = ["-S", "-s", "key.sec", "-m", "message.txt", "-x", "message.sig", "-t", "both"]
        let password = String(decoding: Vectors.password, as: UTF8.self)
        let signed = try minisign(sign, input: "\(password)\n")
        #expect(signed.status == 0, "\(signed)")
        let key = try MinisignSecretKey(Vectors.encryptedKey, password: Vectors.password)
        let ours = try key.sign(Array("Waypost\n".utf8), trustedComment: "both").text
        let theirs = try folder.read("message.sig")
        #expect(Mutation(ours).lines.dropFirst() == Mutation(theirs).lines.dropFirst())
        #expect(try minisign(sign, input: "\(password) \n").status != 0)
    }
}
