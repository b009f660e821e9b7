// The Bluetooth address of an adapter of this machine.
import CBlueZ
import Host
package import Records

/// Returns the address of `hciN`; nil if it is not there, or has none yet.
package func bluetoothAddress(ofAdapter number: Int) -> BluetoothAddress? {
    guard let socket = try? KernelSocket.open(for: "hci\(number)") else { return nil }
    let value = waypost_hci_address(socket.number, UInt16(truncatingIfNeeded: number))
    return value == 0 ? nil : BluetoothAddress(value: value)
}
