// The reasons for which a code is not exchanged.

/// Why a device did not get a token for a code.
enum EnrolmentError: Error, Equatable {
    /// The code is unknown, used, expired or not valid: one case, so that an answer does not say which.
    case badCode
    /// The code was made for another device than this one.
    case otherDevice(String)
    case alreadyEnrolled(String)

    var reason: String {
        switch self {
        case .badCode: "this code is not known, was used, or is too old"
        case .otherDevice(let device):
            "this code was made for another device_id than \(device)"
        case .alreadyEnrolled(let device):
            "\(device) is already enrolled; use a code of: waypost-receiver codes add --device "
                + "\(device) --replace"
        }
    }
}
