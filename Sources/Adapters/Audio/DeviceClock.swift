// Maps a device's frames to capture times on our clock.
import Host

/// Tracks a device's clock, because a quartz is up to about 100 ppm off, nine seconds per day.
///
/// A Kalman filter with two states, the capture time of the newest frame and the duration of a
/// frame, over pairs of (frames captured, time). It starts with an uncertainty of 1000 ppm for the
/// device's rate and 10 ms for each reading. Settled, it averages over about seven minutes and
/// follows a quartz that warms up.
struct DeviceClock {
    /// Variance of a reading, in s²; wake-ups and periods delay readings.
    private static let noise = 1e-4
    /// Drift of the rate: 1 ppm in five minutes, as s²/s² per second.
    private static let wander = 1e-12 / 300
    private static let firstRateError = 1e-3

    /// Nominal seconds per frame.
    private let nominal: Double
    /// The estimated relative excess of a frame's duration over that.
    private(set) var rateError = 0.0
    /// A frame and its estimated capture time, in seconds after `origin`.
    private var frame = 0.0
    private var moment = 0.0
    private var origin: BootInstant?
    /// The covariance of capture time and rate error.
    private var covariance = (moment: noise, mixed: 0.0, rate: firstRateError * firstRateError)

    /// `rate`: the device's nominal frames per second.
    init(rate: Int) {
        nominal = 1 / Double(rate)
    }

    /// Updates the estimate: `captured` frames had been captured at `time`.
    mutating func observe(captured: Int64, at time: BootInstant) {
        guard let origin else {
            origin = time
            frame = Double(captured)
            return
        }
        let step = (Double(captured) - frame) * nominal
        guard step > 0 else { return }
        predict(step)
        frame = Double(captured)
        let spread = covariance.moment + Self.noise
        // An outlier, caused by a delay of ours, counts no more than a reading at the limit.
        let limit = 3 * spread.squareRoot()
        let error = max(-limit, min(limit, (time - origin).inSeconds - moment))
        let gain = (moment: covariance.moment / spread, rate: covariance.mixed / spread)
        moment += gain.moment * error
        rateError = max(-0.02, min(0.02, rateError + gain.rate * error))
        covariance.rate -= gain.rate * covariance.mixed
        covariance.mixed *= 1 - gain.moment
        covariance.moment *= 1 - gain.moment
    }

    /// Predicts the state `step` seconds of frames later.
    private mutating func predict(_ step: Double) {
        moment += step * (1 + rateError)
        covariance.moment += step * (2 * covariance.mixed + step * covariance.rate)
        covariance.mixed += step * covariance.rate
        covariance.rate += Self.wander * step
    }

    /// Returns the capture time of frame number `frame` (from 0); nil before the first reading.
    func time(of frame: Double) -> BootInstant? {
        let seconds = moment + (frame - self.frame) * nominal * (1 + rateError)
        return origin.map { $0 + .nanoseconds(Int64(seconds * 1e9)) }
    }
}
