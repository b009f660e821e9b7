"""Named queries: the same text for both engines, over the views that `engines` makes."""

QUERIES = {
    "devices": ("devices heard, and their records, by day", """
        SELECT date, count(DISTINCT device) AS devices, count(DISTINCT stream) AS streams, count(*) AS records
        FROM records GROUP BY date ORDER BY date"""),
    "beacons": ("sightings and beacons by hour", """
        SELECT date_trunc('hour', timestamp) AS hour, count(*) AS sightings, count(DISTINCT beacon_id) AS beacons,
               count(DISTINCT device) AS devices, avg(rssi) AS rssi
        FROM beacons GROUP BY date_trunc('hour', timestamp) ORDER BY hour"""),
    "track": ("fixes and the length of the track by day and device, fix to fix", """
        SELECT date, device, count(*) AS fixes, sum(CASE WHEN south IS NOT NULL THEN 6371008.8 * 2 * asin(sqrt(least(1.0,
                   power(sin(radians(latitude - south) / 2), 2)
                   + cos(radians(south)) * cos(radians(latitude)) * power(sin(radians(longitude - west) / 2), 2)
               ))) END) / 1000 AS km
        FROM (SELECT date, device, latitude, longitude,
                     lag(latitude) OVER (PARTITION BY date, device ORDER BY timestamp, id) AS south,
                     lag(longitude) OVER (PARTITION BY date, device ORDER BY timestamp, id) AS west
              FROM location) AS fixes
        GROUP BY date, device ORDER BY date, device"""),
    "sound": ("chunks, hours and holes of more than a second by day and device", """
        SELECT date, device, count(*) AS chunks, sum(duration - coalesce(overlap_duration, 0)) / 3600 AS hours,
               count(CASE WHEN hole > 1 THEN 1 END) AS holes, sum(CASE WHEN hole > 1 THEN hole ELSE 0 END) AS hole_s
        FROM (SELECT date, device, duration, overlap_duration, unix_s - lag(unix_s + duration)
                     OVER (PARTITION BY date, device ORDER BY timestamp, id) AS hole
              FROM sound) AS chunks
        GROUP BY date, device ORDER BY date, device"""),
    "losses": ("gaps, losses and failed sources, as devices report them", """
        SELECT date, device, kind, source, count(*) AS events, sum(records) AS records
        FROM events WHERE kind IN ('gap', 'evicted', 'quarantined', 'source_lost', 'database_salvaged',
                                   'unexpected_duplicates', 'storage_low')
        GROUP BY date, device, kind, source ORDER BY date, device, kind, source"""),
    "streams": ("numbers of beacons and of streams of your own", """
        SELECT stream, name, count(*) AS readings, count(DISTINCT device) AS devices, min(value) AS least,
               avg(value) AS average, max(value) AS most
        FROM readings GROUP BY stream, name ORDER BY stream, name"""),
}
# The view that each needs; a lake without such a stream has none.
VIEWS = {"devices": "records", "beacons": "beacons", "track": "location", "sound": "sound", "losses": "events",
         "streams": "readings"}
COUNTS = """
    SELECT stream, CAST(date AS VARCHAR(10)) AS day, count(*) AS records, count(DISTINCT concat(device, '/', id)) AS ids
    FROM records GROUP BY stream, date ORDER BY stream, day"""
