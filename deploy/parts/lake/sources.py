"""Finds the lines to convert: in a server's data directory, a bucket, or a bucket that was copied into a folder."""
import dataclasses
import hashlib
import json
import pathlib
import re

PLACE = re.compile(r"(?:^|/)stream=([^/]+)/date=(\d{4}-\d\d-\d\d)/device=([^/]+)/[^/]+\.ndjson(?:\.gz|\.zst)?$")
# A compressed line takes about a tenth.
UNPACKED = 10


@dataclasses.dataclass(frozen=True)
class File:
    stream: str
    date: str
    device: str
    # Below the source.
    name: str
    size: int
    # A value that changes when the file's bytes change.
    mark: str

    @property
    def weight(self):
        """Estimates the bytes of JSON."""
        return self.size if self.name.endswith(".ndjson") else self.size * UNPACKED


def fingerprint(files):
    """Returns a digest of the files to read; if it changes, the day is converted again."""
    digest = hashlib.sha256()
    for file in sorted(files, key=lambda file: file.name):
        digest.update(f"{file.name}\0{file.size}\0{file.mark}\n".encode())
    return digest.hexdigest()


def grouped(files):
    """Lists the files by (stream, date), in order."""
    groups = {}
    for file in sorted(files, key=lambda file: (file.stream, file.date, file.device, file.name)):
        groups.setdefault((file.stream, file.date), []).append(file)
    return groups


class Folder:
    def __init__(self, path):
        self.path = pathlib.Path(path)
        if not self.path.is_dir():
            raise SystemExit(f"lake: {path} is not a folder")

    def files(self, date=None):
        for path in self.path.glob(f"stream=*/date={date or '*'}/device=*/*.ndjson*"):
            name = str(path.relative_to(self.path))
            if place := PLACE.search(name):
                status = path.stat()
                yield File(*place.groups(), name, status.st_size, str(status.st_mtime_ns))

    def local(self, files, _):
        """Returns the paths to read."""
        return [str(self.path / file.name) for file in files]


class Bucket:
    """`s3://BUCKET[/PREFIX]`; keys, region and endpoint as every tool of AWS takes them (AWS_ENDPOINT_URL, …)."""

    def __init__(self, address):
        import boto3

        self.bucket, _, prefix = address.removeprefix("s3://").partition("/")
        self.prefix = prefix.rstrip("/") + "/" if prefix.strip("/") else ""
        self.client = boto3.client("s3")

    def files(self, date=None):
        pages = self.client.get_paginator("list_objects_v2")
        for stream in self._streams():
            below = f"{stream}date={date}/" if date else stream
            for page in pages.paginate(Bucket=self.bucket, Prefix=below):
                for entry in page.get("Contents", []):
                    name = entry["Key"][len(self.prefix):]
                    if place := PLACE.search(name):
                        yield File(*place.groups(), name, entry["Size"], entry["ETag"])

    def _streams(self):
        pages = self.client.get_paginator("list_objects_v2")
        for page in pages.paginate(Bucket=self.bucket, Prefix=self.prefix + "stream=", Delimiter="/"):
            yield from (entry["Prefix"] for entry in page.get("CommonPrefixes", []))

    def local(self, files, folder):
        """Fetches the objects below `folder`."""
        paths = []
        for file in files:
            path = pathlib.Path(folder, file.name)
            path.parent.mkdir(parents=True, exist_ok=True)
            self.client.download_file(self.bucket, self.prefix + file.name, str(path))
            paths.append(str(path))
        return paths


def opened(source):
    return Bucket(source) if source.startswith("s3://") else Folder(source)


def has_open_end(path):
    """True if the last line of a plain file is incomplete, because a server is writing it."""
    if not path.endswith(".ndjson"):
        return False
    with open(path, "rb") as file:
        file.seek(max(0, file.seek(0, 2) - (1 << 20)))
        tail = file.read().rpartition(b"\n")[2]
    try:
        return bool(tail.strip()) and not json.loads(tail)
    except ValueError:
        return True
