// From the configuration to what the parts are told.
import Testing
import Upload

@testable import Gateway

@Suite struct SettingsTests {
    @Test func upload_hasWhatIsConfigured() {
        var configuration = Configuration.Upload()
        #expect(UploadSettings(configuration).maxAttempts == 5)
        configuration.maxAttempts = 7
        configuration.maxBatchBytes = 12_345
        configuration.interval = .seconds(77)
        let settings = UploadSettings(configuration)
        #expect(settings.maxAttempts == 7)
        #expect(settings.maxBatchBytes == 12_345)
        #expect(settings.interval == .seconds(77))
    }
}
