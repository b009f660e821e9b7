// Writes the live recording as WAV or bare samples.
import Audio
import AudioFiles
import Host

/// The form of the output of `waypost listen`.
package enum AudioFormat: String, Sendable, CaseIterable {
    /// A WAV file whose length is not known, as a pipe needs it.
    case wav
    /// Samples without a header: 16 bits, signed, little-endian.
    case s16le
}

/// Turns pieces into the bytes of one unbroken file of one rate.
package struct AudioOutput {
    private let format: AudioFormat
    /// Samples per second; the recording's own from the first piece on.
    private var rate: Int?
    private var hasBegun = false
    private var resampler: Resampler?
    /// The rate that `resampler` converts from.
    private var from = 0

    package init(_ format: AudioFormat, rate: Int?) { (self.format, self.rate) = (format, rate) }

    /// Returns the next bytes of the file; throws an error of the resampler.
    package mutating func bytes(_ piece: AudioPiece) throws -> [UInt8] {
        let rate = rate ?? piece.header.rate
        self.rate = rate
        let samples = try convert(piece, to: rate)
        let header = hasBegun || format == .s16le ? [] : WaveFile.header(rate: rate, frames: .max)
        hasBegun = true
        return header + samples.littleEndianBytes
    }

    /// Returns the samples at `rate`; the filter starts again after each gap.
    private mutating func convert(_ piece: AudioPiece, to rate: Int) throws -> [Int16] {
        if piece.header.rate == rate { return piece.samples }
        if resampler == nil || from != piece.header.rate {
            from = piece.header.rate
            resampler = try Resampler(from: from, to: rate)
        } else if piece.isAfterGap {
            resampler?.reset()
        }
        var samples: [Int16] = []
        resampler?.convert(piece.samples.map(\.fullScale), into: &samples)
        return samples
    }
}

extension Int16 {
    /// With full scale 1.
    var fullScale: Float { Float(self) / 32_768 }
}
