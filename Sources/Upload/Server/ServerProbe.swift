// Checks whether the server can be reached and when its certificate expires.
import CCurl
import Glibc
package import Host
package import HTTP

/// Tests name resolution, connection and TLS, each with its own error message; sends no request.
package enum ServerProbe {
    /// Returns the addresses of a host as text.
    ///
    /// Throws a Failure with the resolver's message.
    package static func addresses(of host: String) throws -> [String] {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, nil, &hints, &list)
        guard code == 0 else {
            throw Failure("\(host): \(String(cString: gai_strerror(code)))", code: .network)
        }
        defer { freeaddrinfo(list) }
        var found: [String] = []
        var entry = list
        while let address = entry?.pointee {
            var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
            let size = socklen_t(text.count)
            if getnameinfo(address.ai_addr, address.ai_addrlen, &text, size, nil, 0, NI_NUMERICHOST)
                == 0
            {
                found.append(
                    String(
                        decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)),
                        as: UTF8.self
                    )
                )
            }
            entry = address.ai_next
        }
        return found
    }

    /// A proxy that libcurl takes from the environment.
    package struct Proxy: Sendable, Equatable {
        /// The variable that sets it, such as `https_proxy`.
        package var variable: String
        /// Its address, without user name and password.
        package var address: String

        /// Environment variables that set a proxy or exempt hosts from it.
        package static let variables = [
            "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy",
            "NO_PROXY",
        ]
    }

    /// Returns the proxy that requests to a server go through; nil for a direct connection.
    package static func proxy(
        of settings: TransportSettings,
        host: String,
        isEncrypted: Bool,
        environment: [String: String]
    ) -> Proxy? {
        let value = { (name: String) in environment[name].flatMap { $0.isEmpty ? nil : $0 } }
        let direct = value("no_proxy") ?? value("NO_PROXY") ?? ""
        let isDirect = direct.split { $0 == "," || $0 == " " }.contains { name in
            let name = name.hasPrefix(".") ? name.dropFirst() : name
            return name == "*" || host == name || host.hasSuffix(".\(name)")
        }
        guard !settings.staysOnThisMachine, !isDirect else { return nil }
        let names = isEncrypted ? ["https_proxy", "HTTPS_PROXY"] : ["http_proxy"]
        for name in names + ["all_proxy", "ALL_PROXY"] {
            guard let address = value(name) else { continue }
            let shown = address.split(separator: "@").last.map { String($0) } ?? address
            return Proxy(variable: name, address: shown)
        }
        return nil
    }

    /// Connects, with TLS if the URL asks for it; returns from when until when the certificate is
    /// valid, nil without TLS.
    ///
    /// Throws a Failure with libcurl's message. Pass `isVerified` false to inspect a certificate
    /// that is rejected.
    package static func connect(
        _ settings: TransportSettings,
        isVerified: Bool = true
    ) throws -> ClosedRange<WallTime>? {
        guard Transport.isInitialised, let easy = curl_easy_init() else {
            throw Failure("libcurl cannot be used")
        }
        defer { curl_easy_cleanup(easy) }
        var message = [CChar](repeating: 0, count: Int(CURL_ERROR_SIZE))
        waypost_curl_set_string(easy, CURLOPT_URL, settings.endpoint)
        waypost_curl_set_long(easy, CURLOPT_CONNECT_ONLY, 1)
        waypost_curl_set_long(easy, CURLOPT_CERTINFO, 1)
        waypost_curl_set_long(easy, CURLOPT_NOSIGNAL, 1)
        waypost_curl_set_long(easy, CURLOPT_CONNECTTIMEOUT_MS, Int(settings.timeout.milliseconds))
        waypost_curl_set_long(easy, CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
        // Nothing is sent over the connection, so an unverified server learns nothing.
        waypost_curl_set_long(easy, CURLOPT_SSL_VERIFYPEER, isVerified ? 1 : 0)
        if let file = settings.certificateFile {
            waypost_curl_set_string(easy, CURLOPT_CAINFO, file)
        }
        if settings.staysOnThisMachine { waypost_curl_set_string(easy, CURLOPT_NOPROXY, "*") }
        let code = message.withUnsafeMutableBufferPointer { message in
            waypost_curl_set_pointer(easy, CURLOPT_ERRORBUFFER, message.baseAddress)
            return curl_easy_perform(easy)
        }
        guard code == CURLE_OK else {
            let own = String(
                decoding: message.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)),
                as: UTF8.self
            )
            let reason = own.isEmpty ? String(cString: curl_easy_strerror(code)) : own
            let advice = ConnectionAdvice.text(code, own, settings.names)
            throw Failure(reason + advice, code: .network)
        }
        let dates: [Int64] = ["Start date:", "Expire date:"].compactMap { (field: String) in
            waypost_curl_certificate(easy, field).map { Int64(curl_getdate($0, nil)) }
        }
        guard dates.count == 2, dates[0] >= 0, dates[0] <= dates[1] else { return nil }
        return WallTime(milliseconds: dates[0] * 1000)...WallTime(milliseconds: dates[1] * 1000)
    }
}
