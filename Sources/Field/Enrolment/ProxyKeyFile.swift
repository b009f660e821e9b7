// Makes the key file of the Bluetooth proxy (`waypost config proxy-key`).
import Configuration
import Glibc
package import Host
import Proxy
package import Setup

/// The file in which a device keeps the key of its Bluetooth proxy.
package struct ProxyKeyFile {
    package let path: String
    private let owner: ServiceOwner

    /// `configuration`: the file's path; the key file that it names, else `proxy.key` beside it.
    package init(configuration: String, environment: [String: String]) {
        let values = Configuration.validParts(path: configuration, environment: environment)
        path = values.proxy.keyFile ?? folder(ofPath: absolute(configuration)) + "/proxy.key"
        owner = ServiceOwner(stateDirectory: values.stateDirectory)
    }

    /// Returns the key in the file, or makes one; `replaces`: also in place of the one that is there.
    ///
    /// `isNew`: it was made. Throws a `Failure` with the file, the problem and the remedy.
    package func key(replaces: Bool) throws(Failure) -> (key: ProxyKey, isNew: Bool) {
        let key = ProxyKey.random()
        let content = Array("\(key.base64)\n".utf8)
        do throws(SystemError) {
            if replaces {
                try SmallFile.replace(path, content, mode: 0o600, owner: owner.ids)
                return (key, true)
            }
            let name = String(
                path[path.index(after: path.lastIndex(of: "/") ?? path.startIndex)...]
            )
            let isMade = try SmallFile.create(
                name,
                in: folder(ofPath: path),
                content,
                mode: 0o600,
                owner: owner.ids
            )
            if isMade { return (key, true) }
        } catch {
            let step = error.code == EACCES ? "; `sudo waypost config proxy-key` may" : ""
            throw Failure("\(path): cannot be written: \(error.reason)\(step)")
        }
        return (try ProxyKey.read(path), false)
    }
}
