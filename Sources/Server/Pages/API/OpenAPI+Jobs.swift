// The description of the jobs that a device fetches, for another server (waypost-protocol(7), JOBS).

extension OpenAPI {
    static let jobsPath = "/api/device/jobs"

    static let jobs = """
        {"get":{"operationId":"jobs","summary":"What a device is asked to do.","description":"The JSON answers to a \
        batch (POST /api/ingest) and to POST /api/device/verify have the tag of the list as jobs while there are jobs. \
        A device that has not handled this tag fetches the list. Each outcome is a record of the stream waypost_replies \
        in a later batch: schema reply.","security":[{"device":[]}],"parameters":[{"name":"device_id","in":"query",\
        "description":"Needed with a token that several devices share.","schema":{"type":"string","pattern":"\(name)"}}],\
        "responses":{"200":{"description":"The list; empty without jobs.","content":{"application/json":{"schema":\(list)}}},\
        "403":{"description":"The token is of another device.","content":{"application/json":{"schema":\
        {"$ref":"#/components/schemas/error"}}}},\(refusals)}}}
        """

    private static let list = """
        {"type":"object","required":["tag","jobs"],"properties":{"tag":{"description":"Changes with the list.",\
        "type":"string","minLength":1,"maxLength":64},"jobs":{"type":"array","maxItems":64,"items":{"type":"object",\
        "required":["id","kind"],"properties":{"id":{"type":"string","minLength":1,"maxLength":64},\
        "kind":{"enum":["report","sync","restart","resend","audio","settings","upgrade"]},\
        "source":{"description":"Of restart.","enum":["beacons","location","audio"]},\
        "stream":{"description":"Of resend; all without it.","type":"string"},\
        "since":{"description":"Of resend: uploaded from this time on.",\(time)},\
        "until":{"description":"Not begun after this time; of resend: uploaded before it.",\(time)},\
        "from":{"description":"Of audio: sound from this time on.",\(time)},"to":{"description":"Of audio: its end.",\(time)},\
        "version":{"description":"Of settings a number, and versions only rise; of an upgrade a version of Debian.",\
        "type":["integer","string"],"minimum":1,"maximum":999999999,"maxLength":64},\
        "for":{"description":"Of settings: the device's id, which the signature covers.","type":"string"},\
        "text":{"description":"Of settings: TOML, empty for the device's own file alone.","type":"string"},\
        "signature":{"description":"Of settings or an upgrade: a file of minisign(1).","type":"string"}}}}}}
        """

    static let reply = """
        {"description":"A record of waypost_replies; of settings and upgrades two may come for a job.","type":"object",\
        "required":["id","timestamp","job","kind","state"],"properties":{"id":{"type":"string"},"timestamp":{\(time)},\
        "job":{"description":"The job's id.","type":"string"},"kind":{"type":"string"},\
        "state":{"enum":["done","refused","failed","expired","trial","kept","rolled_back"]},\
        "message":{"description":"The reason.","type":"string"},"version":{"description":"Of settings or an upgrade.","type":["integer","string"]},\
        "detail":{"description":"Of a report: status and doctor, as the commands print them with --json, text, as waypost \
        status prints it, and log, the last lines.","type":"object"},"clock":{"enum":["synced","corrected","unsynced"]}}}
        """

    private static let time = #""type":"string","format":"date-time""#
}
