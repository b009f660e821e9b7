// The reason why the receiver cannot start, for the person who started it.
import Foundation

/// A setting or an installed file that cannot be used, with the reason.
package struct StartError: Error, CustomStringConvertible {
    package var description: String

    package init(_ description: String) { self.description = description }

    package init(_ what: String, _ cause: any Error) {
        // Prefers the system's reason over the text of a Cocoa error.
        let under = (cause as NSError).userInfo[NSUnderlyingErrorKey] as? POSIXError
        let reason = under.map { String(cString: strerror($0.code.rawValue)) } ?? "\(cause)"
        description = "\(what): \(reason)"
    }
}
