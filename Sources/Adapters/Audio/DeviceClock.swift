// When each frame was captured, by the device's own clock as our clock sees it.
import Host

/// Follows a device's clock: a quartz is up to some 100 ppm off, which is nine seconds a day.
///
/// A Kalman filter with two states, the moment of the newest frame and the time a frame takes, over pairs of
/// (frames captured, moment when they had been). At first it believes the device's rate to 1000 ppm and each
/// reading to 10 ms; settled, it averages over some seven minutes and follows a quartz that warms up.
struct DeviceClock {
    /// Variance of a reading, in s²: wake-ups and periods make readings late.
    private static let noise = 1e-4
    /// How much the rate wanders: 1 ppm in five minutes, as s²/s² a second.
    private static let wander = 1e-12 / 300
    private static let firstRateError = 1e-3

    /// Seconds that a frame should take.
    private let nominal: Double
    /// Parts by which a frame takes longer than that, as estimated.
    private(set) var rateError = 0.0
    /// A frame and its estimated moment, in seconds after `origin`.
    private var frame = 0.0
    private var moment = 0.0
    private var origin: BootInstant?
    /// The covariance of moment and rate error.
    private var covariance = (moment: noise, mixed: 0.0, rate: firstRateError * firstRateError)

    /// `rate`: frames a second by the device's own word.
    init(rate: Int) {
        nominal = 1 / Double(rate)
    }

    /// `captured` frames had been captured at `time`.
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
        // A reading that is far off, because something held us up, counts no more than one at the limit.
        let limit = 3 * spread.squareRoot()
        let error = max(-limit, min(limit, (time - origin).inSeconds - moment))
        let gain = (moment: covariance.moment / spread, rate: covariance.mixed / spread)
        moment += gain.moment * error
        rateError = max(-0.02, min(0.02, rateError + gain.rate * error))
        covariance.rate -= gain.rate * covariance.mixed
        covariance.mixed *= 1 - gain.moment
        covariance.moment *= 1 - gain.moment
    }

    /// `step` seconds of frames later.
    private mutating func predict(_ step: Double) {
        moment += step * (1 + rateError)
        covariance.moment += step * (2 * covariance.mixed + step * covariance.rate)
        covariance.mixed += step * covariance.rate
        covariance.rate += Self.wander * step
    }

    /// When frame number `frame` (from 0) was captured; nil before the first reading.
    func time(of frame: Double) -> BootInstant? {
        let seconds = moment + (frame - self.frame) * nominal * (1 + rateError)
        return origin.map { $0 + .nanoseconds(Int64(seconds * 1e9)) }
    }
}
