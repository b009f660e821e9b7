// A record of another program with the time at which it was observed.
package import Host

/// Lines of the intake socket for records that are put some time after they were observed.
package enum DatedRecord {
    package enum Time: Sendable, Equatable {
        case wall(WallTime)
        /// For a time by a clock that is not right yet: the gateway dates the record once it is.
        case boot(BootInstant)
    }

    /// Returns the line for an object, with its line feed; throws a `Failure` with the reason if
    /// the gateway would refuse it.
    package static func line(stream: String, object: [UInt8], at time: Time) throws -> [UInt8] {
        IntakeLine.line(stream: stream, members: try members(object), at: time)
    }

    /// Throws a `Failure` with the reason if an object cannot be a record.
    package static func check(_ object: [UInt8]) throws { _ = try members(object) }

    private static func members(_ object: [UInt8]) throws -> [UInt8] {
        do throws(IntakeError) {
            return try IntakeLine.members(of: object)
        } catch {
            throw Failure(error.message)
        }
    }
}
