// The track of a day as a file for other programs.
import Host
import ServerBase
import ServerIndex

extension Track {
    /// Returns GPX 1.1 (topografix.com/gpx/1/1), with a segment for each part.
    func gpx(name: String) -> [UInt8] {
        var xml = HTML()
        xml.raw(
            """
            <?xml version="1.0" encoding="UTF-8"?>
            <gpx version="1.1" creator="Waypost" xmlns="http://www.topografix.com/GPX/1/1"><trk>
            """
        )
        xml.element("name", name)
        for part in parts {
            xml.raw("<trkseg>\n")
            for fix in part {
                let place: [HTML.Attribute] = [
                    ("lat", Words.decimal(fix.latitude, 7)),
                    ("lon", Words.decimal(fix.longitude, 7)),
                ]
                xml.element("trkpt", place) { xml in
                    if let altitude = fix.altitude {
                        xml.element("ele", Words.decimal(altitude, 1))
                    }
                    xml.element("time", WallTime(milliseconds: fix.time).rfc3339)
                }
                xml.raw("\n")
            }
            xml.raw("</trkseg>")
        }
        xml.raw("</trk></gpx>\n")
        return xml.bytes
    }
}
