// Whether libcurl undoes the `Content-Encoding` of answers.

/// Remembers that a server names a coding which libcurl does not know, such as `utf-8`: its answers are read as they come.
///
/// Used by the transport's thread only.
final class AnswerCoding {
    var isUndone = true
}
