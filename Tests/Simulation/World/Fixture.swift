// Databases of earlier versions, used as the first state of a device.
internal import SimulatedDisk

/// The recorded databases beside the tests.
enum Fixture {
    /// Returns the bytes of a version's database; nil if there is none.
    static func bytes(_ version: Int) -> [UInt8]? {
        let here = #filePath
        let tests = here.split(separator: "/").dropLast(3).joined(separator: "/")
        return PlainFile.read("/\(tests)/Fixtures/store/version\(version).sqlite")
    }

    static func install(_ version: Int, as path: String, on disk: SimulatedDisk) {
        guard let bytes = bytes(version) else { return }
        try? disk.write(path, at: 0, bytes)
        try? disk.sync(path)
    }
}
