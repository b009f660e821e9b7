// The result of decoding an advertisement.
package import Records

/// The decoded contents of one advertisement.
package struct DecodedBeacon: Sendable, Equatable {
    package var kind: BeaconKind
    /// nil if the payload has no id; see `identifier`.
    package var beaconID: String?
    /// dBm at 1 m.
    package var txPower: Int?
    package var telemetry = Telemetry()
    /// The payload, only if no decoder can read it.
    package var data: [UInt8] = []
    /// The address in the payload.
    package var device: BluetoothAddress?
    /// The sensor's sequence number or counter for this measurement; nil if the payload has none.
    package var mark: MeasurementMark?
    /// The encrypted payload that `BTHomeKeys` decrypts.
    package var sealed: SealedPayload?

    /// Returns the id for a record: that of the payload, else the sender's address, else empty.
    ///
    /// A private address (resolvable or not) changes every few minutes, so it identifies nothing.
    package func identifier(
        _ address: BluetoothAddress,
        _ type: AddressType
    ) -> String {
        beaconID ?? (type == .public || type == .randomStatic ? address.description : "")
    }
}
