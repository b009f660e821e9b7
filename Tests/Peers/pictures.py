#!/usr/bin/env python3
"""Pictures of every page of a receiver with the made-up season (week.py): a desk and a phone, by day and by night.

    Tests/Peers/pictures.py [--build .build/release] [--tiles URL] [--only REGEX] [FOLDER]

Writes NAME-SIZE-SCHEME.png into FOLDER (.build/pictures), and lists what a console complained of or what is too wide.
"""
import argparse
import json
import pathlib
import re
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request
from datetime import date, timedelta

import browser
import week

ROOT = pathlib.Path(__file__).resolve().parents[2]
PRESS = "(() => { const found = [...document.querySelectorAll('button')].find(one => one.textContent === %s); found?.click(); return !!found })()"


class Receiver:
    def __init__(self, build, folder, tiles):
        self.program, self.data = str(ROOT / build / "waypost-receiver"), f"{folder}/data"
        self.tiles = ["--tiles-url", tiles] if tiles else []
        pathlib.Path(folder, "tokens").write_text("pictures\n")
        self.tokens = f"{folder}/tokens"
        self.start("127.0.0.1:0")

    def start(self, address):
        self.process = subprocess.Popen([self.program, "--listen", address, "--data", self.data, "--tokens", self.tokens, "--quiet", *self.tiles],
                                        stdout=subprocess.PIPE, text=True)
        self.url = re.search("http://[^,/]+", self.process.stdout.readline())[0]

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def command(self, *words):
        return subprocess.run([self.program, *words, "--data", self.data], check=True, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL).stdout.strip()

    def log_in(self):
        """Returns an editor's cookie."""
        token = self.command("viewers", "add", "pictures", "--role", "editor")

        class Stay(urllib.request.HTTPRedirectHandler):
            def redirect_request(self, *_):
                return None
        try:
            urllib.request.build_opener(Stay).open(self.url + "/login", urllib.parse.urlencode({"token": token}).encode())
        except urllib.error.HTTPError as answer:
            return answer.headers["Set-Cookie"].split(";")[0].split("=")[1]

    def get(self, path, cookie):
        return urllib.request.urlopen(urllib.request.Request(self.url + path, headers={"Cookie": f"waypost_viewer={cookie}"})).read().decode()


def fill(receiver):
    week.season(week.Server(receiver.url, "pictures"))
    receiver.command("label", "device", "boat", "--label", "Boat on the lake", "--group", "lake", "--note", "Its mooring is the southern buoy.")
    receiver.command("label", "beacon", week.TAGS["reed-bed"][0][0], "--label", "Nest box, north")
    # It starts again, because it counts no silence from before its start.
    receiver.stop()
    week.make_late(receiver.data)
    receiver.start(receiver.url.removeprefix("http://"))


def pages(receiver, cookie):
    """Each page: its name, its path, whether somebody is logged in, and a button to press."""
    while '<svg class="map"' not in receiver.get("/", cookie) or "still being read" in receiver.get("/", cookie):
        time.sleep(0.3)
    days = {name: f"/device/{name}/" + max(re.findall(r'href="/device/[^/"]+/(20[^"/?]+)[?"]', receiver.get(f"/device/{name}", cookie)))
            for name in week.DEVICES}
    # The newest day may have no sound yet.
    reeds = sorted(set(re.findall(r'href="(/device/reed-bed/20[^"/?]+)', receiver.get("/device/reed-bed", cookie))), reverse=True)
    hour = next(found[1] for path in reeds if (found := re.search(r'href="([^"]+/linux_alsa_audio/\d\d)[?"]', receiver.get(path, cookie))))
    spans = {}
    for name, count in (("week", 7), ("month", 30)):
        first = date.fromisoformat(days["reed-bed"][-10:]) - timedelta(days=count - 1)
        spans[name] = f"{days['reed-bed'][:-10]}{first}..{days['reed-bed'][-10:]}?zone=Europe/Zurich"
    yield from (("login", "/login", False, None), ("link", "/login?once=x", False, None))
    for name, path in {
        "overview": "/", "search": "/?q=boat", "search-nothing": "/?q=nobody", "late": "/device/boat", "device": "/device/oak-edge",
        "day": days["oak-edge"], "track": days["boat"], "records": days["oak-edge"] + "/linux_bluez_beacons",
        "records-health": days["oak-edge"] + "/waypost_health", "records-nothing": days["oak-edge"] + "/linux_bluez_beacons?beacon=none",
        "days": "/device/oak-edge/days", "year": f"/device/boat/days?year={days['boat'][-10:-6]}",
        "hour": hour, "beacons": "/beacons", "beacons-battery": "/beacons?sort=battery",
        "beacon": "/beacon/" + urllib.parse.quote(week.TAGS["oak-edge"][1][0]), "records-species": days["reed-bed"] + "/birds",
        "new-device": "/devices/new", "names": "/device/boat/names", "none": "/none", "empty": "/device/boat/2020-01-01",
        "refused": days["boat"] + "/power?at=1", **spans, "zone": days["oak-edge"] + "?zone=Mars/Olympus",
        "week-boat": spans["week"].replace("reed-bed", "boat"), "still": days["reed-bed"] + "?zone=%2B05:45",
    }.items():
        yield name, path, True, None
    yield "new-device-code", "/devices/new", True, "Make a code"
    yield "new-device-arrival", "/devices/new/1", True, None
    yield "hour-played", hour, True, "Play the hour"


def picture(tab, folder, url, name, size, scheme, button):
    width, height, mobile = browser.SIZES[size]
    tab.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
    tab.call("Emulation.setEmulatedMedia", media="screen", features=[{"name": "prefers-color-scheme", "value": browser.SCHEMES[scheme][1]}])
    tab.open(url)
    tab.run(browser.SETTLE)
    if button:
        if not tab.run(PRESS % json.dumps(button)):
            print(f"{name}: no button {button}")
        # It may lead to another page.
        time.sleep(1)
        tab.run(browser.SETTLE)
    tab.picture(f"{folder}/{name}-{size}-{scheme}.png")
    over = tab.run("document.documentElement.scrollWidth - innerWidth")
    for trouble in [*browser.complaints(tab.events), *([f"{over} pixels too wide"] if over > 0 else [])]:
        print(f"{name}-{size}-{scheme}: {trouble}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=".build/release")
    parser.add_argument("--tiles", help="a server of map tiles, as tiles_url")
    parser.add_argument("--only", help="pages whose name fits this regular expression")
    parser.add_argument("folder", nargs="?", default=ROOT / ".build/pictures", type=pathlib.Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="wppictures-") as folder:
        receiver = Receiver(options.build, folder, options.tiles)
        try:
            fill(receiver)
            cookie = receiver.log_in()
            for name, path, is_known, button in pages(receiver, cookie):
                if options.only and not re.search(options.only, name):
                    continue
                tab = browser.Browser()
                if is_known:
                    tab.log_in(cookie, receiver.url)
                for size in browser.SIZES:
                    for scheme in ("day", "night"):
                        picture(tab, options.folder, receiver.url + path, name, size, scheme, button)
                tab.close()
        finally:
            receiver.stop()


if __name__ == "__main__":
    main()
