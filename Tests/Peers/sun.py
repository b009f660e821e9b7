#!/usr/bin/env python3
"""Writes the sun's times of two independent programs for SolarDayTests:

    sun.py ephem >Tests/Fixtures/sun/ephem.csv; sun.py skyfield >Tests/Fixtures/sun/skyfield.csv

Needs `pip install ephem==4.2.1 skyfield==1.55 skyfield-data==7.0.0`. A line `@ latitude,longitude` per place,
then one per day of 2026 (each second, each eleventh by skyfield): the seconds after its midnight UTC of the noon of that date, and
relative to that midnight the dawn and sunrise in the half day before that noon, the sunset and dusk in the half
day behind it; empty where the sun's centre does not cross -6 or -0.833 degrees then. ephem computes with VSOP87,
skyfield with JPL's DE421.
"""
import datetime
import math
import sys

PLACES = [
    (0, -78.5), (-23, 0), (-45, 170.5), (46, 6.84), (52.52, 13.41), (60.17, 24.94), (66.56, 25.8), (-66, 110.5),
    (69.97, 23.27), (78.22, 15.65), (-16.5, -179.9), (51.5, 179.9),
]
HEIGHTS = [-6, -0.833]
YEAR = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)


def with_ephem(latitude, longitude):
    """Returns a function from times to the heights of the sun's centre and its hour angles, in degrees."""
    import ephem

    observer = ephem.Observer()
    observer.lat, observer.lon = str(latitude), str(longitude)
    observer.pressure, observer.elevation = 0, 0
    sun = ephem.Sun()

    def place(time):
        observer.date = ephem.Date(time.replace(tzinfo=None))
        sun.compute(observer)
        return math.degrees(sun.alt), math.degrees(float(observer.sidereal_time()) - float(sun.ra))

    return lambda times: zip(*map(place, times))


def with_skyfield(latitude, longitude):
    from skyfield.api import Loader, wgs84
    from skyfield_data import get_skyfield_data_path

    load = Loader(get_skyfield_data_path())
    planets, scale = load("de421.bsp"), load.timescale(builtin=True)
    observer = planets["earth"] + wgs84.latlon(latitude, longitude)

    def places(times):
        apparent = observer.at(scale.from_datetimes(times)).observe(planets["sun"]).apparent()
        return apparent.altaz()[0].degrees, apparent.hadec()[0].hours * 15

    return places


def crossings(values, lows, highs):
    """Returns where a function of times changes its sign between two times each, to 0.1 s; None if it does not."""
    first, last = ([value > 0 for value in values(times)] for times in (lows, highs))
    found = [one != other for one, other in zip(first, last)]
    while max(high - low for low, high in zip(lows, highs)) > datetime.timedelta(seconds=0.1):
        middles = [low + (high - low) / 2 for low, high in zip(lows, highs)]
        same = [(value > 0) == sign for value, sign in zip(values(middles), first)]
        lows = [middle if is_same else low for low, middle, is_same in zip(lows, middles, same)]
        highs = [high if is_same else middle for high, middle, is_same in zip(highs, middles, same)]
    return [low if is_found else None for low, is_found in zip(lows, found)]


def main(program):
    step = {"ephem": 2, "skyfield": 11}[program]
    print(f"# {program}, each {step}. day of 2026: noon,dawn,sunrise,sunset,dusk")
    days = range(0, 365, step)
    midnights = [YEAR + datetime.timedelta(days=day) for day in days]
    for latitude, longitude in PLACES:
        print(f"@ {latitude},{longitude}")
        places = {"ephem": with_ephem, "skyfield": with_skyfield}[program](latitude, longitude)

        def heights(above):
            return lambda times: [height - above for height in list(places(times))[0]]

        def angles(times):
            return [(angle + 180) % 360 - 180 for angle in list(places(times))[1]]

        def noons(shift):
            hour = datetime.timedelta(hours=1)
            means = [time + datetime.timedelta(days=shift, hours=12, minutes=-4 * longitude) for time in midnights]
            return crossings(angles, [mean - hour for mean in means], [mean + hour for mean in means])

        before, noon, after = (noons(shift) for shift in (-1, 0, 1))
        before, after = ([one + (other - one) / 2 for one, other in zip(noon, others)] for others in (before, after))
        times = [noon]
        times += [crossings(heights(height), before, noon) for height in HEIGHTS]
        times += [crossings(heights(height), noon, after) for height in HEIGHTS[::-1]]
        for midnight, *row in zip(midnights, *times):
            print(",".join("" if time is None else str(round((time - midnight).total_seconds())) for time in row))


main(sys.argv[1])
