// The name of this board, and whether this program is emulated on it.
import Host

/// The processor that this program was built for, as the kernel names it.
private let ownProcessor: String? = {
    #if arch(arm64)
    "aarch64"
    #elseif arch(x86_64)
    "x86_64"
    #else
    nil
    #endif
}()

extension SystemFiles {
    /// Words of makers who did not write a name.
    private static let noNames = [
        "", "default string", "system product name", "to be filled by o.e.m.",
    ]

    /// The model of the device tree, which a PC does not have.
    var deviceTreeModel: String? {
        text("/proc/device-tree/model").map { String($0.prefix { $0 != "\0" }) }
    }

    /// The model of the device tree; of a PC maker and name from its firmware (DMI).
    var model: String? {
        deviceTreeModel ?? dmiName("sys_vendor", "product_name")
            ?? dmiName("board_vendor", "board_name")
    }

    private func dmiName(_ maker: String, _ name: String) -> String? {
        let words = [maker, name].map { text("/sys/class/dmi/id/\($0)") ?? "" }
            .map { Self.noNames.contains($0.lowercased()) ? "" : $0 }
        return words[1].isEmpty ? nil : words.filter { !$0.isEmpty }.joined(separator: " ")
    }

    /// The processor that this program was built for, with a warning where another one emulates it.
    var program: String? {
        guard let own = ownProcessor, let kernels = processor, kernels != own else {
            return ownProcessor
        }
        return "\(own), emulated: memory and CPU include the emulator"
    }

    /// The kernel's name of the processor that it runs on.
    var processor: String? { text("/proc/sys/kernel/arch") }
}
