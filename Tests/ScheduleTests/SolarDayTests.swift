// The sun's times, compared with PyPI astral (Tests/Peers/sun.py) and at the poles.
import Configuration
import Foundation
import Host
import Support
import Testing

@testable import Schedule

/// 2027-01-01 in days since 1970-01-01.
let newYear: Int64 = 20_819

@Suite struct SolarDayTests {
    /// Returns the times of astral by place: for each day of 2027 the seconds of each event.
    private func astral() throws -> [(SitePosition, [[Int64?]])] {
        let text = try String(
            contentsOfFile: Tree.path("Tests/Fixtures/sun/astral-3.2.csv"),
            encoding: .utf8
        )
        var places: [(SitePosition, [[Int64?]])] = []
        for line in text.split(separator: "\n") where !line.hasPrefix("#") {
            if line.hasPrefix("@ ") {
                places.append((try #require(SitePosition(String(line.dropFirst(2)))), []))
            } else {
                let fields = line.split(separator: ",", omittingEmptySubsequences: false)
                places[places.count - 1].1.append(fields.map { Int64($0) })
            }
        }
        return places
    }

    @Test func ayear_isWithinSecondsOfAstral() throws {
        var compared = 0
        let places = try astral()
        #expect(places.map(\.0.latitude) == [0, 46, 60, 70, -35])
        for (position, year) in places {
            #expect(year.count == 365)
            for (day, times) in year.enumerated() {
                for (event, seconds) in zip(SunEvent.allCases, times) {
                    guard let seconds else { continue }
                    let theirs = (newYear + Int64(day)) * 86_400 + seconds
                    // Near the polar day, a sunset belongs to the noon of the date before.
                    let ours = (-1...1).map {
                        SolarDay(newYear + Int64(day + $0), at: position)[event].milliseconds / 1000
                    }
                    let error = ours.map { abs($0 - theirs) }.min() ?? .max
                    // astral dates noon by the equation of time at midnight, and near the polar
                    // day the sun climbs slowly.
                    #expect(
                        error <= (event == .noon || position.latitude == 70 ? 20 : 3),
                        "\(event) of day \(day) at \(position.text)"
                    )
                    compared += 1
                }
            }
        }
        #expect(compared > 8500)
    }

    /// Where astral finds no sunrise for days, ours is at noon in winter and at midnight in summer.
    @Test func polarDayAndNight_areWhereAstralFindsThem() throws {
        let (position, year) = try #require(astral().first { $0.0.latitude == 70 })
        for day in 2..<363 where (day - 2...day + 2).allSatisfy({ year[$0][1] == nil }) {
            let solar = SolarDay(newYear + Int64(day), at: position)
            let isSummer = (100..<280).contains(day)
            let hours = (solar[.sunset].milliseconds - solar[.sunrise].milliseconds) / 3_600_000
            #expect(isSummer ? (23...24).contains(hours) : solar[.sunrise] == solar[.sunset])
            if !isSummer { #expect(solar[.sunrise] == solar[.noon]) }
        }
    }

    @Test(arguments: [-180.0, -123.1, 0, 6.84, 151.2, 180])
    func aDay_isInOrder_andEndsWhereTheNextBegins(longitude: Double) throws {
        for latitude in [-90.0, -80, -35, 0, 46, 66.6, 89.9, 90] {
            let position = try #require(SitePosition(latitude: latitude, longitude: longitude))
            for day in stride(from: newYear, to: newYear + 365, by: 3) {
                let times = SunEvent.allCases.map { SolarDay(day, at: position)[$0] }
                // Where the sun touches the horizon, the equation of time moves them by seconds.
                for (one, next) in zip(times, times.dropFirst()) {
                    #expect(one < next + .seconds(15))
                }
                let length = times[4].milliseconds - times[0].milliseconds
                #expect((0...86_460_000).contains(length))
                #expect(SolarDay(day + 1, at: position)[.dawn] + .seconds(1) >= times[4])
                // Its date is that of the place.
                let local = times[2].milliseconds + Int64(longitude * 240_000)
                #expect(local.floorDivided(by: 86_400_000) == day)
            }
        }
    }

    @Test func polarDay_hasNoNight() throws {
        let position = try #require(SitePosition("78.2,15.6"))
        for day in newYear + 150..<newYear + 190 {
            #expect(
                SolarDay(day, at: position)[.sunset] == SolarDay(day + 1, at: position)[.sunrise]
            )
        }
    }

    @Test func position_isParsedAndWritten() {
        #expect(SitePosition("46.46,6.84")?.text == "46.46,6.84")
        #expect(SitePosition("-35, +149.1")?.longitude == 149.1)
        for wrong in [
            "", "46.46", "46.46;6.84", "91,0", "0,181", "46,46,6,84", "nan,0", "inf,1", "1e1,0",
            "46.46N,6.84E", "0x1,0", ",",
        ] {
            #expect(SitePosition(wrong) == nil, "\(wrong)")
        }
    }

    @Test func distance_crossesTheDateLine() throws {
        let (east, west) = (
            try #require(SitePosition("0,179.95")), try #require(SitePosition("0,-179.95"))
        )
        #expect(abs(east.distance(to: west) - 11_120) < 20)
        let north = try #require(SitePosition("60,10"))
        #expect(abs(north.distance(to: try #require(SitePosition("60,11"))) - 55_600) < 100)
    }
}
