// The switch for decoding the `Content-Encoding` of answers.

/// Remembers that a server sends a coding that libcurl does not know, such as `utf-8`.
///
/// Its answers are then read undecoded. Used by the transport's thread only.
final class AnswerCoding {
    var isUndone = true
}
