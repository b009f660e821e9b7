#!/usr/bin/env python3
"""Answers four questions with a receiver's pages as a person would who has never seen them, in Chromium.

Each question begins at the fleet. What is clicked is found by the words that a person reads, and clicked with the mouse; what is
pointed at is pointed at. Prints each click, the answer and the seconds. Exit status 1 where an answer is wrong, or took more than
three clicks.

    Tests/Peers/walk.py [--build .build/release]
"""
import argparse
import json
import re
import tempfile
import time
from datetime import datetime, timedelta, timezone

import browser
import pictures
import week

MOST_CLICKS = 3
# The middle of the first element in view whose words fit, or null: links, buttons, and parts of drawings with a title.
FIND = """(pattern => {
  const fits = new RegExp(pattern), name = one => (one.getAttribute("aria-label") ?? one.querySelector("title")?.textContent ?? one.textContent)
    .replace(/\\s+/g, " ").trim();
  const one = [...document.querySelectorAll("main a, main button, main summary, header a")].find(one => fits.test(name(one)) && one.getClientRects().length);
  if (!one) return null;
  one.scrollIntoView({ block: "center" });
  const box = one.getBoundingClientRect();
  return { x: box.x + box.width / 2, y: box.y + box.height / 2, name: name(one).slice(0, 60) };
})(%s)"""
READ = "document.querySelector('main').innerText"


def day(ago):
    return (datetime.now(timezone.utc) - timedelta(days=ago)).strftime("%Y-%m-%d")


class Walk:
    def __init__(self, receiver, cookie):
        self.receiver, self.clicks = receiver, 0
        self.tab = browser.Browser()
        self.tab.log_in(cookie, receiver.url)
        width, height, mobile = browser.SIZES["desktop"]
        self.tab.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
        # Days and times are those of the made-up data.
        self.tab.call("Emulation.setTimezoneOverride", timezoneId="UTC")

    def begin(self):
        self.clicks = 0
        self.tab.open(self.receiver.url + "/")

    def find(self, pattern):
        end = time.monotonic() + 20
        while not (found := self.tab.run(FIND % json.dumps(pattern))):
            if time.monotonic() > end:
                raise SystemExit(f"nothing on {self.tab.run('location.href')} says {pattern}")
            time.sleep(0.1)
        return found

    def point(self, pattern):
        """Points at something, and returns what its page then says in an <output>."""
        found = self.find(pattern)
        self.tab.call("Input.dispatchMouseEvent", type="mouseMoved", x=found["x"], y=found["y"])
        return self.tab.run("[...document.querySelectorAll('output')].map(one => one.textContent).join('\\n')")

    def click(self, pattern):
        found, before = self.find(pattern), self.tab.run("location.href")
        for kind in ("mousePressed", "mouseReleased"):
            self.tab.call("Input.dispatchMouseEvent", type=kind, x=found["x"], y=found["y"], button="left", clickCount=1)
        self.clicks += 1
        print(f"  click {self.clicks}: {found['name']}")
        end = time.monotonic() + 20
        while self.tab.run("location.href") == before or self.tab.run("document.readyState") != "complete":
            if time.monotonic() > end:
                raise SystemExit(f"the click at {found['name']} led nowhere")
            time.sleep(0.05)

    def read(self, pattern):
        """Reads until the page says something; returns it, or None."""
        end = time.monotonic() + 20
        while not (found := re.search(pattern, self.tab.run(READ), re.S)):
            if time.monotonic() > end:
                return None
            time.sleep(0.1)
        return re.sub(r"\s+", " ", found[0])


def lacking(walk):
    """Which days of the last two months lack sound at oak-edge, and why?"""
    walk.click("^oak-edge")
    answers = []
    for kind, words in (("microphone", "microphone"), ("schedule", "scheduled off"), ("room", "lost")):
        date = day(week.LACKING[kind])
        said = walk.point(f"^\\w+ {date}.*{words}")
        answers.append(next((line for line in said.split("\n") if date in line and words in line), None))
    return answers


def heard(walk):
    """What was heard at 04:15 yesterday at reed-bed?"""
    walk.click("^reed-bed")
    walk.click(f"^\\w+ {day(1)}")
    walk.click(f"^\\w+ {day(1)}$")
    return [walk.read(r"[-\d]* 04:15[^\n]*\s[^\n]*Strix aluco[^\n]*"), walk.find(f"^Sound at {day(1)} 04:15")["name"]]


def lowest(walk):
    """Which tag has the lowest battery?"""
    walk.click("^Beacons$")
    return [walk.read(r"Lowest battery: [^\n]*\d [^\n]*\.")]


def silent(walk):
    """Since when is boat silent, and what does it still hold?"""
    row = walk.tab.run("[...document.querySelectorAll('main tbody tr')].find(row => /boat/.test(row.innerText))?.innerText.replace(/\\s+/g, ' ')") or ""
    return [re.search(pattern, row) and re.search(pattern, row)[0] for pattern in (r"silent for .*? ago", r"\d[\d,]* records(, the oldest of [-\d]+ [\d:]+)?")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=".build/release")
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="wpwalk-") as folder:
        receiver = pictures.Receiver(options.build, folder, None)
        try:
            pictures.fill(receiver)
            cookie = receiver.log_in()
            # Waits until the index is whole.
            next(pictures.pages(receiver, cookie))
            walk = Walk(receiver, cookie)
            for question in (lacking, heard, lowest, silent):
                print(question.__doc__)
                walk.begin()
                start = time.monotonic()
                answers = question(walk)
                print(*(f"  {answer or 'NO ANSWER'}" for answer in answers), sep="\n")
                print(f"  {walk.clicks} clicks, {time.monotonic() - start:.1f} s")
                wrong += not all(answers) or walk.clicks > MOST_CLICKS
            walk.tab.close()
        finally:
            receiver.stop()
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
