// The uploader of one configuration, and the threads that wake it.
import Glibc
import Host
import Queue
import Records
import Setup
import Status
import StatusBoard
import Upload

/// The settings of uploads; the uploader restarts when they change.
struct UploadSlice: Sendable, Equatable {
    var upload: UploadSettings
    var streams: StreamNames
    var userStreams: [UserStream]

    init(_ configuration: Configuration) {
        upload = configuration.uploaderSettings
        streams = configuration.streams
        userStreams = configuration.userStreams
    }
}

/// One run of uploading: the uploader, its timer, the network watch and the enrolment.
final class Uploads: Sendable {
    let slice: UploadSlice
    let uploader: Uploader
    private let timer: ReliableTimer
    let uploading: StoppableThread
    /// Watches the network and the token.
    let connectivity: StoppableThread
    /// Waits for the enrolment; nil if the device is enrolled.
    let enrolment: StoppableThread?
    private let clockChanges: Subscription?
    private let storageChanges: Subscription

    /// Starts the threads; returns nil without a destination.
    ///
    /// `enrolled` is called once the server has accepted a device that was not enrolled before.
    init?(
        _ context: ServiceContext,
        _ configuration: Configuration,
        enrolled: @escaping @Sendable () -> Void
    ) throws {
        guard let destination = DestinationSettings(context, configuration) else { return nil }
        slice = UploadSlice(configuration)
        Self.checkToken(destination, context)
        let uploader = Uploader(
            settings: configuration.uploaderSettings,
            queue: context.queue,
            board: context.board.upload,
            clock: context.clock,
            budget: context.budget
        ) { [queue = context.queue] in try destination.open(queue) }
        self.uploader = uploader
        // On a full disk only an upload makes room.
        let wasFull = StateBox(false)
        storageChanges = context.queue.storage.subscribe { state in
            let isFull = state.value?.isFull ?? false
            if !wasFull.replace(with: isFull), isFull { uploader.tick() }
        }
        timer = try ReliableTimer(
            "upload-timer",
            grid: TimerGrid(interval: configuration.upload.interval, device: context.deviceID),
            clock: context.clock,
            leeway: .seconds(1)
        ) { uploader.tick() }
        uploading = try StoppableThread("uploader") { uploader.run(until: $0) }
        let retryEnrolment = try Wakeup()
        let connectivity = Connectivity(
            uploader,
            context,
            configuration.upload,
            token: destination.token,
            retryEnrolment
        )
        self.connectivity = try StoppableThread("connectivity") { connectivity.run(until: $0) }
        guard configuration.whyNotCollecting != nil else {
            (enrolment, clockChanges) = (nil, nil)
            return
        }
        // A certificate may not be valid yet for a clock that is behind, so a change of the clock
        // retries. `clear` drops the wake-up for the present state.
        clockChanges = context.clockWatch.board.subscribe { _ in retryEnrolment.signal() }
        retryEnrolment.clear()
        let wait = EnrolmentWait(
            destination: destination,
            mark: configuration.enrolmentMark,
            interval: configuration.upload.interval,
            wakeup: retryEnrolment,
            context: context
        )
        enrolment = try StoppableThread("enrolment") { stop in
            if wait.run(until: stop) { enrolled() }
        }
    }

    /// Reports an unusable token now, not at the first upload; collecting continues without it.
    private static func checkToken(_ destination: DestinationSettings, _ context: ServiceContext) {
        do {
            _ = try destination.token()
        } catch {
            let failure = (error as? Failure) ?? Failure("\(error)")
            context.board.errors.add(failure, at: context.clock.now())
            context.log.error("no uploads", ["why": failure.message])
        }
    }

    /// The next tick of the upload grid.
    var nextSync: BootInstant? { timer.next }

    /// The heartbeats of all its threads that may hang.
    var lives: [Heartbeat] { [uploading, connectivity, enrolment].compactMap { $0?.life } }

    func raise() {
        uploader.stop()
        uploading.raise()
        connectivity.raise()
        enrolment?.raise()
    }

    /// Stops all threads; returns false if one hangs and was abandoned.
    @discardableResult func stop(by deadline: BootInstant) -> Bool {
        raise()
        let ended = [
            timer.cancel(by: deadline), uploading.stop(by: deadline),
            connectivity.stop(by: deadline), enrolment?.stop(by: deadline) ?? true,
        ]
        // Answers those who wait for a hung sync that its outcome is unknown.
        uploader.abandon()
        return ended.allSatisfy { $0 }
    }
}

extension Connectivity {
    /// Makes a watch that retries at once after a network change or with a new token.
    fileprivate init(
        _ uploader: Uploader,
        _ context: ServiceContext,
        _ upload: UploadSettings,
        token: @escaping @Sendable () throws -> String,
        _ retryEnrolment: Wakeup
    ) {
        self.init(
            tokenFile: upload.destination == .s3 ? upload.credentialsFile : upload.tokenFile,
            token: token,
            clock: context.clock,
            onNetwork: {
                retryEnrolment.signal()
                uploader.networkChanged()
            },
            onToken: {
                retryEnrolment.signal()
                uploader.tokenChanged()
            },
            log: context.log
        )
    }
}
