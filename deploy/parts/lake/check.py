"""Checks that files, Parquet in DuckDB and Parquet in Spark have the same records, and queries the same answers."""
import datetime
import math

import duckdb

import convert
import engines
import queries
import sources


def of_files(source, memory, threads, work):
    """Counts the records of each (stream, day) of the files, each id of a device once; line by line, not by the converter."""
    db = duckdb.connect()
    db.execute(f"SET memory_limit='{memory}'; SET temp_directory='{work}/spill'" + (f"; SET threads={threads}" if threads else ""))
    counts = {}
    for key, files in sources.grouped(source.files()).items():
        ids = 0
        paths = source.local(files, work / "objects")
        try:
            ids, = db.execute(f"""
                SELECT count(DISTINCT (device, json->>'$.id'))
                FROM read_ndjson_objects({convert.listed(paths)}, ignore_errors=true, hive_partitioning=true,
                                         hive_types_autocast=false)
                WHERE json_type(json) = 'OBJECT' AND coalesce(json->>'$.timestamp', json->>'$.timestamp_start') IS NOT NULL
                """).fetchone()
        except duckdb.IOException:
            # Told by the conversion, at each of its runs.
            ids = -1
        if ids:
            counts[key] = ids
    return counts


def of_engine(engine):
    _, rows = engine.rows(queries.COUNTS)
    return {(stream, day): (records, ids) for stream, day, records, ids in rows}


def alike(one, other):
    """Returns the rows with fractions rounded to nine digits, because engines add in different orders."""
    return len(one) == len(other) and all(
        len(a) == len(b) and all(map(same, a, b)) for a, b in zip(one, other))


def same(a, b):
    if isinstance(a, float) and isinstance(b, (float, int)):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(a, datetime.datetime) and isinstance(b, datetime.datetime):
        return a.replace(tzinfo=None) == b.replace(tzinfo=None)
    return a == b


def table(lake, source, memory, threads, work, names):
    """Prints a line per stream and day, and returns the number of those that differ."""
    opened = {name: engines.ENGINES[name](lake, memory, threads, work) for name in names}
    files = of_files(source, memory, threads, work) if source else {}
    seen = {name: of_engine(engine) for name, engine in opened.items()}
    wrong = 0
    heads = (["files"] if source else []) + list(opened)
    print(f"{'STREAM':<24} {'DAY':<10} " + " ".join(f"{head.upper():>12}" for head in heads) + "  NOTE")
    for key in sorted(set(files).union(*seen.values())):
        note, is_wrong = judged(key, lake, files.get(key, 0) if source else None, [seen[name].get(key, (0, 0)) for name in opened])
        wrong += is_wrong
        cells = ([files.get(key, 0)] if source else []) + [seen[name].get(key, (0, 0))[0] for name in opened]
        print(f"{key[0]:<24} {key[1]:<10} " + " ".join(f"{cell:>12,}" for cell in cells) + f"  {note}")
    for name in sorted(queries.QUERIES):
        wrong += differs(name, lake, opened)
    return wrong


def judged(key, lake, in_files, seen):
    stream, day = key
    said = convert.described(lake.path / f"stream={stream}" / f"date={day}" / convert.FILE) or {}
    notes = [f"{said[name]} {name}" for name in ("broken", "kept", "unreadable") if said.get(name)]
    faults = []
    if any(records != ids for records, ids in seen):
        faults.append("an id occurs twice")
    if len({records for records, _ in seen}) > 1 or said.get("records") != seen[0][0]:
        faults.append("the engines differ")
    if in_files is not None and in_files and not said.get("unreadable") and in_files + said.get("kept", 0) != seen[0][0]:
        faults.append("the files differ: convert again")
    return ", ".join(["DIFFERS: " + "; ".join(faults)] * bool(faults) + notes), bool(faults)


def differs(name, lake, opened):
    if len(opened) < 2 or not has_view(lake, queries.VIEWS[name]):
        return False
    answers = [engine.rows(queries.QUERIES[name][1]) for engine in opened.values()]
    is_alike = answers[0][0] == answers[1][0] and alike(answers[0][1], answers[1][1])
    print(f"query {name}: {len(answers[0][1])} rows, " + ("alike" if is_alike else "DIFFERS"))
    return not is_alike


def has_view(lake, view):
    return view == "records" or view in lake.folders or view == "readings" and bool(lake.with_numbers)
