// What is fuzzed: everything that reads bytes from outside.

/// A function of any bytes: it must return, soon, without a crash and within bounds.
///
/// To add one, write the function beside its like, put it into `all`, and some good and bad inputs into
/// `Tests/Fuzz/corpus/NAME/`.
package struct FuzzTarget: Sendable {
    /// Its name on the command line and of its corpus.
    package var name: String
    /// Traps where a result breaks a promise.
    package var run: @Sendable ([UInt8]) -> Void

    package init(name: String, run: @escaping @Sendable ([UInt8]) -> Void) {
        (self.name, self.run) = (name, run)
    }
}

/// Cuts an input into pieces, each after a byte of its length; the last may be shorter.
package func pieces(_ input: [UInt8]) -> [ArraySlice<UInt8>] {
    var pieces: [ArraySlice<UInt8>] = []
    var rest = input[...]
    while let length = rest.popFirst() {
        pieces.append(rest.prefix(Int(length)))
        rest = rest.dropFirst(Int(length))
    }
    return pieces
}
