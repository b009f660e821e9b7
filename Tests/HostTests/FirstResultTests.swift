// The first result of a function whose results change.
import Host
import Testing

@Suite struct FirstResultTests {
    @Test func firstValue_isReturned_withoutAskingTheRest() {
        var asked: [Int] = []
        let found = [1, 2, 3].firstResult { number -> String? in
            defer { asked.append(number) }
            return number == 2 && !asked.contains(2) ? "two" : nil
        }
        #expect(found == "two")
        #expect(asked == [1, 2])
        #expect([1, 2].firstResult { _ in Int?.none } == nil)
    }
}
