// The facts about this gateway that the listen socket gives.
import Host
import Listen
import Queue
import Records
import Schedule
import Status

extension ListenService {
    /// A position that is older than this is not where the audio was recorded.
    private static let placeAge = Duration.seconds(600)

    convenience init(_ context: ServiceContext, directory: String) {
        let (queue, clock, tap) = (context.queue, context.clock, context.sound)
        let schedule = context.schedule
        let facts = ListenFacts(
            deviceID: context.deviceID,
            date: { stamp in
                guard let right = queue.rightTime(at: stamp) else { return (stamp.wall, false) }
                return (right, true)
            },
            place: {
                guard let fix = tap.place.value, clock.now() - fix.stamp.boot < Self.placeAge
                else { return schedule.site.map { ($0.latitude, $0.longitude) } }
                return (fix.latitude, fix.longitude)
            }
        )
        self.init(
            directory: directory,
            tap: tap,
            facts: facts,
            board: context.board.listen,
            clock: clock
        )
    }
}
