// Reloads the configuration on a separate thread, once per burst of requests.
import Audio
import Configuration
import Host
import Intake
import Listen
import Queue
import Records
import Remote
import Setup
import Status
import StatusBoard

/// Reads the configuration again when asked, and applies only the differences.
struct Reloader: Sendable {
    /// The time after a request in which further ones are merged with it.
    private static let burst = Duration.seconds(1)

    let services: Services
    let intake: IntakeService
    let subscriber: SubscriberService
    let listen: ListenService
    let context: ServiceContext
    let service: ServiceManager
    let signals: GatewaySignals
    /// Reads the configuration; throws its errors.
    let read: @Sendable () throws -> Configuration

    /// Handles requests until `stop` is raised; an enrolment starts the sources that wait for it.
    func run(until stop: StopSignal) {
        while !stop.isRaised {
            var entries = [
                PollEntry(stop.descriptor), PollEntry(signals.wantsReload.descriptor),
                PollEntry(signals.wasEnrolled.descriptor),
            ]
            _ = stop.wait(for: &entries)
            if entries[2].isReady {
                signals.wasEnrolled.clear()
                services.apply(services.configuration)
            }
            guard entries[1].isReady, !stop.sleep(for: Self.burst) else { continue }
            signals.wantsReload.clear()
            service.notify("RELOADING=1")
            do { apply(try read(), stop.life) } catch { refuse(error) }
            service.notify("READY=1")
        }
    }

    private func refuse(_ error: any Error) {
        let why = "\(error)".replacing(text: "\n", with: "; ")
        context.log.error("configuration not reloaded, the old one stays", ["why": why])
        let failure = Failure("configuration not reloaded, the old one stays: \(why)")
        context.board.errors.add(failure, at: context.clock.now())
    }

    private func apply(_ configuration: Configuration, _ life: Heartbeat) {
        let before = services.configuration
        var new = configuration
        let needRestart = new.keepWhatNeedsRestart(of: before)
        context.board.needRestart.update { $0 = needRestart }
        var changed = changeStorage(before.storage, new)
        if new.logLevel != before.logLevel {
            context.log.set(new.logLevel)
            changed.append("log")
        }
        if new.metricsTextfile != before.metricsTextfile { changed.append("metrics") }
        if new.userStreams != before.userStreams {
            declare(new, life)
            changed.append("stream")
        }
        if new.sound != before.sound {
            context.queue.upload(new.sound)
            changed.append("audio.upload")
        }
        listen.declare(isEnabled: new.audio.isEnabled)
        if subscribe(new, life) { changed.append("mqtt") }
        changed += services.apply(new, isReload: true)
        var reported = ["changed": changed.isEmpty ? "nothing" : changed.joined(separator: " ")]
        if !needRestart.isEmpty { reported["needs a restart"] = needRestart.joined(separator: " ") }
        context.log.info("configuration reloaded", reported)
        context.recordSettings(configuration)
        // A trial begins or ends with it.
        context.jobs?.wake()
    }

    private func changeStorage(_ before: StorageSettings, _ new: Configuration) -> [String] {
        guard new.storage != before else { return [] }
        context.queue.limit(new.storageLimits)
        context.queue.commit(every: new.storage.commitInterval)
        return ["storage"]
    }

    private func subscribe(_ configuration: Configuration, _ life: Heartbeat) -> Bool {
        do {
            // A stop waits for the subscriber's thread, which has a heartbeat of its own.
            life.rests()
            defer { life.returns() }
            return try subscriber.declare(configuration)
        } catch {
            context.log.error("mqtt in", ["why": "\(error)"])
            return false
        }
    }

    private func declare(_ configuration: Configuration, _ life: Heartbeat) {
        // This waits for the writer's thread, which has a heartbeat of its own.
        life.rests()
        context.queue.declare(configuration.queueStreams)
        life.returns()
        do {
            try intake.declare(configuration.userStreams)
        } catch {
            context.log.error("intake", ["why": "\(error)"])
        }
    }
}

extension Configuration {
    /// Undoes changes of keys that need a restart; returns those keys.
    fileprivate mutating func keepWhatNeedsRestart(of before: Self) -> [String] {
        let changed = Self.table.keys.filter {
            $0.needsRestart && $0.written(self) != $0.written(before)
        }
        for key in changed { key.copy(before, &self) }
        return changed.map(\.path)
    }
}
