// A key: its name, what it may be, which setting it is, what it does. All else is made of that.
import Host

/// Settings that have keys: a part of the file, or all of it.
package protocol Configurable: Sendable, Equatable {
    /// With each property's initial value, which is the key's default.
    init()
    @KeyBuilder<Self> static var keys: [Key<Self>] { get }
    /// What is wrong between keys that are right each for itself.
    var violations: [Violation] { get }
}

extension Configurable {
    /// The defaults, changed.
    package init(_ change: (inout Self) -> Void) {
        self.init()
        change(&self)
    }

    package var violations: [Violation] { [] }
}

/// Lists keys one below the other.
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

/// One key of the configuration: what it is, what it may be, how it is set and written.
package struct Key<Settings: Sendable>: Sendable {
    /// Dotted: `upload.endpoint`.
    package private(set) var path: String
    /// One sentence on what it does.
    package private(set) var summary = ""
    /// The values it takes, in words.
    package let allowed: String
    /// What a key without a default may look like, as TOML.
    package let example: String?
    /// It is fixed for the life of a process.
    package private(set) var needsRestart = false
    /// systemd's variable with folders of the unit, which wins over all else (systemd.exec(5)).
    private(set) var systemdVariable: String?
    /// Whether its value may come only from the device itself, not from a card or a stick.
    private(set) var isOfDevice: @Sendable (Settings) -> Bool
    /// What a person who set it on a card or a stick is to do.
    private(set) var cardAdvice = "take the line out"
    /// How many members it has, of a table whose keys are free; nil for any other key.
    let count: (@Sendable (Settings) -> Int)?
    /// Sets it, or leaves all as it is and says why the value is refused.
    let set: @Sendable (Literal, inout Settings) -> Mismatch?
    /// Its value as TOML; nil where it has none.
    package let written: @Sendable (Settings) -> String?
    /// Takes its value from other settings.
    package let copy: @Sendable (_ from: Settings, _ to: inout Settings) -> Void

    /// A key that always has a value.
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

    /// A key that may be left out.
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

    /// A table whose keys are free: each member is added to what is there, the environment replaces all.
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
        set: @escaping @Sendable (Literal, inout Settings) -> Mismatch?,
        written: @escaping @Sendable (Settings) -> String?
    ) {
        (self.path, self.allowed, self.example) = (path, allowed, example)
        (self.isOfDevice, self.count, self.set) = (isOfDevice, count, set)
        self.written = written
        copy = { $1[keyPath: property] = $0[keyPath: property] }
    }

    private static func setter<Value>(
        _ property: any WritableKeyPath<Settings, Value> & Sendable,
        _ read: @escaping @Sendable (Literal) -> Result<Value, Mismatch>
    ) -> @Sendable (Literal, inout Settings) -> Mismatch? {
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

    /// A change is not taken over by a reload.
    package func fixed(orBy systemdVariable: String? = nil) -> Self {
        changed { ($0.needsRestart, $0.systemdVariable) = (true, systemdVariable) }
    }

    /// A card or a stick cannot set it, whatever its value.
    package func onlyOnDevice() -> Self { changed { $0.isOfDevice = { _ in true } } }

    /// What a person who set it on a card or a stick is to do instead.
    package func onCard(_ advice: String) -> Self { changed { $0.cardAdvice = advice } }

    private func changed(_ change: (inout Self) -> Void) -> Self {
        var key = self
        change(&key)
        return key
    }

    /// The same key, as one of a section of other settings.
    package func within<Whole>(
        _ section: String,
        _ part: any WritableKeyPath<Whole, Settings> & Sendable
    ) -> Key<Whole> {
        within(section, get: { $0[keyPath: part] }) { change, whole in change(&whole[keyPath: part])
        }
    }

    func within<Whole>(
        _ section: String,
        get: @escaping @Sendable (Whole) -> Settings?,
        change: @escaping @Sendable (_ by: (inout Settings) -> Void, inout Whole) -> Void
    ) -> Key<Whole> {
        Key<Whole>(whole: self, "\(section).\(path)", get, change)
    }

    private init<Part>(
        whole key: Key<Part>,
        _ path: String,
        _ get: @escaping @Sendable (Settings) -> Part?,
        _ change: @escaping @Sendable ((inout Part) -> Void, inout Settings) -> Void
    ) {
        (self.path, summary, allowed, example) = (path, key.summary, key.allowed, key.example)
        (needsRestart, systemdVariable) = (key.needsRestart, key.systemdVariable)
        cardAdvice = key.cardAdvice
        isOfDevice = { get($0).map(key.isOfDevice) ?? false }
        if let partCount = key.count {
            count = { settings in get(settings).map(partCount) ?? 0 }
        } else {
            count = nil
        }
        set = { literal, settings in
            var mismatch: Mismatch?
            change({ mismatch = key.set(literal, &$0) }, &settings)
            return mismatch
        }
        written = { get($0).flatMap(key.written) }
        copy = { from, to in
            if let part = get(from) { change({ key.copy(part, &$0) }, &to) }
        }
    }

    // MARK: Names

    /// `upload` of `upload.endpoint`, empty for a key at the top of the file.
    package var section: String { String(path.dropLast(name.count + 1)) }

    /// `endpoint` of `upload.endpoint`.
    package var name: String { path.split(separator: ".").last.map(String.init) ?? path }

    /// The variable that overrides it: `WAYPOST_UPLOAD_ENDPOINT`.
    package var variable: String { "WAYPOST_" + path.replacing(text: ".", with: "_").uppercased() }
}

extension Key where Settings: Configurable {
    /// Its default as TOML; nil where it has none.
    package var defaultText: String? { written(Settings()) }

    /// Why a card or a stick cannot have set it so, with the next step; nil where it can.
    ///
    /// The default changes nothing: `waypost config default` writes it.
    func refusalOnCard(_ settings: Settings) -> String? {
        guard isOfDevice(settings), written(settings) != defaultText else { return nil }
        return "cannot be set from a card or a stick; \(cardAdvice)"
    }
}

/// What is wrong between keys, and what is allowed.
package struct Violation: Sendable {
    /// The message stands at the first of them that the file or the environment sets; where none is set, or
    /// one was refused, it is not told.
    var keys: [String]
    /// What the message names in place of the key that is set.
    var name: String?
    var message: String
    var allowed: String

    package init(_ keys: [String], _ message: String, allowed: String, name: String? = nil) {
        (self.keys, self.name, self.message, self.allowed) = (keys, name, message, allowed)
    }

    /// The same, of keys in a section.
    package func within(_ section: String) -> Self {
        Violation(keys.map { "\(section).\($0)" }, message, allowed: allowed, name: name)
    }
}
