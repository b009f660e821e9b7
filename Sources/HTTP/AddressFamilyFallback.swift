// Over which family of addresses a server is reached.
import CCurl

/// Remembers that nothing comes through over IPv6; used by the transport's thread only.
///
/// libcurl goes over IPv4 by itself where IPv6 does not connect. Where it connects and swallows what is long, as a tunnel does that
/// tells nobody its limit, each try would end as the one before.
final class AddressFamilyFallback {
    private(set) var avoidsIPv6 = false

    /// Another network is another way.
    func forget() { avoidsIPv6 = false }

    /// How a request ended, over a connection to `address`; true where the other way has not been tried.
    func turns(_ code: CURLcode, address: String) -> Bool {
        guard code != CURLE_OK else { return false }
        let wasAvoiding = avoidsIPv6
        avoidsIPv6 = !wasAvoiding && code == CURLE_OPERATION_TIMEDOUT && address.contains(":")
        // There may be no IPv4 at all.
        let isNoWay = code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_CONNECT
        return avoidsIPv6 || wasAvoiding && isNoWay
    }
}
