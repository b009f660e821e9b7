// The device's rate to ours, with a proper low-pass filter.
import CSpeexDSP

/// Owns a resampler of libspeexdsp: one channel, windowed sinc.
///
/// Quality 8: from 44.1, 48, 32 and 96 to 16 kHz what lies above 8 kHz comes out below -100 dB, the band is flat
/// within 0.5 dB to 7.4 kHz, and an hour of sound costs a few seconds. libsamplerate's medium sinc is as good
/// and costs several times that; libasound's own converter has no filter at all.
final class Resampler {
    private static let quality: Int32 = 8
    /// Input that is converted at a time.
    private static let block = 4800

    private let state: OpaquePointer
    private let from: Int
    private let to: Int
    /// Frames taken in and given out since the start.
    private var framesIn: Int64 = 0
    private var framesOut: Int64 = 0
    private var output: [Float]

    /// Rates in frames a second; throws the library's own code where there is no memory.
    init(from: Int, to: Int) throws(ResamplerError) {
        var code: Int32 = 0
        guard
            let state = speex_resampler_init(1, UInt32(from), UInt32(to), Self.quality, &code)
        else { throw ResamplerError(code: code) }
        self.state = state
        self.from = from
        self.to = to
        output = [Float](repeating: 0, count: Self.block * to / from + 64)
        // The filter's delay is left out: the first frame out stands at the first frame in.
        speex_resampler_skip_zeros(state)
    }

    deinit {
        speex_resampler_destroy(state)
    }

    /// Begins anew, as if nothing had gone through.
    func reset() {
        speex_resampler_reset_mem(state)
        speex_resampler_skip_zeros(state)
        framesIn = 0
        framesOut = 0
    }

    /// Converts all of `input` (full scale 1) and appends what comes of it.
    func convert(_ input: [Float], into samples: inout [Int16]) {
        framesIn += Int64(input.count)
        push(input, most: .max, into: &samples)
    }

    /// Appends what is still in the filter, so that as much comes out as went in.
    func finish(into samples: inout [Int16]) {
        let due = (framesIn * Int64(to) + Int64(from) - 1) / Int64(from)
        let zeros = Int(speex_resampler_get_input_latency(state)) + from / to + 1
        push([Float](repeating: 0, count: zeros), most: due, into: &samples)
    }

    /// Gives out no more than `most` frames in all.
    private func push(_ input: [Float], most: Int64, into samples: inout [Int16]) {
        var at = 0
        while at < input.count {
            var taken = UInt32(min(Self.block, input.count - at))
            var made = UInt32(output.count)
            input.withUnsafeBufferPointer { input in
                guard let start = input.baseAddress else { return }
                _ = speex_resampler_process_float(state, 0, start + at, &taken, &output, &made)
            }
            // A filter that takes nothing and gives nothing would keep us here.
            guard taken > 0 || made > 0 else { return }
            at += Int(taken)
            let kept = Int(min(Int64(made), max(0, most - framesOut)))
            framesOut += Int64(kept)
            for value in output.prefix(kept) { samples.append(Int16(fullScale: value)) }
        }
    }
}

/// libspeexdsp refused, with its own message.
struct ResamplerError: Error, CustomStringConvertible {
    var code: Int32

    var description: String {
        "speex_resampler_init: \(String(cString: speex_resampler_strerror(code)))"
    }
}

extension Int16 {
    /// The nearest sample to a value whose full scale is 1.
    init(fullScale value: Float) {
        self = Int16(Swift.max(-32_768, Swift.min(32_767, (value * 32_768).rounded())))
    }
}
