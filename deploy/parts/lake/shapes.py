"""Defines the columns of a stream.

A column's type is fixed here and never guessed from a day's values. What has no column is kept: `record` holds the
line as it came where the columns do not hold all of it, and always in streams whose members are free.
"""
import dataclasses

# Types as DuckDB and Spark call them.
SPARK_TYPES = {"VARCHAR": "string", "DOUBLE": "double", "INTEGER": "int", "BIGINT": "bigint", "TIMESTAMP": "timestamp_ntz",
               "MAP(VARCHAR, DOUBLE)": "map<string,double>"}
NUMBERS = "MAP(VARCHAR, DOUBLE)"


@dataclasses.dataclass(frozen=True)
class Column:
    name: str
    type: str
    # The member that it is read from; None: `made` makes it of other columns.
    member: str | None = None
    # The type it is read as before it becomes `type`: an integer is checked for a fraction first.
    read: str = "VARCHAR"
    made: str = ""
    # The member's name in a bucket, if it is another.
    in_bucket: str | None = None

    @property
    def members(self):
        return [name for name in (self.member, self.in_bucket) if name]

    @property
    def sql(self):
        """SQL that computes the column from `m`, the members of the line."""
        if not self.member:
            return self.made
        value = ", ".join(f'm."{name}"' for name in self.members)
        if self.in_bucket:
            value = f"coalesce({value})"
        if self.type == "TIMESTAMP":
            return utc(value)
        if self.type in ("INTEGER", "BIGINT"):
            return f"CASE WHEN {value} = trunc({value}) THEN TRY_CAST({value} AS {self.type}) END"
        return f"{value}::VARCHAR" if self.read == "JSON" else value


def utc(text):
    """RFC 3339 in UTC, without a zone: engines show such a time as it is, wherever they run. 60 is a leap second."""
    plain = f"regexp_replace(upper({text}), ':60([.Z+-])', ':59\\1')"
    return f"TRY_CAST({plain} AS TIMESTAMPTZ)::TIMESTAMP"


def numbers(members, without=()):
    """Numbers and truth values of a JSON object by their names; NULL where there are none, or a name comes twice."""
    left_out = "".join(f" AND e.key <> '{name}'" for name in without)
    entries = f"list_filter(map_entries(json_transform({members}, '\"MAP(VARCHAR,DOUBLE)\"')), lambda e: e.value IS NOT NULL{left_out})"
    return f"CASE WHEN len({entries}) > 0 THEN map_from_entries({entries}) END"


def text(*names):
    return [Column(name, "VARCHAR", name) for name in names]


def real(*names):
    return [Column(name, "DOUBLE", name, "DOUBLE") for name in names]


def whole(*names):
    return [Column(name, "INTEGER", name, "DOUBLE") for name in names]


SHAPES = {
    "location": [
        Column("timestamp", "TIMESTAMP", "timestamp"),
        *real("latitude", "longitude", "altitude", "speed", "course", "horizontal_accuracy", "vertical_accuracy"),
        *text("fix"), *whole("satellites"), *text("clock"),
    ],
    "sound": [
        Column("timestamp", "TIMESTAMP", "timestamp_start"), Column("timestamp_end", "TIMESTAMP", "timestamp_end"),
        *real("duration", "overlap_duration", "average_db_level"), *whole("sample_rate"), *text("audio_format", "audio_file"),
        # The column `device` is the gateway.
        Column("capture_device", "VARCHAR", "capture_device", in_bucket="device"), *text("clock"),
    ],
    "beacons": [
        Column("timestamp", "TIMESTAMP", "timestamp"), *text("kind", "beacon_id", "address", "address_type"),
        *whole("rssi", "tx_power"), Column("telemetry", "VARCHAR", "telemetry", "JSON"),
        Column("numbers", NUMBERS, made="CASE WHEN m.telemetry IS NOT NULL THEN " + numbers("m.telemetry") + " END"),
        *text("data", "clock"),
    ],
    "events": [
        Column("timestamp", "TIMESTAMP", "timestamp"), *text("kind", "source"), Column("detail", "VARCHAR", "detail", "JSON"),
        Column("records", "BIGINT", made="TRY_CAST(m.detail->>'$.records' AS BIGINT)"), *text("clock"),
    ],
    "free": [
        Column("timestamp", "TIMESTAMP", "timestamp"),
        Column("numbers", NUMBERS, made=numbers("json", ("id", "timestamp", "clock"))), *text("clock"),
    ],
}
# Streams by the names that they have unless a configuration changes them.
USUAL = {"linux_gpsd_location": "location", "linux_alsa_audio": "sound", "linux_bluez_beacons": "beacons",
         "waypost_events": "events"}


def columns(shape):
    """Returns all columns of a shape, as they are in the files."""
    return [Column("device", "VARCHAR"), Column("id", "VARCHAR", "id"), *SHAPES[shape], Column("record", "VARCHAR")]


def reading(shape, files):
    """A query for the lines of `files` (SQL): the shape's columns; `id` and `timestamp` NULL if a line is not a record."""
    read = [Column("id", "VARCHAR", "id"), *(column for column in SHAPES[shape] if column.member)]
    members = ", ".join(f'"{name}": "{column.read}"' for column in read for name in column.members)
    rest = ", ".join(f"{column.sql} AS {column.name}" for column in SHAPES[shape])
    held = " + ".join(f"({column.name} IS NOT NULL)::INT" for column in read)
    record = "json" if shape == "free" else f"CASE WHEN keys <> {held} THEN json END"
    order = ", ".join(column.name for column in columns(shape)[:-1])
    # `json` is NULL for a line that cannot be read.
    return f"""
        SELECT {order}, {record} AS record, filename FROM (
            SELECT device, m.id AS id, {rest}, json::VARCHAR AS json, keys, filename FROM (
                SELECT device, json, filename, json_transform(json, '{{{members}}}') AS m, len(json_keys(json)) AS keys
                FROM read_ndjson_objects({files}, ignore_errors=true, filename=true, hive_partitioning=true,
                                         hive_types_autocast=false)))"""
