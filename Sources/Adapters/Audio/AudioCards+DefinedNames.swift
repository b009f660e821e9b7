// Tells which names of sound devices the ALSA configuration defines.
import CALSA

extension AudioCards {
    /// Returns the plain names, alone or behind `plug:`, that neither ALSA's own files nor
    /// `asound.conf` define; names of cards are left out, because a card may be plugged in later.
    package static func undefinedNames(_ devices: [String]) -> [String] {
        waypost_alsa_silence()
        guard let configuration = ALSAConfiguration() else { return [] }
        return devices.filter { device in
            let name = DeviceName.slave(of: device) ?? device
            guard !name.contains(":"), !name.hasPrefix("usb-") else { return false }
            return !configuration.defines("pcm.\(name)")
        }
    }
}

/// The ALSA configuration of this machine, as libasound reads it to open a device by name.
private struct ALSAConfiguration: ~Copyable {
    private let handle: OpaquePointer

    /// nil if libasound cannot read its own files: opening a device reports that.
    init?() {
        var top: OpaquePointer?
        guard snd_config_update_ref(&top) >= 0, let top else { return nil }
        handle = top
    }

    deinit { snd_config_unref(handle) }

    borrowing func defines(_ key: String) -> Bool {
        var found: OpaquePointer?
        return snd_config_search(handle, key, &found) >= 0
    }
}
