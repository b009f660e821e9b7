// JSON as JSONDecoder reads it, to compare with the scanner of answers.

/// Any JSON; numbers are not decoded.
struct AnyJSON: Decodable {
    init(from decoder: any Decoder) throws {}
}

/// A fully decoded value, with each number.
indirect enum StrictJSON: Decodable, Equatable {
    case number(Double)
    case list([StrictJSON])
    case object([String: StrictJSON])
    case other

    private struct Name: CodingKey {
        var stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }

        init?(intValue: Int) { nil }
    }

    init(from decoder: any Decoder) throws {
        if let members = try? decoder.container(keyedBy: Name.self) {
            var object: [String: StrictJSON] = [:]
            for name in members.allKeys {
                object[name.stringValue] = try members.decode(StrictJSON.self, forKey: name)
            }
            self = .object(object)
        } else if var elements = try? decoder.unkeyedContainer() {
            var list: [StrictJSON] = []
            while !elements.isAtEnd { list.append(try elements.decode(StrictJSON.self)) }
            self = .list(list)
        } else {
            let value = try decoder.singleValueContainer()
            let isOther =
                value.decodeNil() || (try? value.decode(Bool.self)) != nil
                || (try? value.decode(String.self)) != nil
            self = isOther ? .other : .number(try value.decode(Double.self))
        }
    }

    /// Returns a member as a number, or the length of a list.
    func count(_ name: String) -> Double {
        guard case .object(let members) = self else { return 0 }
        switch members[name] {
        case .number(let number): return number
        case .list(let list): return Double(list.count)
        case .object, .other, nil: return 0
        }
    }
}
