// The request of `waypost audio mark` and its handler in the gateway.
package import Host
package import Queue

/// A span of time whose sound is wanted.
package struct AudioMarkRequest: Sendable, Equatable {
    package var from: WallTime
    package var to: WallTime

    package init(from: WallTime, to: WallTime) { (self.from, self.to) = (from, to) }

    /// The request for the control socket.
    package var control: ControlRequest {
        ControlRequest(.audioMark, "\(from.milliseconds) \(to.milliseconds)")
    }

    /// Parses an argument made by `control`; throws a Failure for anything else.
    init(argument: String) throws {
        let times = argument.split(separator: " ").compactMap { Int64($0) }
        guard times.count == 2, times[0] < times[1] else {
            throw Failure(
                "audio mark: the request is not valid; use the `waypost` of the running version"
            )
        }
        self.init(from: WallTime(milliseconds: times[0]), to: WallTime(milliseconds: times[1]))
    }

    /// Marks the sound; returns how many held chunks are sent now.
    ///
    /// Blocks until the writer has done it. Throws a Failure if no sound is uploaded, or the disk's error.
    package func mark(in queue: Queue) throws -> Int {
        do {
            return try queue.perform { [self] in try $0.markSound(from: from, to: to) }
        } catch let error as SoundMarkError {
            throw Failure("\(error)")
        }
    }
}
