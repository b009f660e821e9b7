// The effort accounts of all sources, and the memo that holds them across restarts.
import Host
import Records

/// The accounts of all sources, as of the last commit plus what was noted since; a pure value.
///
/// The memo is written in the transaction that stores the intervals sealed from the accounts, and
/// the audio that they call recorded: after a crash they fit together.
struct EffortBook: Sendable, Equatable {
    static let memo = "effort"
    static let sources: [Stream] = [.beacons, .location, .audio]
    /// Bytes of a reason; the names of devices can be long.
    private static let longest = 200

    private var accounts: [Stream: EffortAccount] = [:]
    /// The accounts may differ from what was last stored.
    private(set) var isChanged = false
    /// Earlier accounts are not continued.
    private var isForgotten = false

    init() {}

    subscript(source: Stream) -> EffortAccount? { accounts[source] }

    // MARK: Events

    mutating func record(
        _ effort: SourceEffort,
        of source: Stream,
        at time: EffortTime,
        number: Int64?
    ) {
        guard Self.sources.contains(source) else { return }
        var account = accounts[source] ?? EffortAccount(isAudio: source == .audio)
        account.record(effort.limited(to: Self.longest), at: time, number: number)
        (accounts[source], isChanged) = (account, true)
    }

    /// Ends all accounts for this process, also those that another database holds; used when effort
    /// is not to be recorded.
    mutating func clear() { (accounts, isChanged, isForgotten) = ([:], true, true) }

    /// Notes that the machine was suspended.
    mutating func sleep(from start: EffortTime, to end: EffortTime, number: (Stream) -> Int64?) {
        for source in accounts.keys {
            accounts[source]?.sleep(from: start, to: end, number: number(source))
        }
        isChanged = true
    }

    /// Applies what a transaction stored.
    mutating func apply(_ notes: EffortNotes, boot: String, number: (Stream) -> Int64) {
        func time(_ stamp: Stamp) -> EffortTime { EffortTime(boot: boot, stamp: stamp) }
        for loss in notes.losses {
            accounts[loss.stream]?.lose(
                from: time(loss.from),
                to: time(loss.to),
                loss.kind.cause,
                number: number(loss.stream)
            )
        }
        for heard in notes.heard {
            accounts[.audio]?.hear(
                from: time(heard.from),
                to: time(heard.to),
                isContinued: heard.isContinued,
                number: number(.audio)
            )
        }
        isChanged = isChanged || !notes.losses.isEmpty || !notes.heard.isEmpty
    }

    /// Seals what is final in each account.
    mutating func seal(
        at now: EffortTime,
        number: (Stream) -> Int64,
        wall: (EffortTime) -> Int64?
    ) -> [(source: Stream, interval: SealedSpan)] {
        var sealed: [(source: Stream, interval: SealedSpan)] = []
        for source in Self.sources {
            guard var account = accounts[source] else { continue }
            let intervals = account.seal(at: now, number: number(source), wall: wall)
            isChanged = isChanged || account != accounts[source]
            accounts[source] = account
            sealed += intervals.map { (source, $0) }
        }
        return sealed
    }

    // MARK: Other databases

    /// Puts the accounts of an earlier process before these.
    mutating func follow(_ before: InheritedEffort) {
        guard !isForgotten else { return }
        isChanged = true
        for (source, account) in Self.accounts(before.text) {
            let own = accounts[source] ?? EffortAccount(isAudio: source == .audio)
            accounts[source] = own.following(account, before)
        }
    }

    /// Takes over the accounts of a quarantined database; returns the intervals between its last
    /// ones and the beginning of these.
    ///
    /// Nothing if these continue them already, as they do in the process that quarantined it.
    mutating func inherit(
        _ before: InheritedEffort,
        wall: (EffortTime) -> Int64?
    ) -> [(source: Stream, interval: SealedSpan)] {
        guard !isForgotten else { return [] }
        var sealed: [(source: Stream, interval: SealedSpan)] = []
        for (source, account) in Self.accounts(before.text) {
            var past = EffortAccount(isAudio: account.isAudio).following(account, before)
            past.move()
            if let own = accounts[source], !own.spans.isEmpty {
                guard let origin = own.origin, account.lineage != own.lineage else { continue }
                sealed += past.close(at: origin, wall: wall).map { (source, $0) }
                accounts[source]?.isPreceded(by: account)
            } else {
                accounts[source] = past
            }
            isChanged = true
        }
        return sealed
    }

    /// Handles another database, which does not have the memo.
    mutating func moved() {
        for source in accounts.keys { accounts[source]?.move() }
        isChanged = true
    }

    // MARK: The memo

    /// Returns the memo to store; nil if nothing has changed.
    ///
    /// Audio extends its last recorded span without another text. A checksum, then one line per
    /// source and per span; the reason is the end of a line.
    mutating func takeText() -> String? {
        guard isChanged else { return nil }
        isChanged = false
        var lines: [String] = []
        for source in Self.sources {
            guard let account = accounts[source], !account.spans.isEmpty else { continue }
            let origin = account.origin.map { Self.words($0) } ?? "- 0 0"
            let counts = "\(account.day) \(account.failuresToday)"
            lines.append("\(source.name) \(origin) \(counts) \(account.lineage)")
            for span in account.stable {
                let number = span.number.map { "\($0)" } ?? "-"
                let words = "\(Self.words(span.from)) \(span.state.rawValue) \(number)"
                lines.append(span.reason.isEmpty ? words : "\(words) \(span.reason)")
            }
        }
        let text = lines.joined(separator: "\n")
        return text.isEmpty ? "" : "\(Checksum.of(Array(text.utf8)))\n\(text)"
    }

    private static func words(_ time: EffortTime) -> String {
        "\(time.boot) \(time.stamp.boot.nanoseconds) \(time.stamp.wall.milliseconds)"
    }

    private static func time(_ words: ArraySlice<Substring>) -> EffortTime? {
        guard let boot = words.first, boot != "-",
            let time = words.dropFirst().first.flatMap({ Int64($0) }),
            let wall = words.dropFirst(2).first.flatMap({ Int64($0) })
        else { return nil }
        let stamp = Stamp(
            boot: BootInstant(nanoseconds: time),
            wall: WallTime(milliseconds: wall)
        )
        return EffortTime(boot: String(boot), stamp: stamp)
    }

    /// Parses a memo; lines that no version wrote are skipped.
    ///
    /// Nothing if its pages are from different commits: a disk may call stored what is not.
    private static func accounts(_ text: String) -> [(Stream, EffortAccount)] {
        let head = text.prefix { $0 != "\n" }
        let rest = text.dropFirst(head.count + 1)
        guard Int64(head) == Checksum.of(Array(rest.utf8)) else { return [] }
        var found: [(source: Stream, words: [Substring], spans: [EffortSpan])] = []
        for line in rest.split(separator: "\n") {
            let words = line.split(separator: " ", maxSplits: 5)
            if let source = sources.first(where: { $0.name == words.first ?? "" }) {
                found.append((source, line.split(separator: " "), []))
            } else if words.count >= 5, !found.isEmpty, let from = time(words[...]),
                let state = EffortSpan.State(rawValue: String(words[3]))
            {
                let reason = words.count > 5 ? String(words[5]) : ""
                let number = Int64(words[4])
                found[found.count - 1].spans.append(
                    EffortSpan(from: from, state: state, reason: reason, number: number)
                )
            }
        }
        return found.filter { !$0.spans.isEmpty && $0.spans.tiles }.map { source, words, spans in
            let counts = words.dropFirst(4).map { Int64($0) ?? 0 }
            let account = EffortAccount(
                isAudio: source == .audio,
                spans: spans,
                origin: time(words.dropFirst()),
                lineage: words.count > 6 ? String(words[6]) : "",
                day: counts.first ?? 0,
                failuresToday: Int(truncatingIfNeeded: counts.dropFirst().first ?? 0)
            )
            return (source, account)
        }
    }
}

extension EffortAccount {
    /// Its spans without what is being listened to after stored audio: that end is in the audio.
    fileprivate var stable: ArraySlice<EffortSpan> {
        if isElsewhere { return spans[...] }
        let isGoing = spans.last?.state == .listening && spans.dropLast().last?.state == .recorded
        return isGoing ? spans.dropLast() : spans[...]
    }

    fileprivate func following(_ before: Self, _ its: InheritedEffort) -> Self {
        var account = self
        let isRecording = isAudio && before.spans.last?.isOn == true
        // It listened in the millisecond of its newest record.
        account.follow(before, end: isRecording ? its.endOfAudio : its.end?.advanced(by: 1))
        return account
    }
}

extension SourceEffort {
    /// Returns it with a reason of one short line.
    fileprivate func limited(to bytes: Int) -> Self {
        func line(_ text: String) -> String {
            let words = text.split { $0.isNewline }.joined(separator: " ")
            guard words.utf8.count > bytes else { return words }
            return String(decoding: words.utf8.prefix(bytes - 3), as: UTF8.self) + "…"
        }
        return switch self {
        case .starting, .listening: self
        case .failed(let reason): .failed(line(reason))
        case .scheduledOff(let reason): .scheduledOff(line(reason))
        case .off(let reason): .off(line(reason))
        }
    }
}
