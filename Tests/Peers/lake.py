"""Reads a bucket as an analyst would: its objects copied into a folder, and one query over all of them.

Needs boto3 and DuckDB (PyPI).

    lake.py ENDPOINT BUCKET ID SECRET FOLDER

Prints one line of JSON: `rows` (a row for each stream, date and device: their records, and how many ids are among
them), `objects` (key: media type), `digests` (key: SHA-256), `sound` (file: its first four bytes, for each record that names one).
"""

import hashlib
import json
import os
import sys

import boto3
import duckdb

QUERY = """
    SELECT stream, date::VARCHAR AS date, device, count(*) AS records, count(DISTINCT id) AS ids
    FROM read_ndjson('{0}/**/*.ndjson*', hive_partitioning = true, columns = {{id: 'VARCHAR'}})
    GROUP BY ALL ORDER BY ALL
"""
SOUND = """
    SELECT filename, audio_file FROM read_ndjson({0}, filename = true)
"""


def main():
    endpoint, bucket, key, secret, folder = sys.argv[1:]
    store = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1",
                         aws_access_key_id=key, aws_secret_access_key=secret)
    objects, digests = {}, {}
    for page in store.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        for entry in page.get("Contents", []):
            path = os.path.join(folder, entry["Key"])
            os.makedirs(os.path.dirname(path), exist_ok=True)
            answer = store.get_object(Bucket=bucket, Key=entry["Key"])
            objects[entry["Key"]] = answer["ContentType"]
            content = answer["Body"].read()
            digests[entry["Key"]] = hashlib.sha256(content).hexdigest()
            with open(path, "wb") as file:
                file.write(content)
    rows, sound = [], {}
    if any(".ndjson" in key for key in objects):
        rows = duckdb.sql(QUERY.format(folder)).fetchall()
    named = [os.path.join(folder, key) for key in objects if "audio" in key and ".ndjson" in key]
    if named:
        for records, name in duckdb.sql(SOUND.format(named)).fetchall():
            parts = os.path.relpath(os.path.dirname(records), folder).split(os.sep)
            # `stream=NAME/date=DATE/device=ID` of a bucket's folder has its audio in `audio/NAME/DATE/ID`.
            start = next(number for number, part in enumerate(parts) if part.startswith("stream="))
            audio = [*parts[:start], "audio", *(part.partition("=")[2] for part in parts[start:])]
            with open(os.path.join(folder, *audio, name), "rb") as file:
                sound[name] = file.read(4).decode("latin-1")
    print(json.dumps({"rows": rows, "objects": objects, "digests": digests, "sound": sound}))


main()
