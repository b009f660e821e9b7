// Cells of CSV files: quotation marks, and texts that spreadsheets would run.
import Host
import Testing

@Suite struct CSVCellTests {
    /// OWASP, "CSV Injection": = + - @, a tab, a carriage return; a number is no formula.
    @Test(arguments: [
        ("=HYPERLINK(\"x\")", "\"'=HYPERLINK(\"\"x\"\")\""),
        ("+1+cmd|' /C calc'!A0", "'+1+cmd|' /C calc'!A0"),
        ("@SUM(1)", "'@SUM(1)"), ("-2+3", "'-2+3"), ("\t=1", "'\t=1"), ("\r=1", "\"'\r=1\""),
        ("-12.5", "-12.5"), ("+1", "+1"), ("-1e-7", "-1e-7"), ("a=1", "a=1"), ("", ""),
        ("a,b", "\"a,b\""), (" a", "\" a\""), ("\"\u{301}", "\"\"\"\u{301}\""),
    ])
    func cell(text: String, written: String) {
        // By bytes: a mark may be combined with a quotation mark.
        #expect(Array(csvCell(text).utf8) == Array(written.utf8))
    }
}
