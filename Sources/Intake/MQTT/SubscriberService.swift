// The MQTT intake of a running gateway.
package import Host
package import Setup
import Status

/// Runs a subscriber while streams have topic filters; without one there is no thread.
///
/// `declare` and `stop` must not be called concurrently.
package final class SubscriberService: Sendable {
    private struct Running: Sendable {
        var settings: SubscriberSettings
        var thread: StoppableThread
        var wakeup: Wakeup
    }

    private let sink: any MessageSink
    private let context: SubscriberContext
    private let deviceID: String
    private let running = StateBox<Running?>(nil)

    package init(sink: any MessageSink, context: SubscriberContext, deviceID: String) {
        (self.sink, self.context, self.deviceID) = (sink, context, deviceID)
    }

    /// The last heartbeat of its thread; nil while nothing is subscribed.
    package var word: Heartbeat.Word? { running.value?.thread.life.word }

    /// Wakes its thread once.
    package func ask() {
        guard let running = running.value else { return }
        running.thread.life.asked()
        running.wakeup.signal()
    }

    /// Subscribes as a configuration says; a subscriber with the same settings goes on.
    ///
    /// Returns whether anything changed.
    @discardableResult package func declare(_ configuration: Configuration) throws -> Bool {
        let wanted = SubscriberSettings(configuration, deviceID: deviceID)
        guard running.value?.settings != wanted else { return false }
        // One thread per client id: the broker would disconnect the other.
        stop(by: SystemClock().now() + StoppableThread.stopLimit)
        guard let settings = wanted else {
            context.board.messagesIn.update { $0 = nil }
            return true
        }
        let (sink, context, wakeup) = (sink, context, try Wakeup())
        let thread = try StoppableThread("mqtt-in") { stop in
            MessageSubscriber(settings, sink, context, wakeup: wakeup, stop: stop).run()
        }
        running.update { $0 = Running(settings: settings, thread: thread, wakeup: wakeup) }
        return true
    }

    /// Asks the thread to stop, without waiting.
    package func raise() { running.value?.thread.raise() }

    /// Stops the thread; false if it hangs and was abandoned.
    @discardableResult package func stop(by deadline: BootInstant) -> Bool {
        let thread = running.value?.thread
        defer { running.update { $0 = nil } }
        return thread?.stop(by: deadline) ?? true
    }
}
