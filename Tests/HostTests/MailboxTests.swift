import Host
import Testing

/// Which elements wake the reader of a mailbox, and which wait for others.
@Suite struct MailboxTests {
    private static let long = Duration.seconds(60)

    @Test func patientElement_isTakenAtTheDeadline() {
        let mailbox = Mailbox<Int>(limit: 10)
        var taken: [Int] = []
        #expect(mailbox.post(1, patient: true))
        mailbox.takeAll(into: &taken, timeout: .milliseconds(1))
        #expect(taken == [1])
    }

    @Test func patientElement_isTakenAtOnce_withoutADeadline() throws {
        let mailbox = Mailbox<Int>(limit: 10)
        let thread = try OwnThread("poster") { _ = mailbox.post(1, patient: true) }
        var taken: [Int] = []
        mailbox.takeAll(into: &taken, timeout: nil)
        thread.join()
        #expect(taken == [1])
    }

    @Test(arguments: [true, false])
    func otherElement_bringsThePatientOnesAlong(urgent: Bool) throws {
        let mailbox = Mailbox<Int>(limit: 2)
        let thread = try OwnThread("poster") {
            for number in 1...2 { _ = mailbox.post(number, patient: true) }
            _ = mailbox.post(3, urgent: true, patient: !urgent)
            if !urgent { _ = mailbox.post(4, urgent: true) }
        }
        var taken: [Int] = []
        mailbox.takeAll(into: &taken, timeout: Self.long)
        thread.join()
        #expect(taken == (urgent ? [1, 2, 3] : [1, 2, 3, 4]))
    }

    @Test func patientElements_areTakenTogether_whenTheyAreMany() throws {
        let mailbox = Mailbox<Int>(limit: 1000)
        let thread = try OwnThread("poster") {
            for number in 0..<256 { _ = mailbox.post(number, patient: true) }
        }
        var taken: [Int] = []
        mailbox.takeAll(into: &taken, timeout: Self.long)
        thread.join()
        #expect(taken == Array(0..<256))
    }

    @Test func fullMailbox_refusesAllButTheUrgent() {
        let mailbox = Mailbox<Int>(limit: 2)
        #expect(mailbox.post(1))
        #expect(mailbox.post(2, patient: true))
        #expect(!mailbox.post(3))
        #expect(mailbox.post(4, urgent: true))
        var taken: [Int] = []
        mailbox.takeAll(into: &taken, timeout: nil)
        #expect(taken == [1, 2, 4])
    }
}
