"""Looks at pages in a headless Chromium, as a person on a phone and at a desk, by day, by night and on paper.

browser.py FOLDER COOKIE NAME=URL ... writes a picture of each into FOLDER, and prints a JSON array: what the console complained
of, which addresses were asked, what is wider than the window, what is hard to read, what axe-core finds where deploy/test
has installed it, what the Tab key reaches first.
browser.py --desk FOLDER COOKIE NAME=URL ... only NAME.png, at a desk by day.
browser.py --ask COOKIE URL opens one, and prints what each line of standard input comes to in it, as JSON.
"""
import base64
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SIZES = {"phone": (390, 844, True), "desktop": (1440, 900, False)}
SCHEMES = {"day": ("screen", "light"), "night": ("screen", "dark"), "paper": ("print", "light")}

# Text with less contrast to what lies behind it than WCAG 2.2 asks for (1.4.3), and fields without a name (4.1.2).
CHECK = """(() => {
  const light = c => { const [r, g, b] = c.map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b };
  const parts = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const behind = e => { for (; e; e = e.parentElement) { const c = parts(getComputedStyle(e).backgroundColor);
    if (c.length === 3 || c[3] > 0) return c.slice(0, 3) } return [255, 255, 255] };
  const found = [];
  for (const e of document.querySelectorAll("body *")) {
    if (e.matches("input:not([type=hidden], [hidden]), select") && !e.labels.length) found.push("no label: " + e.name);
    if (e.matches("a, button") && !(e.textContent.trim() || e.getAttribute("aria-label"))) found.push("no name: " + e.outerHTML);
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
    if (e.matches("title") || !e.getClientRects().length) continue;
    const style = getComputedStyle(e);
    const text = parts(e.namespaceURI.endsWith("svg") ? style.fill : style.color).slice(0, 3);
    const [a, b] = [light(text), light(behind(e))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) found.push("contrast: " + e.outerHTML.slice(0, 120));
  }
  if (!document.documentElement.lang) found.push("no language");
  if (document.querySelectorAll("h1").length !== 1) found.push("not one h1");
  return found;
})()"""

TOOLS = pathlib.Path(__file__).parents[2] / ".build/tools/lib"
AXE = list(TOOLS.glob("python3*/site-packages/axe_playwright_python/axe.min.js"))
# Every rule, best practices too: what breaks one, and where.
BARRIERS = """axe.run(document, { resultTypes: ["violations"] }).then(found => found.violations.map(one =>
  one.id + ": " + one.nodes.slice(0, 3).map(node => node.html.slice(0, 120)).join(" ")))"""

# How long each sound on the page says that it is, once its player has looked; -1 where it cannot be played.
SOUNDS = """Promise.all([...document.querySelectorAll("audio")].slice(0, 5).map(player => new Promise(done => {
  player.onloadedmetadata = () => done(player.duration);
  player.onerror = () => done(-1);
  player.preload = "metadata";
  player.load();
})))"""

# Scrolls through the page, so that all of it is loaded, and waits until nothing more is.
SETTLE = """(async () => {
  const pause = () => new Promise(done => setTimeout(done, 400)), count = () => performance.getEntriesByType("resource").length;
  for (let y = 0; y < document.documentElement.scrollHeight; y += innerHeight) { scrollTo(0, y); await pause(); }
  for (let before = -1; before !== count(); await pause()) before = count();
  scrollTo(0, 0);
})()"""


class Browser:
    """One Chromium, spoken to over two pipes (--remote-debugging-pipe: JSON, and a zero byte behind each message)."""

    def __init__(self):
        read_theirs, self.write_end = os.pipe()
        self.read_end, write_theirs = os.pipe()
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)

        def give_pipes():
            # Above 4 first: one of them may be 3 or 4 itself.
            high = [os.dup(os.dup(os.dup(number))) for number in (read_theirs, write_theirs)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--remote-debugging-pipe", "--autoplay-policy=no-user-gesture-required", "--user-data-dir=" + self.profile.name, "about:blank"],
            close_fds=False, preexec_fn=give_pipes, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(read_theirs)
        os.close(write_theirs)
        self.number, self.rest, self.session, self.events = 0, b"", None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(domain + ".enable")

    def message(self):
        while b"\0" not in self.rest:
            block = os.read(self.read_end, 1 << 20)
            if not block:
                raise SystemExit("chromium has ended")
            self.rest += block
        line, self.rest = self.rest.split(b"\0", 1)
        return json.loads(line)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise SystemExit(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def log_in(self, cookie, url):
        self.call("Network.setCookie", name="waypost_viewer", value=cookie, url=url, httpOnly=True)

    def open(self, url):
        self.events = []
        self.call("Page.navigate", url=url)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.message())

    def run(self, script):
        return self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)["result"].get("value")

    def tab(self):
        """Returns what the Tab key reaches first."""
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
        return self.run("document.activeElement.textContent || document.activeElement.name")

    def picture(self, path):
        height = min(6000, self.run("document.documentElement.scrollHeight"))
        clip = {"x": 0, "y": 0, "width": self.run("innerWidth"), "height": height, "scale": 1}
        data = self.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def close(self):
        self.session = None
        self.call("Browser.close")
        self.process.wait()
        self.profile.cleanup()


def complaints(events):
    for event in events:
        if event.get("method") == "Log.entryAdded":
            yield event["params"]["entry"]["text"]
        if event.get("method") in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled"):
            yield json.dumps(event["params"])[:300]


def addresses(events):
    found = [event["params"]["request"]["url"] for event in events if event.get("method") == "Network.requestWillBeSent"]
    # The browser's own player has its pictures in itself.
    return [url for url in found if not url.startswith("data:image/svg+xml")]


def barriers(browser):
    """Returns what axe-core finds; None where it is not installed."""
    if not AXE:
        return None
    browser.run(AXE[0].read_text())
    return browser.run(BARRIERS)


def look(browser, folder, name, url, size, scheme, is_whole):
    width, height, mobile = SIZES[size]
    medium, colours = SCHEMES[scheme]
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
    browser.call("Emulation.setEmulatedMedia", media=medium, features=[{"name": "prefers-color-scheme", "value": colours}])
    browser.open(url)
    if is_whole:
        browser.run(SETTLE)
    browser.picture(f"{folder}/{name}-{size}-{scheme}.png")
    return {
        "name": f"{name}-{size}-{scheme}", "title": browser.run("document.title"),
        "text": browser.run("document.body.innerText"), "marks": browser.run(CHECK), "barriers": barriers(browser),
        "overflow": browser.run("document.documentElement.scrollWidth - innerWidth"),
        "tab": browser.tab(), "sounds": browser.run(SOUNDS), "complaints": list(complaints(browser.events)), "addresses": addresses(browser.events)}


def ask(browser, cookie, url):
    browser.log_in(cookie, url)
    browser.open(url)
    for line in sys.stdin:
        print(json.dumps(browser.run(line)), flush=True)


def main():
    words = sys.argv[1:]
    if words[0] == "--ask":
        browser = Browser()
        ask(browser, *words[1:])
        return browser.close()
    is_desk = words[0] == "--desk"
    folder, cookie, *pages = words[1:] if is_desk else words
    browser, found = Browser(), []
    for name, url in (page.split("=", 1) for page in pages):
        if cookie:
            browser.log_in(cookie, url)
        looks = [("desktop", "day")] if is_desk else itertools.product(SIZES, SCHEMES)
        for size, scheme in looks:
            found.append(look(browser, folder, name, url, size, scheme, is_whole=is_desk))
            if is_desk:
                os.replace(f"{folder}/{name}-{size}-{scheme}.png", f"{folder}/{name}.png")
    browser.close()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
