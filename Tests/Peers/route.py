#!/usr/bin/env python3
"""A walk as NMEA sentences: RMC, GGA, GSA and GSV once a second.

Replayed with `gpsfake -c 0.25 FILE` (four sentences a second) it goes in real time. With --udp PORT it is sent
to 127.0.0.1 in real time and does not end, for `gpsd udp://127.0.0.1:PORT`. The path is invented:
a loop of some 900 m by a lake shore, at a walker's pace.
"""
import argparse
import itertools
import math
import socket
import sys
import time
from datetime import datetime, timedelta, timezone

LATITUDE, LONGITUDE = 46.4603, 6.8430


def sentence(body):
    checksum = 0
    for character in body:
        checksum ^= ord(character)
    return f"${body}*{checksum:02X}\r\n"


def degrees(value, width, letters):
    letter = letters[0] if value >= 0 else letters[1]
    value = abs(value)
    return f"{int(value):0{width}d}{(value % 1) * 60:07.4f},{letter}"


def position(second):
    """A lopsided loop, 1.4 m/s: metres north and east of the start, and metres up."""
    angle = second * 1.4 / 140
    north = 140 * math.sin(angle) + 25 * math.sin(3 * angle)
    east = 140 * (1 - math.cos(angle)) + 18 * math.sin(2 * angle)
    return north, east, 377 + 6 * math.sin(angle / 2)


def epoch(start, second):
    north, east, up = position(second)
    ahead_north, ahead_east, _ = position(second + 1)
    latitude = LATITUDE + north / 111_195
    longitude = LONGITUDE + east / (111_195 * math.cos(math.radians(LATITUDE)))
    course = math.degrees(math.atan2(ahead_east - east, ahead_north - north)) % 360
    knots = math.hypot(ahead_east - east, ahead_north - north) / 0.514444
    when = start + timedelta(seconds=second)
    clock, date = when.strftime("%H%M%S.00"), when.strftime("%d%m%y")
    where = f"{degrees(latitude, 2, 'NS')},{degrees(longitude, 3, 'EW')}"
    yield f"GPRMC,{clock},A,{where},{knots:.2f},{course:.2f},{date},,,A"
    yield f"GPGGA,{clock},{where},1,09,0.9,{up:.1f},M,47.6,M,,"
    yield "GPGSA,A,3,04,05,09,12,16,20,24,25,29,,,,1.6,0.9,1.3"
    yield "GPGSV,1,1,04,04,71,120,42,05,38,210,38,09,25,300,35,12,60,055,44"


def send(start, port):
    """Sends each second's sentences when they are due."""
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    began = time.monotonic()
    for second in itertools.count():
        time.sleep(max(0.0, began + second - time.monotonic()))
        for body in epoch(start, second):
            out.sendto(sentence(body).encode(), ("127.0.0.1", port))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--start", help="time of the first fix, ISO 8601 (default: now)")
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--udp", type=int, metavar="PORT", help="send it there in real time, without an end")
    options = parser.parse_args()
    start = datetime.fromisoformat(options.start) if options.start else datetime.now(timezone.utc)
    if options.udp:
        return send(start, options.udp)
    for second in range(int(options.minutes * 60)):
        for body in epoch(start, second):
            sys.stdout.write(sentence(body))


if __name__ == "__main__":
    main()
