"""`deploy/lake`: turns lines into Parquet, and queries them with DuckDB or Spark. See deploy/docs/data.md."""
import argparse
import csv
import datetime
import pathlib
import shutil
import sys
import tempfile
import time

sys.dont_write_bytecode = True

import check
import convert
import engines
import queries
import shapes
import sources


def arguments():
    named = "\n".join(f"  {name:<8} {about}" for name, (about, _) in queries.QUERIES.items())
    parser = argparse.ArgumentParser(prog="deploy/lake", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="convert|query|check")
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--memory", default="1GB", help="memory limit of an engine (1GB); the rest goes to temporary files")
    shared.add_argument("--threads", type=int, help="cores to use (all)")
    into = commands.add_parser("convert", parents=[shared], help="write Parquet for new and changed days")
    into.add_argument("--from", dest="source", required=True, metavar="DATA", help="a server's --data, s3://BUCKET, or a copy of a bucket")
    into.add_argument("--to", required=True, metavar="LAKE", help="the folder of the lake")
    into.add_argument("--date", type=day, help="only this day (YYYY-MM-DD)")
    into.add_argument("--shape", action="append", default=[], type=shaped, metavar="STREAM=SHAPE",
                      help="the shape of a stream that has another name: " + ", ".join(shapes.SHAPES))
    ask = commands.add_parser("query", parents=[shared], help="query the lake", epilog="queries:\n" + named,
                              formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("query", metavar="NAME|SQL")
    ask.add_argument("--csv", action="store_true", help="comma-separated values instead of a table")
    ask.add_argument("--engine", choices=engines.ENGINES, default="duckdb")
    compare = commands.add_parser("check", parents=[shared], help="compare files, DuckDB and Spark")
    compare.add_argument("--from", dest="source", metavar="DATA", help="the files that the lake was made of")
    compare.add_argument("--engine", choices=engines.ENGINES, action="append", help="only this engine (default: both)")
    for one in (ask, compare):
        one.add_argument("--lake", required=True)
    return parser.parse_args()


def day(text):
    return str(datetime.date.fromisoformat(text))


def shaped(text):
    stream, _, shape = text.partition("=")
    if not stream or shape not in shapes.SHAPES:
        raise argparse.ArgumentTypeError(f"{text}: STREAM={'|'.join(shapes.SHAPES)}")
    return stream, shape


def run_convert(options):
    start, total, bad = time.monotonic(), convert.Counts(), 0
    converter = convert.Converter(sources.opened(options.source), options.to, options.memory, options.threads, options.shape)
    for stream, date, counts, told in converter.run(options.date):
        converter.say("")
        notes = [f"{number:,} {what}" for number, what in (
            (counts.broken, "broken lines"), (counts.repeated, "read twice"), (counts.kept, "kept, no longer in the files"),
            (counts.unreadable, "files unreadable")) if number]
        print(f"{stream} {date}: {counts.records:,} records" + "".join(", " + note for note in notes), flush=True)
        for line in told[:5] + ([f"and {len(told) - 5} more files"] if len(told) > 5 else []):
            print(f"lake: {line}", file=sys.stderr)
        total.records += counts.records
        bad += counts.broken + counts.unreadable
    seconds = time.monotonic() - start
    print(f"{total.records:,} records converted in {seconds:.1f} s" if total.records or bad else "nothing has changed")
    return 1 if bad else 0


def run_query(options, work):
    lake = engines.Lake(options.lake)
    _, sql = queries.QUERIES.get(options.query, ("", options.query))
    if options.query in queries.VIEWS and not check.has_view(lake, queries.VIEWS[options.query]):
        raise SystemExit(f"lake: {options.lake} has no stream for {options.query}")
    if " " not in sql:
        raise SystemExit(f"lake: there is no query {sql}; use {', '.join(queries.QUERIES)}, or SQL")
    names, rows = engines.ENGINES[options.engine](lake, options.memory, options.threads, work).rows(sql)
    if options.csv:
        csv.writer(sys.stdout).writerows([names, *rows])
        return 0
    cells = [names] + [[shown(value) for value in row] for row in rows]
    widths = [max(len(row[place]) for row in cells) for place in range(len(names))]
    for row in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    return 0


def shown(value):
    if isinstance(value, float):
        return f"{value:.7g}"
    return "" if value is None else str(value)


def run_check(options, work):
    source = sources.opened(options.source) if options.source else None
    names = options.engine or list(engines.ENGINES)
    wrong = check.table(engines.Lake(options.lake), source, options.memory, options.threads, work, names)
    print(f"{wrong} differ" if wrong else "all agree")
    return 1 if wrong else 0


def main():
    options = arguments()
    try:
        if options.command == "convert":
            return run_convert(options)
        work = pathlib.Path(tempfile.mkdtemp(prefix="waypost-lake."))
        try:
            return {"query": run_query, "check": run_check}[options.command](options, work)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
