// Falls back to IPv4 when IPv6 connects but loses data.
import CCurl

/// Remembers that requests over IPv6 time out.
///
/// libcurl itself falls back to IPv4 if IPv6 does not connect. If IPv6 connects but drops large
/// packets, as a tunnel that hides its MTU does, every retry would fail like the one before.
struct AddressFamilyFallback {
    private(set) var avoidsIPv6 = false

    /// Forgets it, as on another network IPv6 may work.
    mutating func forget() { avoidsIPv6 = false }

    /// Records the outcome of a request to `address`; returns true if the other family should be
    /// tried.
    mutating func turns(_ code: CURLcode, address: String) -> Bool {
        guard code != CURLE_OK else { return false }
        let wasAvoiding = avoidsIPv6
        avoidsIPv6 = !wasAvoiding && code == CURLE_OPERATION_TIMEDOUT && address.contains(":")
        // The network may have no IPv4 at all.
        let isNoWay = code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_CONNECT
        return avoidsIPv6 || wasAvoiding && isNoWay
    }
}
