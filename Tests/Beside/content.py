"""The records that every peer is given: a reading as a program of the site would hand it over, some 200 bytes, numbered."""
import re

NUMBER = re.compile(rb'"n":(\d+),')
# Programs wait when so many records have no answer, as `waypost put` does.
WINDOW = 512


def record(number):
    """One JSON object in a line of its own; no two alike, and as alike as readings are."""
    turn = number * 2654435761 & 0xFFFFFFFF
    return (b'{"n":%d,"sensor":"c4:7c:8d:6a:%02x:%02x","temperature_c":%d.%02d,"humidity_percent":%d.%02d,'
            b'"pressure_pa":%d,"battery_mv":%d,"acceleration_x_mg":%d,"acceleration_y_mg":%d,"light_lux":%d.%d}' % (
                number, number % 61, number % 7, 18 + turn % 9, turn >> 8 & 63, 40 + turn % 31, turn >> 6 & 63,
                100_000 + (turn >> 10) % 2500, 2900 + turn % 97, turn % 41 - 20, (turn >> 7) % 41 - 20,
                (turn >> 9) % 4000, turn % 10))


def numbers(data):
    """The numbers of all records in some bytes, in their order."""
    return [int(number) for number in NUMBER.findall(data)]
