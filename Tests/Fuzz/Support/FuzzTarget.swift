// The interface of fuzz targets, which cover every parser of external bytes.

/// A function of arbitrary bytes, which must return soon, without a crash and within bounds.
///
/// To add one, write the function beside similar ones, add it to `all`, and put some valid and
/// invalid inputs into `Tests/Fuzz/corpus/NAME/`.
package struct FuzzTarget: Sendable {
    /// The name on the command line and of the corpus.
    package var name: String
    /// Runs the target; traps if a result breaks an invariant.
    package var run: @Sendable ([UInt8]) -> Void

    package init(name: String, run: @escaping @Sendable ([UInt8]) -> Void) {
        (self.name, self.run) = (name, run)
    }
}

/// Cuts an input into pieces, each preceded by a length byte; the last may be shorter.
package func pieces(_ input: [UInt8]) -> [ArraySlice<UInt8>] {
    var pieces: [ArraySlice<UInt8>] = []
    var rest = input[...]
    while let length = rest.popFirst() {
        pieces.append(rest.prefix(Int(length)))
        rest = rest.dropFirst(Int(length))
    }
    return pieces
}
