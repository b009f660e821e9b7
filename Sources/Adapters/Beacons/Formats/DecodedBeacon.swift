// What a decoder makes of an advertisement.
package import Records

/// What one advertisement says, as far as a decoder knows it.
package struct DecodedBeacon: Sendable, Equatable {
    package var kind: BeaconKind
    /// nil where the payload carries none: the device's address stands for it.
    package var beaconID: String?
    /// dBm at 1 m.
    package var txPower: Int?
    package var telemetry = Telemetry()
    /// The payload, only where no decoder can read it.
    package var data: [UInt8] = []
    /// The address in the payload.
    package var device: BluetoothAddress?
    /// What tells this measurement from the next; nil where the payload has nothing of the kind.
    package var mark: MeasurementMark?
    /// What a key has to open first (BTHome).
    package var sealed: SealedPayload?

    /// The id that a record has: that of the payload, else the sender's address, else none.
    ///
    /// A private address (resolvable or not) is another one every few minutes, so it identifies nothing.
    package func identifier(
        _ address: BluetoothAddress,
        _ type: AddressType
    ) -> String {
        beaconID ?? (type == .public || type == .randomStatic ? address.description : "")
    }
}
