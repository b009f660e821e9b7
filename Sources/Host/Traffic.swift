// Counts of bytes on the wire.

/// Bytes that HTTP sent and received, headers and retries included.
package struct Traffic: Sendable, Equatable {
    package var sent: Int64
    package var received: Int64

    package init(sent: Int64 = 0, received: Int64 = 0) {
        self.sent = sent
        self.received = received
    }

    package var total: Int64 { sent + received }

    package static func + (left: Self, right: Self) -> Self {
        Self(sent: left.sent + right.sent, received: left.received + right.received)
    }

    package static func - (left: Self, right: Self) -> Self {
        Self(sent: left.sent - right.sent, received: left.received - right.received)
    }
}
