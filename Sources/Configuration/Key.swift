// Configuration keys, from which parsing, documents and messages all derive.
import Host

/// Settings with configuration keys: one section of the file, or all of it.
package protocol Configurable: Sendable, Equatable {
    /// Creates settings whose initial values are the keys' defaults.
    init()
    @KeyBuilder<Self> static var keys: [Key<Self>] { get }
    /// Rules that valid values break together.
    var violations: [Violation] { get }
}

extension Configurable {
    /// Creates the defaults with changes.
    package init(_ change: (inout Self) -> Void) {
        self.init()
        change(&self)
    }

    package var violations: [Violation] { [] }
}

/// Collects a list of keys.
@resultBuilder package enum KeyBuilder<Settings: Sendable> {
    package static func buildExpression(_ key: Key<Settings>) -> [Key<Settings>] { [key] }
    package static func buildExpression(_ keys: [Key<Settings>]) -> [Key<Settings>] { keys }
    package static func buildArray(_ keys: [[Key<Settings>]]) -> [Key<Settings>] {
        keys.flatMap(\.self)
    }
    package static func buildBlock(_ keys: [Key<Settings>]...) -> [Key<Settings>] {
        keys.flatMap(\.self)
    }
}

/// One key of the configuration: its name, values, parser and writer.
package struct Key<Settings: Sendable>: Sendable {
    /// The dotted path: `upload.endpoint`.
    package private(set) var path: String
    /// One sentence on what it does.
    package private(set) var summary = ""
    /// The allowed values, in words.
    package let allowed: String
    /// An example value of a key without a default, as TOML.
    package let example: String?
    /// A change needs a restart of the process.
    package private(set) var needsRestart = false
    /// The systemd variable with the unit's folders, which overrides everything else
    /// (systemd.exec(5)).
    private(set) var systemdVariable: String?
    /// Returns true if the value may be set only on the device itself, not from a card or a stick.
    private(set) var isOfDevice: @Sendable (Settings) -> Bool
    /// Which of its values the server may set.
    package private(set) var remote = RemoteRule.nothing
    /// The remedy if it was set on a card or a stick.
    private(set) var cardAdvice = "take the line out"
    /// Counts the members of a table with free keys; nil for any other key.
    let count: (@Sendable (Settings) -> Int)?
    /// Sets the value, or leaves the settings unchanged and returns why it is refused.
    let set: @Sendable (Literal, inout Settings) -> MismatchError?
    /// Returns its value as TOML; nil if it has none.
    package let written: @Sendable (Settings) -> String?
    /// Copies its value from other settings.
    package let copy: @Sendable (_ from: Settings, _ to: inout Settings) -> Void

    /// Creates a key that always has a value.
    package init<Value>(
        _ path: String,
        _ property: any WritableKeyPath<Settings, Value> & Sendable,
        _ format: ValueFormat<Value>
    ) {
        self.init(
            path,
            property,
            format.allowed,
            isOfDevice: { format.namesFile($0[keyPath: property]) },
            set: Self.setter(property, format.read)
        ) { format.written($0[keyPath: property]) }
    }

    /// Creates an optional key.
    package init<Value>(
        _ path: String,
        optional property: any WritableKeyPath<Settings, Value?> & Sendable,
        _ format: ValueFormat<Value>,
        example: Value
    ) {
        self.init(
            path,
            property,
            format.allowed,
            example: format.written(example),
            isOfDevice: { $0[keyPath: property].map(format.namesFile) ?? false },
            set: Self.setter(property) { format.read($0).map { $0 } }
        ) { $0[keyPath: property].map(format.written) }
    }

    /// Creates a table with free keys: file members are added, the environment replaces all.
    package init<Name: Hashable & Sendable, Value: Sendable>(
        _ path: String,
        table property: any WritableKeyPath<Settings, [Name: Value]> & Sendable,
        _ format: ValueFormat<[Name: Value]>
    ) {
        self.init(
            path,
            property,
            format.allowed,
            count: { $0[keyPath: property].count },
            set: { literal, settings in
                let isMember = if case .member = literal { true } else { false }
                if !isMember { settings[keyPath: property] = [:] }
                if literal == .table { return nil }
                switch format.read(literal) {
                case .failure(let mismatch): return mismatch
                case .success(let new): settings[keyPath: property].merge(new) { _, new in new }
                }
                return nil
            }
        ) { format.written($0[keyPath: property]) }
    }

    private init<Value>(
        _ path: String,
        _ property: any WritableKeyPath<Settings, Value> & Sendable,
        _ allowed: String,
        example: String? = nil,
        isOfDevice: @escaping @Sendable (Settings) -> Bool = { _ in false },
        count: (@Sendable (Settings) -> Int)? = nil,
        set: @escaping @Sendable (Literal, inout Settings) -> MismatchError?,
        written: @escaping @Sendable (Settings) -> String?
    ) {
        (self.path, self.allowed, self.example) = (path, allowed, example)
        (self.isOfDevice, self.count, self.set) = (isOfDevice, count, set)
        self.written = written
        copy = { $1[keyPath: property] = $0[keyPath: property] }
    }

    private static func setter<Value>(
        _ property: any WritableKeyPath<Settings, Value> & Sendable,
        _ read: @escaping @Sendable (Literal) -> Result<Value, MismatchError>
    ) -> @Sendable (Literal, inout Settings) -> MismatchError? {
        { literal, settings in
            switch read(literal) {
            case .failure(let mismatch): return mismatch
            case .success(let value): settings[keyPath: property] = value
            }
            return nil
        }
    }

    // MARK: More about it

    /// One sentence on what it does.
    package func says(_ summary: String) -> Self { changed { $0.summary = summary } }

    /// Marks a key that a reload does not change.
    package func fixed(orBy systemdVariable: String? = nil) -> Self {
        changed { ($0.needsRestart, $0.systemdVariable) = (true, systemdVariable) }
    }

    /// Marks a key that a card or a stick cannot set, whatever its value.
    package func onlyOnDevice() -> Self { changed { $0.isOfDevice = { _ in true } } }

    /// Marks a key that the server may set; `onlyOff`: it may not make true what the device's own
    /// file makes false.
    package func remote(onlyOff: Bool = false) -> Self {
        changed { $0.remote = onlyOff ? .onlyOff : .anything }
    }

    /// Sets the remedy for people who set the key on a card or a stick.
    package func onCard(_ advice: String) -> Self { changed { $0.cardAdvice = advice } }

    private func changed(_ change: (inout Self) -> Void) -> Self {
        var key = self
        change(&key)
        return key
    }

    /// Returns the same key as part of a section of larger settings.
    package func within<Whole>(
        _ section: String,
        _ part: any WritableKeyPath<Whole, Settings> & Sendable
    ) -> Key<Whole> {
        Key<Whole>(self, within: section) {
            $0[keyPath: part]
        } change: { change, whole in
            change(&whole[keyPath: part])
        }
    }

    /// Creates the same key as part of a section of these settings, which may be absent.
    init<Part>(
        _ key: Key<Part>,
        within section: String,
        get: @escaping @Sendable (Settings) -> Part?,
        change: @escaping @Sendable (_ by: (inout Part) -> Void, inout Settings) -> Void
    ) {
        path = "\(section).\(key.path)"
        (summary, allowed, example) = (key.summary, key.allowed, key.example)
        (needsRestart, systemdVariable) = (key.needsRestart, key.systemdVariable)
        (cardAdvice, remote) = (key.cardAdvice, key.remote)
        isOfDevice = { get($0).map(key.isOfDevice) ?? false }
        if let partCount = key.count {
            count = { settings in get(settings).map(partCount) ?? 0 }
        } else {
            count = nil
        }
        set = { literal, settings in
            var mismatch: MismatchError?
            change({ mismatch = key.set(literal, &$0) }, &settings)
            return mismatch
        }
        written = { get($0).flatMap(key.written) }
        copy = { from, to in
            if let part = get(from) { change({ key.copy(part, &$0) }, &to) }
        }
    }

    // MARK: Names

    /// The section, `upload` of `upload.endpoint`; empty at the top of the file.
    package var section: String { String(path.dropLast(name.count + 1)) }

    /// The last part, `endpoint` of `upload.endpoint`.
    package var name: String { path.split(separator: ".").last.map(String.init) ?? path }

    /// The environment variable that overrides it: `WAYPOST_UPLOAD_ENDPOINT`.
    package var variable: String { "WAYPOST_" + path.replacing(text: ".", with: "_").uppercased() }
}

/// Which values of a key the server may set (waypost.toml(5), REMOTE SETTINGS).
package enum RemoteRule: Sendable {
    case nothing
    case anything
    /// Not true where the device's own file has false.
    case onlyOff
}

extension Key where Settings: Configurable {
    /// Its default as TOML; nil if it has none.
    package var defaultText: String? { written(Settings()) }

    /// Returns why a card or a stick may not set this value, with the remedy; nil if it may.
    ///
    /// The default is allowed: `waypost config default` writes it.
    func refusalOnCard(_ settings: Settings) -> String? {
        guard isOfDevice(settings), written(settings) != defaultText else { return nil }
        return "cannot be set from a card or a stick; \(cardAdvice)"
    }
}

/// A broken rule between several keys, and the allowed values.
package struct Violation: Sendable {
    /// The keys concerned; the message names the first that the file or the environment sets.
    ///
    /// The violation is not reported if none is set or one was refused.
    var keys: [String]
    /// The name to show in place of the key that is set.
    var name: String?
    var message: String
    var allowed: String

    package init(_ keys: [String], _ message: String, allowed: String, name: String? = nil) {
        (self.keys, self.name, self.message, self.allowed) = (keys, name, message, allowed)
    }

    /// Returns the same violation for keys in a section.
    package func within(_ section: String) -> Self {
        Violation(keys.map { "\(section).\($0)" }, message, allowed: allowed, name: name)
    }
}
