// The error of a codec's library.
import COpus

/// An error of a library that converts audio: its call, and the reason in its own words.
package struct CodecError: Error, CustomStringConvertible {
    package let description: String

    init(_ call: String, _ reason: String) { description = "\(call): \(reason)" }

    /// An error of libopus.
    package init(opus call: String, code: Int32) {
        self.init(call, String(cString: opus_strerror(code)))
    }
}
