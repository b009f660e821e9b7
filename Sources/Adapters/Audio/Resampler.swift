// Converts audio from the device's sample rate to `audio.rate`, with a low-pass filter.
import CSpeexDSP

/// Owns a resampler of libspeexdsp: one channel, windowed sinc.
///
/// Quality 8: from 44.1, 48, 32 and 96 to 16 kHz, anything above 8 kHz is below -100 dB, the band
/// is flat within 0.5 dB to 7.4 kHz, and an hour of audio takes a few seconds. libsamplerate's
/// medium sinc is as good and several times slower; libasound's own converter has no filter.
package final class Resampler {
    private static let quality: Int32 = 8
    /// Frames converted per call.
    private static let block = 4800

    private let state: OpaquePointer
    private let from: Int
    private let to: Int
    /// Frames received and returned since the start.
    private var framesIn: Int64 = 0
    private var framesOut: Int64 = 0
    private var output: [Float]

    /// Rates in frames per second; throws the library's error if out of memory.
    package init(from: Int, to: Int) throws(CodecError) {
        var code: Int32 = 0
        guard
            let state = speex_resampler_init(1, UInt32(from), UInt32(to), Self.quality, &code)
        else {
            let reason = String(cString: speex_resampler_strerror(code))
            throw CodecError("speex_resampler_init", reason)
        }
        self.state = state
        self.from = from
        self.to = to
        output = [Float](repeating: 0, count: Self.block * to / from + 64)
        // Skips the filter's delay: the first frame out is at the time of the first frame in.
        speex_resampler_skip_zeros(state)
    }

    deinit {
        speex_resampler_destroy(state)
    }

    /// Resets the filter.
    package func reset() {
        speex_resampler_reset_mem(state)
        speex_resampler_skip_zeros(state)
        framesIn = 0
        framesOut = 0
    }

    /// Converts all of `input` (full scale 1) and appends the result.
    package func convert(_ input: [Float], into samples: inout [Int16]) {
        framesIn += Int64(input.count)
        push(input, maximum: .max, into: &samples)
    }

    /// Appends the frames still in the filter, so that output matches input in length.
    package func finish(into samples: inout [Int16]) {
        let due = (framesIn * Int64(to) + Int64(from) - 1) / Int64(from)
        let zeros = Int(speex_resampler_get_input_latency(state)) + from / to + 1
        push([Float](repeating: 0, count: zeros), maximum: due, into: &samples)
    }

    /// Converts input and appends the result, until `maximum` frames have been output since the start.
    private func push(_ input: [Float], maximum: Int64, into samples: inout [Int16]) {
        var at = 0
        while at < input.count {
            var taken = UInt32(min(Self.block, input.count - at))
            var made = UInt32(output.count)
            input.withUnsafeBufferPointer { input in
                guard let start = input.baseAddress else { return }
                _ = speex_resampler_process_float(state, 0, start + at, &taken, &output, &made)
            }
            // Prevents an endless loop if the filter neither reads nor writes.
            guard taken > 0 || made > 0 else { return }
            at += Int(taken)
            let kept = Int(min(Int64(made), max(0, maximum - framesOut)))
            framesOut += Int64(kept)
            for value in output.prefix(kept) { samples.append(Int16(fullScale: value)) }
        }
    }
}

extension Int16 {
    /// The nearest sample for a value with full scale 1.
    init(fullScale value: Float) {
        self = Int16(Swift.max(-32_768, Swift.min(32_767, (value * 32_768).rounded())))
    }
}
