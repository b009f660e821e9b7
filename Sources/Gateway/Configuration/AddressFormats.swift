// The kinds of text that name a place: paths, URLs, network and radio addresses, devices.
internal import Glibc
internal import Queue
package import Streams

extension ValueFormat where Value == String {
    /// An absolute path, which a message never shows: a token may have been put in its place.
    static func path(limit: Int = 1024) -> Self {
        .discreetText(
            "an absolute path of at most \(limit) bytes",
            parse: { text in
                pathProblem(text, limit: limit).map { .failure(Mismatch($0)) } ?? .success(text)
            },
            written: { $0 }
        )
    }

    static let deviceID = ValueFormat.text(
        "\"auto\", or 1 to 64 of the characters A-Z a-z 0-9 . _ -, no dot first",
        parse: { text in
            DeviceID.problem(text).map { .failure(Mismatch($0)) } ?? .success(text)
        },
        written: { $0 }
    )

    /// A name on the wire, which a receiver may make a folder of.
    static let streamName = ValueFormat.text(
        "1 to 64 of the characters A-Z a-z 0-9 _ -, a letter first",
        parse: { text in
            let bytes = text.utf8
            let safe = bytes.allSatisfy { $0.isLetter || $0.isDigit || $0 == 95 || $0 == 45 }
            guard (1...64).contains(bytes.count), bytes.first?.isLetter == true, safe else {
                return .failure(Mismatch("\"\(printable(text))\" is no stream name"))
            }
            return .success(text)
        },
        written: { $0 }
    )

    static let endpoint = ValueFormat.discreetText(
        "a URL such as https://host/api/ingest",
        parse: { text in
            switch Endpoint.parse(text) {
            case .success: .success(text)
            case .failure(let mismatch): .failure(mismatch)
            }
        },
        written: { $0 }
    )

    static let publicKeyPin = ValueFormat.text(
        "sha256//, then the 44 characters of a SHA-256 in base64 (several split by ;)",
        parse: { text in
            let pins = text.split(separator: ";", omittingEmptySubsequences: false)
            guard pins.allSatisfy(isPublicKeyPin) else {
                return .failure(Mismatch("\"\(printable(text))\" is no pin"))
            }
            return .success(text)
        },
        written: { $0 }
    )
}

private func pathProblem(_ path: String, limit: Int) -> String? {
    let bytes = path.utf8
    if bytes.isEmpty { return "is empty" }
    if bytes.first != UInt8(ascii: "/") { return "is no absolute path: it does not begin with /" }
    if bytes.contains(where: { $0 < 32 || $0 == 127 }) { return "holds a control character" }
    return bytes.count > limit ? "is longer than \(limit) bytes" : nil
}

private func isPublicKeyPin(_ pin: Substring) -> Bool {
    guard pin.hasPrefix("sha256//") else { return false }
    let digest = pin.dropFirst(8).utf8
    let isBase64 = digest.dropLast().allSatisfy {
        $0.isLetter || $0.isDigit || $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "/")
    }
    return digest.count == 44 && digest.last == UInt8(ascii: "=") && isBase64
}

extension ValueFormat where Value == BeaconSource {
    static let source = ValueFormat.text(
        "hciN (as hci0), btsnoop:PATH or h4:HOST:PORT",
        parse: { text in
            let refused = Mismatch("\"\(printable(text))\" is no source")
            if text.hasPrefix("btsnoop:") {
                let path = String(text.dropFirst(8))
                let safe = !path.isEmpty && path.utf8.allSatisfy { $0 >= 32 && $0 != 127 }
                return safe ? .success(.capture(path: path)) : .failure(refused)
            }
            if text.hasPrefix("h4:") {
                let address = HostPort(text.dropFirst(3))
                return address.map { .success(.controller($0)) } ?? .failure(refused)
            }
            let digits = text.dropFirst(3).utf8
            guard text.hasPrefix("hci"), digits.allSatisfy(\.isDigit),
                let number = UInt16(Substring(digits))
            else { return .failure(refused) }
            return .success(.adapter(Int(number)))
        },
        written: \.description
    )
}

extension ValueFormat where Value == HostPort {
    static let hostPort = ValueFormat.text(
        "host:port, as localhost:2947 or [::1]:2947",
        parse: { text in
            HostPort(text[...]).map { .success($0) }
                ?? .failure(Mismatch("\"\(printable(text))\" is no host:port"))
        },
        written: \.description
    )
}

extension HostPort {
    /// Reads `host:port`, an IPv6 address in brackets; nil for anything else.
    init?(_ text: Substring) {
        guard let colon = text.lastIndex(of: ":") else { return nil }
        let digits = text[text.index(after: colon)...]
        guard digits.utf8.allSatisfy(\.isDigit), let port = UInt16(digits), port > 0,
            let host = Self.host(text[..<colon])
        else { return nil }
        self.init(host: host, port: port)
    }

    /// A host as URLs write it, without the brackets of an IPv6 address; nil if it is none.
    static func host(_ text: Substring) -> String? {
        if text.hasPrefix("["), text.hasSuffix("]") {
            let address = String(text.dropFirst().dropLast())
            return isIPv6(address) ? address : nil
        }
        let bytes = text.utf8
        let safe = bytes.allSatisfy {
            $0.isLetter || $0.isDigit || [UInt8(ascii: "."), 45, 95].contains($0)
        }
        let ends = [bytes.first, bytes.last]
        guard (1...253).contains(bytes.count), safe, !ends.contains(45), bytes.first != 46 else {
            return nil
        }
        return String(text)
    }
}

extension ValueFormat where Value == [String] {
    /// ALSA PCM names in one text, split by commas as the file has it.
    ///
    static let devices = ValueFormat.text(
        "ALSA PCM names, separated by commas",
        parse: { text in
            let names = pcmNames(text)
            let safe = names.allSatisfy { name in
                !name.isEmpty && name.utf8.count <= 128 && name.utf8.allSatisfy { $0 > 31 }
            }
            guard safe else {
                return .failure(Mismatch("\"\(printable(text))\" holds an empty or unusable name"))
            }
            return .success(names)
        },
        written: { $0.joined(separator: ", ") }
    )

    /// Patterns of beacons: an address, a beacon id or `kind:` and a kind, `*` for any characters.
    static let patterns = ValueFormat.list(
        "an array of addresses, beacon ids or kind:KIND, each with * for any characters"
    ) { pattern in
        let bytes = pattern.utf8
        guard (1...128).contains(bytes.count), bytes.allSatisfy({ $0 > 32 && $0 < 127 }) else {
            return "\"\(printable(pattern))\" is no pattern"
        }
        guard pattern.hasPrefix("kind:"), !pattern.contains("*") else { return nil }
        let kinds = BeaconKind.allCases.map(\.name)
        if kinds.contains(String(pattern.dropFirst(5))) { return nil }
        return "\"\(pattern)\" names no kind (\(kinds.joined(separator: ", ")))"
    }
}

/// The names of a comma-separated list, although a PCM's own arguments are split by commas too.
///
/// After a name with a colon, a number and a part with `=` but no colon are its arguments
/// (`hw:0,0`, `hw:CARD=Mic,DEV=0`), and so is all within `'…'` (`plug:'hw:0,0'`).
private func pcmNames(_ text: String) -> [String] {
    var names: [String] = []
    for part in splitAtCommas(text) {
        let isNumber = !part.isEmpty && part.utf8.allSatisfy(\.isDigit)
        let isArgument = isNumber || part.contains("=") && !part.contains(":")
        if let last = names.last, isArgument && last.contains(":") || last.hasOpenQuote {
            names[names.count - 1] = "\(last),\(part)"
        } else {
            names.append(part)
        }
    }
    return names
}

extension String {
    fileprivate var hasOpenQuote: Bool {
        utf8.reduce(0) { $0 + ($1 == UInt8(ascii: "'") ? 1 : 0) } % 2 == 1
    }
}

extension ValueFormat where Value == [BluetoothAddress: [UInt8]] {
    /// One key a call from the file, all of them at once from the environment; no message shows a key.
    static let bindkeys = ValueFormat(
        allowed: "32 hexadecimal digits under an address, as \"A4:C1:38:00:00:01\" = \"…\"",
        read: { literal in
            switch literal {
            case .member(let address, .string(let key)):
                return bindkey(address, key).map { [$0: $1] }
            case .unquoted(let text):
                return bindkeyList(text)
            default:
                return .failure(Mismatch("found \(literal.foundKind)"))
            }
        },
        // Keys are secrets: `show` says how many there are instead.
        written: { _ in "{}" }
    )
}

private typealias Bindkey = (BluetoothAddress, [UInt8])

private func bindkey(_ address: String, _ key: String) -> Result<Bindkey, Mismatch> {
    guard let address = BluetoothAddress(address) else {
        return .failure(Mismatch("stands under a name that is no address"))
    }
    guard let bytes = hexadecimal(key), bytes.count == 16 else {
        return .failure(Mismatch("is no key of 16 bytes"))
    }
    return .success((address, bytes))
}

private func bindkeyList(_ text: String) -> Result<[BluetoothAddress: [UInt8]], Mismatch> {
    var keys: [BluetoothAddress: [UInt8]] = [:]
    for part in splitAtCommas(text) {
        guard let sign = part.firstIndex(of: "=") else {
            return .failure(Mismatch("found no ADDRESS=KEY"))
        }
        switch bindkey(String(part[..<sign]), String(part[part.index(after: sign)...])) {
        case .success(let (address, key)): keys[address] = key
        case .failure(let mismatch): return .failure(mismatch)
        }
    }
    return .success(keys)
}

extension BluetoothAddress {
    /// Reads `C6:00:11:22:33:44`, either case; nil for anything else.
    package init?(_ text: String) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 6, parts.allSatisfy({ $0.utf8.count == 2 }),
            let bytes = hexadecimal(parts.joined())
        else { return nil }
        self.init(value: bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
    }
}

/// The bytes of an even number of hexadecimal digits; nil for anything else.
private func hexadecimal(_ text: String) -> [UInt8]? {
    let digits = text.utf8.map { byte -> UInt8? in
        switch byte {
        case 48...57: byte - 48
        case 65...70: byte - 55
        case 97...102: byte - 87
        default: nil
        }
    }
    let known = digits.compactMap { $0 }
    guard known.count == digits.count, known.count % 2 == 0 else { return nil }
    return stride(from: 0, to: known.count, by: 2).map { known[$0] << 4 | known[$0 + 1] }
}

func isIPv6(_ text: String) -> Bool {
    var address = in6_addr()
    return !text.utf8.contains(0) && inet_pton(AF_INET6, text, &address) == 1
}

extension UInt8 {
    /// An ASCII digit.
    var isDigit: Bool { (48...57).contains(self) }

    /// An ASCII letter.
    var isLetter: Bool { (65...90).contains(self) || (97...122).contains(self) }
}
