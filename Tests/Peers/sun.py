#!/usr/bin/env python3
"""Writes the sun's times of PyPI astral for SolarDayTests: sun.py >Tests/Fixtures/sun/astral-3.2.csv

Needs `pip install astral==3.2`. A line `@ latitude,longitude` per place, then one per day of 2027: the
seconds after its midnight UTC of dawn, sunrise, noon, sunset and dusk; empty where astral finds none,
or where astral's own altitude of the sun at that time is wrong by more than 0.05 degrees (two mornings
at 70 degrees: it dates the sun of a dawn before midnight UTC a day too late).
"""
import datetime
from importlib.metadata import version

from astral import Observer, sun

# Longitudes where each event of a day falls on the date itself, in UTC.
PLACES = [(0, 0.0), (46, 6.84), (60, 10.75), (70, 19.0), (-35, -10.0)]
EVENTS = [sun.dawn, sun.sunrise, sun.noon, sun.sunset, sun.dusk]


def seconds(event, observer, date):
    try:
        time = event(observer, date)
    except ValueError:
        return ""
    zenith = {"dawn": 96, "dusk": 96, "noon": None}.get(event.__name__, 90 + sun.SUN_APPARENT_RADIUS)
    if zenith and abs(
        sun.zenith(observer, time, with_refraction=False) - zenith - sun.refraction_at_zenith(zenith)
    ) > 0.05:
        return ""
    midnight = datetime.datetime.combine(date, datetime.time(), datetime.timezone.utc)
    return str(round((time - midnight).total_seconds()))


def main():
    print(f"# astral {version('astral')}, 2027: dawn,sunrise,noon,sunset,dusk")
    for latitude, longitude in PLACES:
        print(f"@ {latitude},{longitude}")
        observer = Observer(latitude, longitude, 0.0)
        for day in range(365):
            date = datetime.date(2027, 1, 1) + datetime.timedelta(day)
            times = [seconds(event, observer, date) for event in EVENTS]
            print(",".join(times))


main()
