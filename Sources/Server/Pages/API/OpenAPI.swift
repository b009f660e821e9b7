// The description of the read API (OpenAPI 3.1), made from the list of its resources.
import Host
import JSON
import ServerIndex
import ServerWeb

enum OpenAPI {
    static let path = "\(Route.readAPI)openapi.json"

    static let answer = HTTPAnswer(
        200,
        type: "application/json",
        bytes(),
        cache: "max-age=300"
    )

    private static func bytes() -> [UInt8] {
        var json = JSONWriter()
        json.object { json in
            json.field("openapi", "3.1.0")
            json.key("info")
            json.raw(information)
            json.key("security")
            json.raw(#"[{"token":[]},{"session":[]}]"#)
            json.key("paths")
            json.object { json in
                for resource in APIResource.allCases { json.path(resource) }
                json.key("\(Route.readAPI)devices/{device}/audio/{stream}/{date}/{file}")
                json.raw(file)
                json.key(jobsPath)
                json.raw(jobs)
            }
            json.key("components")
            json.raw(components)
        }
        return json.bytes + [10]
    }

    private static let information = """
        {"title":"Waypost read API","version":"1","description":"What the server has stored, read only. Rows come in \
        pages: request the address in the header Link (rel=next), or the same with cursor set to the member next, \
        until there is none. Values that were not reported are absent, null in a list, empty in CSV. Times are \
        RFC 3339 in UTC. GET and HEAD."}
        """

    private static let file = """
        {"get":{"operationId":"file","summary":"An audio file, as named by path in audio.","parameters":[\
        {"$ref":"#/components/parameters/device"},\
        {"name":"stream","in":"path","required":true,"schema":{"type":"string","pattern":"\(name)"}},\
        {"name":"date","in":"path","required":true,"schema":{"type":"string","format":"date"}},\
        {"name":"file","in":"path","required":true,"schema":{"type":"string"}}],"responses":{\
        "200":{"description":"The file.","content":{"audio/*":{}}},\
        "206":{"description":"The part that Range asks for.","content":{"audio/*":{}}},\
        "416":{"description":"No such part."},\(refusals)}}}
        """

    static let refusals = [
        ("400", "A parameter is wrong; error names it."), ("401", "No good token or session."),
        ("404", "No such device or resource, or no viewer was made yet."),
        ("405", "Only GET and HEAD."),
        ("413", "A body came, or the file needs Range."),
        ("429", "Too many wrong tokens, or too many requests at once."),
        ("503", "Too busy, or the index is not there yet; Retry-After says when."),
    ].map { status, words in
        ##""\##(status)":{"description":"\##(words)","content":{"application/json":{"schema":{"$ref":"#/components/schemas/error"}}}}"##
    }.joined(separator: ",")

    static let name = "^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$"

    private static let components = """
        {"securitySchemes":{"token":{"type":"http","scheme":"bearer","description":"Of waypost-receiver viewers add."},\
        "session":{"type":"apiKey","in":"cookie","name":"waypost_viewer","description":"Of a browser that is logged in."},\
        "device":{"type":"apiKey","in":"header","name":"X-Device-Token","description":"Of a device, or one that several share."}},\
        "parameters":{"device":{"name":"device","in":"path","required":true,"schema":{"type":"string",\
        "pattern":"\(name)"}}},\
        "schemas":{"error":{"type":"object","required":["error"],"properties":{"error":{"type":"string"}}},\
        "reply":\(reply)}}
        """

    fileprivate static func responses(_ schema: String, isPaged: Bool) -> String {
        let link = #"{"description":"The next page, if there is one.","schema":{"type":"string"}}"#
        let headers = isPaged ? #","headers":{"Link":\#(link)}"# : ""
        return """
            {"200":{"description":"The data."\(headers),"content":{"application/json":{"schema":\(schema)},\
            "text/csv":{"schema":{"type":"string"}}}},"304":{"description":"As If-None-Match has it."},\(refusals)}
            """
    }
}

extension JSONWriter {
    fileprivate mutating func path(_ resource: APIResource) {
        key(resource.path)
        object { json in
            json.key("get")
            json.object { json in
                json.field("operationId", resource.rawValue)
                json.field("summary", "\(resource.words)")
                json.key("parameters")
                json.array { json in
                    if resource != .devices {
                        json.raw(##"{"$ref":"#/components/parameters/device"}"##)
                    }
                    for parameter in resource.parameters { json.parameter(parameter) }
                }
                json.key("responses")
                let isPaged = resource.parameters.contains(.cursor)
                json.raw(OpenAPI.responses(resource.schema, isPaged: isPaged))
            }
        }
    }

    private mutating func parameter(_ parameter: APIParameter) {
        object { json in
            json.field("name", parameter.rawValue)
            json.field("in", "query")
            json.field("description", "\(parameter.words)")
            json.key("schema")
            json.raw(parameter.schema)
        }
    }
}

extension APIParameter {
    fileprivate var schema: String {
        switch self {
        case .from, .to:
            #"{"anyOf":[{"type":"string","format":"date-time"},{"type":"string","format":"date"}]}"#
        case .stream: #"{"type":"string","pattern":"\#(OpenAPI.name)"}"#
        case .beacon, .key, .kind, .source, .cursor: #"{"type":"string"}"#
        case .state:
            #"{"enum":[\#(DeviceLevel.allCases.map { "\"\($0.name)\"" }.joined(separator: ","))]}"#
        case .points:
            #"{"type":"integer","minimum":2,"maximum":\#(Self.maxPoints),"default":\#(Self.usualPoints)}"#
        case .limit:
            #"{"type":"integer","minimum":1,"maximum":\#(Self.maxRows),"default":\#(Self.usualRows)}"#
        case .format: #"{"enum":["json","csv"]}"#
        }
    }
}

extension APIResource {
    /// The JSON schema of its answer.
    fileprivate var schema: String {
        let members = columns.map { column in
            #""\#(column.name)":{"description":"\#(column.words)",\#(column.kind.schema(isList: isColumnar))}"#
        }.joined(separator: ",")
        let row = #"{"type":"object","properties":{\#(members)}}"#
        let next = #""next":{"type":"string"},"note":{"type":"string"}"#
        switch self {
        case .series: return Self.seriesSchema
        case .device:
            return
                #"{"type":"object","required":["device","state","streams"],"properties":{\#(members),"#
                + #""streams":\#(Self.streamSchema),"note":{"type":"string"}}}"#
        default:
            let data = isColumnar ? row : #"{"type":"array","items":\#(row)}"#
            return #"{"type":"object","required":["data"],"properties":{"data":\#(data),\#(next)}}"#
        }
    }

    private static let streamSchema = """
        {"type":"array","items":{"type":"object","required":["stream","content","records"],"properties":{\
        "stream":{"type":"string"},"content":{"enum":["audio","events","positions","readings"]},\
        "records":{"type":"integer"},"first":{"type":"string","format":"date-time"},\
        "last":{"type":"string","format":"date-time"}}}}
        """

    private static let seriesSchema = """
        {"type":"object","required":["device","from","to","step_s","source","cut","series"],"properties":{\
        "device":{"type":"string"},"from":{"type":"string","format":"date-time"},\
        "to":{"type":"string","format":"date-time"},"step_s":{"description":"Seconds of an interval.","type":"number"},\
        "source":{"description":"index: ten minutes or a multiple; records: shorter.","enum":["index","records"]},\
        "cut":{"description":"There are more series than 100: ask for a stream, a beacon or a key.","type":"boolean"},\
        "note":{"type":"string"},"series":{"type":"array","items":{"type":"object",\
        "required":["stream","key","time_ms","records","min","mean","max"],"properties":{\
        "stream":{"type":"string"},"beacon":{"type":"string"},"key":{"type":"string"},\
        "unit":{"description":"Absent if the key has none.","type":"string"},\
        "time_ms":{"description":"The beginning of each interval with values, milliseconds since 1970.",\
        "type":"array","items":{"type":"integer"}},\
        "records":{"type":"array","items":{"type":"integer"}},"min":{"type":"array","items":{"type":"number"}},\
        "mean":{"type":"array","items":{"type":"number"}},"max":{"type":"array","items":{"type":"number"}}}}}}}
        """
}

extension APIColumn.Kind {
    /// `isList`: of a list with an element for each row, null where nothing was reported.
    fileprivate func schema(isList: Bool) -> String {
        if isList {
            let type = self == .number ? "number" : "string"
            return #""type":"array","items":{"type":["\#(type)","null"]}"#
        }
        switch self {
        case .text: return #""type":"string""#
        case .number: return #""type":"number""#
        case .integer: return #""type":"integer""#
        case .time: return #""type":"string","format":"date-time""#
        case .list: return #""type":"array","items":{"type":"string"}"#
        case .object: return #""type":"object""#
        }
    }
}
