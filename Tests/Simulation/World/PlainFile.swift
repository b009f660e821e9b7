// Reads whole files of the host machine.
internal import Glibc

enum PlainFile {
    static func read(_ path: String) -> [UInt8]? {
        guard let file = fopen(path, "rb") else { return nil }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 65_536)
        while case let count = fread(&part, 1, part.count, file), count > 0 {
            bytes += part[..<count]
        }
        return bytes
    }
}
