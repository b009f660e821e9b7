// The interface of a source of records: runs it, and makes it check itself for silence.
package import Host

/// A source of records: an adapter that reads one kind of device.
package protocol Source: Sendable {
    /// Blocks until `stop` is raised; retries failures forever.
    func run(until stop: StopSignal)
    /// Makes the source's thread check itself for silence; called by the health timer, about every
    /// 30 s.
    func checkHealth()
}
