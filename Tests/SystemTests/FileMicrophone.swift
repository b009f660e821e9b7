// A microphone without a sound card: a file that ALSA plays as a capture device.

/// Returns an ALSA configuration whose device `mic` captures the raw bytes of a file.
func fileMicrophone(_ path: String) -> String {
    """
    pcm.null { type null }
    pcm.mic {
        type file
        slave.pcm { type null }
        file /dev/null
        infile "\(path)"
        format raw
    }
    """
}
