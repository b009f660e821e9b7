// Finds out which acknowledgements have reached the broker, and forgets their messages.
import Host
import MQTT

extension MessageSubscriber {
    func ping(_ connection: inout MQTTConnection) throws(Failure) {
        guard !connection.isPinging, session.pinged() || backlog.needsPing else { return }
        backlog.pinged()
        try connection.ping()
    }

    func answered(_ connection: inout MQTTConnection) throws(Failure) {
        backlog.answered()
        if !backlog.isOpen { session.caughtUp() }
        if session.answered() { rememberSession() }
        try ping(&connection)
    }

    /// Stores the session with the next commit, unless a batch with a newer one is under way.
    func rememberSession() {
        guard travelling == nil, batch.isEmpty else { return }
        for (name, text) in session.takeMemos() { sink.remember(name, text) }
    }
}
