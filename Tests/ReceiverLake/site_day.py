"""A site's day as gateways send it: batches for a receiver, or objects as in a bucket.

    site_day.py DATE DEVICES URL     posts a whole day of so many devices to a receiver (any token), and says what it was

A device hears ten sightings a second of forty beacons (each tenth with a new reading), has a fix each ten seconds, and records
Opus all day: a chunk of 30 s each 28 s.
"""
import base64
import datetime
import gzip
import http.client
import json
import random
import sys
import time
import urllib.parse

BEACONS, SOUND, PLACES = "linux_bluez_beacons", "linux_alsa_audio", "linux_gpsd_location"
SYNC = 300


class Device:
    def __init__(self, number, date, sound=b"OggS"):
        self.chance = random.Random(number)
        self.name = f"{self.chance.getrandbits(32):08x}-51d4-4c1e-9d3b-{number:012x}"
        self.start = f"{self.chance.getrandbits(32):08x}-{self.chance.getrandbits(16):04x}-8e49-91c4-"
        self.midnight = datetime.datetime.fromisoformat(date).replace(tzinfo=datetime.timezone.utc).timestamp()
        self.rows = {BEACONS: 0, SOUND: 0, PLACES: 0}
        self.sound = base64.b64encode(sound).decode()
        self.north, self.east, self.spoken = 46.46, 6.84, 0.0

    def id(self, stream):
        self.rows[stream] += 1
        return f"{self.start}{ {PLACES: 1, SOUND: 2, BEACONS: 3}[stream]:02x}{self.rows[stream]:010x}"

    def at(self, second):
        return datetime.datetime.fromtimestamp(self.midnight + second, datetime.timezone.utc).isoformat(
            timespec="milliseconds").replace("+00:00", "Z")

    def sightings(self, begin, rate=10, length=SYNC):
        draw = self.chance.random
        for tick in range(int(length * rate)):
            beacon = int(draw() * 40)
            reading = ""
            if draw() < 0.1:
                reading = f',"telemetry":{{"temperature_c":{15 + 10 * draw():.2f},"humidity_percent":{40 + 20 * draw():.2f},"battery_mv":{2900 + int(99 * draw())}}}'
            yield (f'{{"id":"{self.id(BEACONS)}","timestamp":"{self.at(begin + (tick + draw()) / rate)}","kind":"ruuvi",'
                   f'"beacon_id":"CB:B8:33:4C:88:{beacon:02X}","address":"CB:B8:33:4C:88:{beacon:02X}","address_type":"random_static",'
                   f'"rssi":{-60 - beacon // 2 - int(12 * draw())}{reading},"clock":"synced"}}')

    def fixes(self, begin, length=SYNC):
        for second in range(0, length, 10):
            self.north += self.chance.gauss(0, 2e-5)
            self.east += self.chance.gauss(0, 2e-5)
            yield (f'{{"id":"{self.id(PLACES)}","timestamp":"{self.at(begin + second)}","latitude":{self.north:.7f},'
                   f'"longitude":{self.east:.7f},"altitude":{self.chance.uniform(370, 380):.1f},"speed":{self.chance.uniform(0, 2):.2f},'
                   f'"course":{self.chance.uniform(0, 360):.1f},"horizontal_accuracy":{self.chance.uniform(2, 9):.1f},'
                   f'"vertical_accuracy":{self.chance.uniform(4, 19):.1f},"fix":"3d","satellites":{self.chance.randint(5, 12)},"clock":"synced"}}')

    def chunks(self, begin, length=SYNC, is_inline=True):
        while self.spoken < begin + length:
            id = self.id(SOUND)
            sound = f'"audio_data":"{self.sound}"' if is_inline else f'"audio_file":"{self.rows[SOUND]}_{id}.ogg"'
            yield (f'{{"id":"{id}","timestamp_start":"{self.at(self.spoken)}","timestamp_end":"{self.at(self.spoken + 30)}",'
                   f'"duration":30.000,{sound},"audio_format":"ogg","sample_rate":16000,"overlap_duration":2.000,'
                   f'"average_db_level":{self.chance.uniform(-60, -20):.1f},"device":"hw:1","clock":"synced"}}')
            self.spoken += 28

    def sync(self, begin, rate=10):
        """The batches of one sync, by stream."""
        return {PLACES: list(self.fixes(begin)), SOUND: list(self.chunks(begin)), BEACONS: list(self.sightings(begin, rate))}


def post(connection, device, stream, key, records, token="any"):
    """Sends a batch; fails unless it is taken."""
    body = (f'{{"stream_name":"{stream}","device_id":"{device}","data":[{",".join(records)}],'
            f'"batch_metadata":{{"total_records":{len(records)}}}}}')
    connection.request("POST", "/api/ingest", gzip.compress(body.encode(), 1), {
        "X-Device-Token": token, "Idempotency-Key": f'"{key}"', "Content-Type": "application/json", "Content-Encoding": "gzip"})
    answer = connection.getresponse()
    text = answer.read()
    assert answer.status == 200, text
    return json.loads(text)


def main():
    date, devices, url = sys.argv[1], int(sys.argv[2]), urllib.parse.urlsplit(sys.argv[3])
    connection = http.client.HTTPConnection(url.hostname, url.port)
    records = 0
    for number in range(devices):
        device = Device(number, date)
        for begin in range(0, 86400, SYNC):
            for stream, lines in device.sync(begin).items():
                post(connection, device.name, stream, f"{stream}-{begin}", lines)
                records += len(lines)
        print(f"{device.name}: {device.rows}", flush=True)
    print(f"{records} records, {time.process_time():.0f} s CPU to make and send them")


if __name__ == "__main__":
    main()
