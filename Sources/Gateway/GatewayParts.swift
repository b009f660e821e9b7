// The threads of a gateway as its health timer sees them, and what is to be done when one hangs.
internal import Board
internal import Host
internal import Queue

extension Gateway {
    /// Judges every thread that may hang.
    func supervisor(
        _ clockLane: StoppableThread,
        _ reloadLane: StoppableThread
    ) -> Supervisor {
        let (services, board, intake) = (services, board, intake)
        let (control, wasEnrolled) = (control, wasEnrolled)
        var parts = SourceName.allCases.map { services.part($0, board) }
        parts += [uploadPart, writerPart, clockPart(clockLane)]
        parts.append(Supervisor.Part(name: "intake", word: { intake.word }, ask: { intake.ask() }))
        if let control {
            parts.append(.of(control.thread, "control") { control.ask() })
        }
        // Woken so, it also tries again what could not be started.
        parts.append(.of(reloadLane, "reload") { wasEnrolled.signal() })
        return Supervisor(
            parts,
            patience: settings.patience,
            clock: clock,
            errors: board.errors,
            log: settings.log
        )
    }

    private var uploadPart: Supervisor.Part {
        let (services, board) = (services, board)
        return Supervisor.Part(
            name: "upload",
            word: { services.uploads?.word },
            failed: { board.upload.failed($0) },
            recover: { services.replaceUploads() }
        )
    }

    /// There can be but one writer: it is waited for.
    private var writerPart: Supervisor.Part {
        let queue = queue
        return Supervisor.Part(
            name: "storage",
            word: { queue.writerWord },
            ask: { queue.askWriter() },
            advice: "records wait in memory: look at the disk",
            failed: { queue.storage.failed($0) },
            isBack: { queue.checkStorage() }
        )
    }

    private func clockPart(_ thread: StoppableThread) -> Supervisor.Part {
        let (clockWatch, errors, clock) = (clockWatch, board.errors, clock)
        var part = Supervisor.Part.of(thread, "clock") { clockWatch.check() }
        part.failed = {
            clockWatch.board.failed($0)
            errors.add($0, at: clock.wall())
        }
        part.isBack = { clockWatch.isBack() }
        return part
    }
}

extension Supervisor.Part {
    /// A thread that is only told of; `wake` has it go round once.
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
