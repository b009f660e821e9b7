// Microphones without a sound card, which give sound in real time.
import Foundation
import Support
import Testing

/// Builds the tests' plug-in of libasound (Tests/FieldFaults/soundfaults.c) in a folder.
///
/// Returns an ALSA configuration with a device of this name, which has `more` settings.
func soundPlugin(in folder: String, device: String, _ more: String) throws -> String {
    let library = folder + "/soundfaults.so"
    let compiler = try Process.run(
        "/usr/bin/env",
        ["cc", "-shared", "-fPIC", "-O1", "-o", library]
            + [Tree.path("Tests/FieldFaults/soundfaults.c"), "-lasound", "-lm"]
    )
    try #require(compiler.status == 0, "\(compiler.error)")
    try Data(count: 64).write(to: URL(fileURLWithPath: folder + "/mic-control"))
    return """
        pcm_type.waypost_mic { lib "\(library)" }
        pcm.\(device) {
            type waypost_mic
            control "\(folder)/mic-control"
            formats "S16_LE"
            channels 1
            \(more)
        }

        """
}

/// Returns an ALSA configuration whose device `mic` plays the raw bytes of a file in a loop; or
/// those of a FIFO, which it waits for.
func fileMicrophone(_ path: String, isFIFO: Bool = false) throws -> String {
    let folder = URL(fileURLWithPath: path).deletingLastPathComponent().path
    let rates = "rates \"8000 16000 48000\""
    guard isFIFO else {
        return try soundPlugin(in: folder, device: "mic", "\(rates) file \"\(path)\"")
    }
    return try soundPlugin(in: folder, device: "raw", rates) + """
        pcm.mic {
            type file
            slave.pcm raw
            file /dev/null
            infile "\(path)"
            format raw
        }

        """
}
