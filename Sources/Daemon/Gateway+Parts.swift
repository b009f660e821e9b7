// The threads that the health timer supervises, and the action for each one that hangs.
import Host
import Intake
import Listen
import Queue
import Status
import StatusBoard

extension Gateway {
    /// Makes the supervisor of all threads that may hang.
    func supervisor(
        _ clockThread: StoppableThread,
        _ reloadThread: StoppableThread,
        _ scheduleThread: StoppableThread,
        _ remoteThread: StoppableThread
    ) -> Supervisor {
        let (intake, subscriber, wasEnrolled) = (intake, subscriber, signals.wasEnrolled)
        var parts = SourceName.allCases.map { services.part($0, sourceWatch) }
        parts +=
            [uploadPart, livePart, writerPart, clockPart(clockThread)] + partsThatAreOnlyReported
        parts.append(Supervisor.Part(name: "intake", word: { intake.word }, ask: { intake.ask() }))
        parts.append(
            Supervisor.Part(name: "mqtt in", word: { subscriber.word }, ask: { subscriber.ask() })
        )
        if let control = door.plane {
            parts.append(.of(control.thread, "control") { control.ask() })
        }
        // Not woken: it waits for its next change, and for sources, which are checked themselves.
        parts.append(Supervisor.Part(name: "schedule", word: { scheduleThread.life.word }))
        // Not woken either: it sleeps while the server asks for nothing.
        parts.append(
            Supervisor.Part(name: "remote", word: { remoteThread.life.word }, isVital: false)
        )
        // The wake-up also retries the start of parts that could not be started.
        parts.append(.of(reloadThread, "reload") { wasEnrolled.signal() })
        return Supervisor(
            parts,
            patience: settings.patience,
            interval: healthInterval,
            clock: context.clock,
            errors: context.board.errors,
            log: context.log,
            onSuspend: context.recordSuspend
        )
    }

    /// Threads that are neither restarted nor woken: only the call that they are in is checked.
    private var partsThatAreOnlyReported: [Supervisor.Part] {
        let (services, queue, status, aside) = (services, context.queue, door.status, aside)
        let listen = listen
        return [
            Supervisor.Part(name: "status", word: { status.word }),
            Supervisor.Part(name: "maintenance", word: { queue.maintenanceWord }),
            // A network driver that hangs may hold it; the gateway works without it.
            Supervisor.Part(
                name: "connectivity",
                word: { services.uploads?.connectivity.life.word },
                isVital: false
            ),
            Supervisor.Part(name: "enrolment", word: { services.uploads?.enrolment?.life.word }),
            Supervisor.Part(
                name: "proxy",
                word: { services.proxy?.thread.life.word },
                ask: { services.proxy?.ask() },
                isVital: false
            ),
            Supervisor.Part(
                name: "listen",
                word: { listen.word },
                ask: { listen.ask() },
                isVital: false
            ),
            // The metrics folder may be on any disk, and the gateway works without it.
            Supervisor.Part(name: "metrics", word: { aside.life.word }, isVital: false),
        ]
    }

    private var uploadPart: Supervisor.Part {
        let (services, board) = (services, context.board.upload)
        return Supervisor.Part(
            name: "upload",
            word: { services.uploadsWord },
            failed: { failure, _ in board.failed(failure) },
            recover: { services.replaceUploads() }
        )
    }

    private var livePart: Supervisor.Part {
        let services = services
        return Supervisor.Part(
            name: "mqtt",
            word: { services.liveWord },
            ask: { services.live?.ask() },
            recover: { services.replaceLive() },
            // The gateway works without it.
            isVital: false
        )
    }

    /// The only writer; it cannot be replaced, so a hang is only reported.
    private var writerPart: Supervisor.Part {
        let queue = context.queue
        return Supervisor.Part(
            name: "storage",
            word: { queue.writerWord },
            ask: { queue.askWriter() },
            advice: "records wait in memory: look at the disk",
            failed: { failure, _ in queue.storage.failed(failure) },
            isBack: { queue.checkStorage() }
        )
    }

    private func clockPart(_ thread: StoppableThread) -> Supervisor.Part {
        let context = context
        var part = Supervisor.Part.of(thread, "clock") { context.clockWatch.check() }
        part.failed = { failure, _ in
            context.clockWatch.board.failed(failure)
            context.board.errors.add(failure, at: context.clock.now())
        }
        part.isBack = { context.clockWatch.isBack() }
        return part
    }
}

extension Supervisor.Part {
    /// Makes a part that is only reported; `wake` makes its thread run its loop once.
    fileprivate static func of(
        _ thread: StoppableThread,
        _ name: String,
        wake: @escaping @Sendable () -> Void
    ) -> Self {
        Self(
            name: name,
            word: { thread.life.word },
            ask: {
                thread.life.asked()
                wake()
            }
        )
    }
}
