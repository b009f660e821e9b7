// What every part of a gateway may need.
import Host
import Queue
import StatusBoard
import Upload

/// What outlives a configuration.
struct ServiceContext: Sendable {
    let queue: Queue
    let board: GatewayBoard
    let budget: DayBudget
    let clock: any HostClock
    let clockWatch: ClockMonitor
    let deviceID: String
    let version: String
    let environment: [String: String]
    let log: Log
}
