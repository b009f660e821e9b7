// Tokens, verify, enrolment and jobs.
import Foundation
import HTTP
import Host

extension ConformanceCheck {
    private static let verify = "/api/device/verify"
    private static let enroll = "/api/device/enroll"
    private static let wrongToken = "conformance-of-a-token-that-nobody-has"

    static let access: [String: Body] = [
        "token": {
            try $0.expect($0.upload($0.batch(), token: wrongToken), 401, 403)
            try $0.expect($0.upload($0.batch(), token: ""), 401, 403)
        },
        "verify": {
            let answer = try $0.post(verify, "", token: $0.target.token)
            guard answer.status != 404 else { throw CheckEnd.skipped("verify is not offered") }
            try $0.expectAccepted(answer)
            guard answer.isObject else { throw CheckEnd.failed("a JSON object") }
            ($0.verified, $0.jobs) = (answer, answer.reply.jobs)
        },
        "verify-token": {
            let answer = try $0.post(verify, "", token: wrongToken)
            guard answer.status != 404 else { throw CheckEnd.skipped("verify is not offered") }
            try $0.expect(answer, 401, 403)
            guard answer.isObject else { throw CheckEnd.failed("a JSON object") }
        },
        "max-body": {
            guard let answer = $0.verified else { throw CheckEnd.skipped("verify is not offered") }
            guard answer.maxBody == nil else { return }
            throw CheckEnd.failed("max_body, a number")
        },
    ]

    static let enrolment: [String: Body] = [
        "code": {
            let answer = try $0.post(enroll, request("0000-0000", $0.newDevice), token: nil)
            if answer.status == 429 { throw CheckEnd.skipped("the server asks to try later") }
            guard $0.target.code != nil || ![404, 405].contains(answer.status) else {
                throw CheckEnd.skipped("enroll is not offered; give --code if it is")
            }
            try expectRefused(answer)
        },
        "enrol": {
            guard let code = $0.target.code else { throw CheckEnd.skipped("needs --code") }
            $0.secrets.add(ownToken)
            let answer = try $0.post(enroll, request(code, $0.newDevice, ownToken), token: nil)
            try $0.expectAccepted(answer)
            guard let token = answer.object?["token"] as? String else {
                throw CheckEnd.failed("a token")
            }
            $0.secrets.add(token)
            let batch = TrialBatch(device: $0.newDevice, count: 3)
            try $0.expectAccepted($0.upload(batch, token: token))
            $0.enrolled = token
        },
        "enrol-again": {
            guard let code = $0.target.code, $0.enrolled == ownToken else {
                throw CheckEnd.skipped("needs --code, and a server that takes the device's token")
            }
            let answer = try $0.post(enroll, request(code, $0.newDevice, ownToken), token: nil)
            guard answer.object?["token"] as? String == ownToken else {
                throw CheckEnd.failed("2xx and the same token")
            }
        },
        "code-once": {
            guard let code = $0.target.code, $0.enrolled != nil else {
                throw CheckEnd.skipped("needs --code")
            }
            let other = request(code, $0.newDevice + "-b", ownToken + "b")
            try expectRefused($0.post(enroll, other, token: nil))
        },
        "own-device": {
            guard let token = $0.enrolled else { throw CheckEnd.skipped("needs --code") }
            let other = TrialBatch(device: $0.newDevice + "-b", count: 1)
            try $0.expect($0.upload(other, token: token), 403)
        },
    ]

    static let jobs: [String: Body] = [
        "jobs": {
            if let first = $0.first, first.object?["jobs"] != nil, first.reply.jobs == nil {
                throw $0.failed("a tag of 1 to 64 printable characters", got: first.message)
            }
            let answer = try list($0, token: $0.target.token)
            try $0.expect(answer, 200)
            guard let jobs = answer.object?["jobs"] as? [[String: Any]], jobs.count <= 64,
                $0.jobs == nil || answer.object?["tag"] is String, answer.body.count <= 64 << 10,
                jobs.allSatisfy({ isID($0["id"]) && $0["kind"] is String })
            else { throw CheckEnd.failed("a list as in JOBS") }
            $0.hasJobs = true
        },
        "jobs-token": {
            guard $0.hasJobs else { throw CheckEnd.skipped("jobs are not offered") }
            try $0.expect(list($0, token: wrongToken), 401, 403)
        },
    ]

    private static func list(_ trial: ConformanceTrial, token: String) throws -> Answer {
        let url = "\(trial.target.url)/api/device/jobs?device_id=\(trial.device)"
        let request = HTTPRequest(getting: url, headers: ["X-Device-Token: \(token)"])
        let answer = try trial.send("GET /api/device/jobs?device_id=\(trial.device)", request)
        guard trial.jobs != nil || ![404, 405, 501].contains(answer.status) else {
            throw CheckEnd.skipped("jobs are not offered")
        }
        return answer
    }

    private static func isID(_ id: Any?) -> Bool {
        guard let id = id as? String else { return false }
        return (1...64).contains(id.utf8.count) && id.utf8.allSatisfy { (33...126).contains($0) }
    }

    /// A token that this run made, as a device does.
    private static let ownToken = "conformance-" + UUID().uuidString.lowercased()

    private static func request(_ code: String, _ device: String, _ token: String? = nil) -> String
    {
        let token = token.map { #","token":"\#($0)""# } ?? ""
        return #"{"code":"\#(code)","device_id":"\#(device)"\#(token)}"#
    }

    private static func expectRefused(_ answer: Answer) throws {
        guard (400...499).contains(answer.status), ![408, 425, 429].contains(answer.status),
            answer.isObject
        else { throw CheckEnd.failed("4xx with a JSON object, but not 408, 425 or 429") }
    }
}
