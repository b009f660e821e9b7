"""A real Home Assistant in a Debian 13 root: makes it, starts it with a broker, and talks to it over its HTTP API."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

VERSION = "2025.4.4"
# g++: some of its Python packages have no binary for this Python.
PACKAGES = ("ca-certificates", "g++", "python3-dev", "python3-venv", "libturbojpeg0", "mosquitto")
# Home Assistant installs what an integration needs when it is first used; here it is done once, so that a start needs no network.
INTEGRATIONS = ("frontend", "recorder", "mqtt", "esphome", "bluetooth", "ruuvitag_ble", "bthome", "usb", "zeroconf", "image_upload", "backup")
VENV, DATA = "opt/home-assistant", "var/lib/home-assistant"
USER, PASSWORD = "waypost", "waypost"
WHERE = {"latitude": 52.52, "longitude": 13.405, "elevation": 40}
CONFIGURATION = """
homeassistant: {{name: Home, time_zone: UTC, unit_system: metric, country: DE, currency: EUR, latitude: {latitude}, longitude: {longitude}, elevation: {elevation}}}
http: {{server_host: 127.0.0.1, server_port: {port}}}
logger: {{default: warning}}
frontend:
history:
config:
bluetooth:
recorder: {{commit_interval: 1}}
lovelace: {{dashboards: {{way-post: {{mode: yaml, title: Waypost, filename: waypost.yaml}}}}}}
"""
# Prints the device of each entity that has one.
DEVICES = """{% set found = namespace(all=[]) %}{% for one in states %}{% set id = device_id(one.entity_id) %}{% if id %}
{% set found.all = found.all + [(one.entity_id, {"id": id, "name": device_attr(id, "name"), "model": device_attr(id, "model"),
"maker": device_attr(id, "manufacturer"), "via": device_attr(id, "via_device_id"), "ids": device_attr(id, "identifiers") | string,
"connections": device_attr(id, "connections") | string})] %}{% endif %}{% endfor %}{{ dict(found.all) | to_json }}"""


# Parts of it that our messages reach, as its log names them.
REACHED = re.compile(r" (WARNING|ERROR) .*\[(homeassistant\.(components\.(mqtt|sensor|binary_sensor|event|device_tracker|esphome|bluetooth)"
                     r"|helpers\.(template|entity))|habluetooth|bleak_esphome|aioesphomeapi)")
# A busy machine, and the two connections by which it learns that a key is needed.
EXPECTED = ("No ACK from MQTT server", " seconds. Please create a bug report", "requires encryption", "Invalid encryption key")


class Failure(Exception):
    """What could not be done, and why."""


def wait_for(what, seconds, condition):
    """Returns what `condition` returns as soon as it is true."""
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > end:
            raise Failure(f"{what}: not within {seconds} s")
        time.sleep(1)


class Root:
    """A Debian 13 with Home Assistant and mosquitto, in a folder."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder).resolve()

    @property
    def is_ready(self):
        return (self.folder / VENV / "bin/hass").exists() and (self.folder / "usr/sbin/mosquitto").exists()

    def command(self, *words):
        """What runs a command in the root; its mounts are in a namespace of their own, and end with it."""
        script = 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" "$@"'
        return ["unshare", "-m", "--propagation", "private", "sh", "-c", script, str(self.folder), *map(str, words)]

    def run(self, *words):
        subprocess.run(self.command(*words), check=True, env=os.environ | {"HOME": "/root", "DEBIAN_FRONTEND": "noninteractive"})

    def prepare(self):
        """Makes the root (root's rights, Debian's debootstrap and PyPI; ten minutes and 2 GB)."""
        if os.geteuid():
            raise Failure("a root needs root's rights; run it with sudo")
        if not (self.folder / "etc/debian_version").exists():
            subprocess.run(["debootstrap", "--variant=minbase", "trixie", str(self.folder)], check=True)
        # The names and certificates of this machine (those of a proxy, for example).
        for path in ("/etc/resolv.conf", "/etc/hosts", "/etc/ssl/certs/ca-certificates.crt"):
            shutil.copy(path, f"{self.folder}{path}")
        self.run("apt-get", "-qq", "update")
        self.run("apt-get", "-qq", "install", "--no-install-recommends", *PACKAGES)
        python = f"/{VENV}/bin/python3"
        if not (self.folder / VENV / "bin/hass").exists():
            self.run("python3", "-m", "venv", f"/{VENV}")
        self.run(python, "-m", "pip", "install", "-q", f"homeassistant=={VERSION}")
        package = next((self.folder / VENV / "lib").glob("python3*/site-packages/homeassistant"))
        manifests = [json.loads((package / f"components/{name}/manifest.json").read_text()) for name in INTEGRATIONS]
        needs = sorted({need for manifest in manifests for need in manifest.get("requirements", [])})
        self.run(python, "-m", "pip", "install", "-q", "-c", f"/{package.relative_to(self.folder)}/package_constraints.txt", *needs)


class HomeAssistant:
    """Home Assistant of a root, with a broker beside it; both listen on this machine only."""

    def __init__(self, root, port, broker_port):
        self.root, self.port, self.broker_port = root, port, broker_port
        self.data, self.url = root.folder / DATA, f"http://127.0.0.1:{port}"
        self.process, self.broker = None, None

    # Programs

    def start_broker(self):
        (self.data / "mosquitto").mkdir(parents=True, exist_ok=True)
        (self.data / "mosquitto.conf").write_text(
            f"listener {self.broker_port} 127.0.0.1\nallow_anonymous true\npersistence true\n"
            f"persistence_location /{DATA}/mosquitto/\nuser root\nlog_dest file /{DATA}/mosquitto.log\n")
        self.broker = subprocess.Popen(self.root.command("/usr/sbin/mosquitto", "-c", f"/{DATA}/mosquitto.conf"))

    def start(self):
        """Starts Home Assistant, and returns when it has started; the first time, makes a user without its page."""
        storage = self.data / ".storage"
        storage.mkdir(parents=True, exist_ok=True)
        (self.data / "configuration.yaml").write_text(CONFIGURATION.format(port=self.port, **WHERE))
        # The dashboard of the documents, at /way-post.
        page = (pathlib.Path(__file__).parents[2] / "deploy/docs/home-assistant.md").read_text()
        (self.data / "waypost.yaml").write_text(page.split("```yaml\n")[1].split("```")[0])
        if not (storage / "onboarding").exists():
            done = {"done": ["core_config", "analytics", "integration"]}
            (storage / "onboarding").write_text(json.dumps({"version": 4, "minor_version": 1, "key": "onboarding", "data": done}))
        self.process = subprocess.Popen(
            self.root.command(f"/{VENV}/bin/hass", "-c", f"/{DATA}", "--skip-pip", "--log-no-color"),
            env=os.environ | {"HOME": "/root", "PATH": f"/{VENV}/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for("Home Assistant", 240, self.is_up)

    def is_up(self):
        if self.process and self.process.poll() is not None:
            raise Failure(f"Home Assistant ended with status {self.process.returncode}; see {self.data}/home-assistant.log")
        try:
            if not (self.data / "token.json").exists():
                self.onboard()
            return self.ask("GET", "/api/config")["state"] == "RUNNING"
        except OSError:
            return False

    def stop(self, *processes):
        for process in processes or (self.process, self.broker):
            if process and process.poll() is None:
                process.send_signal(signal.SIGTERM)
                process.wait(60)

    # Its API

    def onboard(self):
        user = {"name": "Waypost", "username": USER, "password": PASSWORD, "client_id": self.url + "/", "language": "en"}
        code = self.ask("POST", "/api/onboarding/users", user, token=None)["auth_code"]
        answer = self.token(grant_type="authorization_code", code=code)
        (self.data / "token.json").write_text(json.dumps(answer))

    def token(self, **form):
        body = urllib.parse.urlencode(form | {"client_id": self.url + "/"}).encode()
        with urllib.request.urlopen(self.url + "/auth/token", body, timeout=30) as answer:
            return json.load(answer)

    def access(self):
        """A token for the next half hour."""
        return self.tokens()["access_token"]

    def ask(self, method, path, body=None, token=True):
        headers = {"Content-Type": "application/json"}
        if token:
            headers["Authorization"] = "Bearer " + self.access()
        request = urllib.request.Request(self.url + path, json.dumps(body).encode() if body is not None else None, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise Failure(f"{method} {path}: {error.code} {error.read().decode(errors='replace')[:500]}") from None

    def flow(self, handler, *answers):
        """Adds an integration as a person does: each answer goes to the next form. Returns its entry."""
        step = self.ask("POST", "/api/config/config_entries/flow", {"handler": handler, "show_advanced_options": False})
        for answer in answers:
            if step["type"] != "form":
                break
            step = self.ask("POST", f"/api/config/config_entries/flow/{step['flow_id']}", answer(step) if callable(answer) else answer)
        if step["type"] != "create_entry":
            raise Failure(f"{handler}: {json.dumps(step)[:600]}")
        return step["result"]

    def entries(self, domain):
        return self.ask("GET", f"/api/config/config_entries/entry?domain={domain}")

    def add_mqtt(self):
        if not self.entries("mqtt"):
            self.flow("mqtt", {"broker": "127.0.0.1", "port": self.broker_port})

    def add_proxy(self, host, port, key):
        if not self.entries("esphome"):
            self.flow("esphome", {"host": host, "port": port}, {"noise_psk": key}, {})

    def add_device(self, handler, address):
        """Adds a Bluetooth device that Home Assistant has discovered."""
        return self.flow(handler, lambda step: {"address": address}, {})

    def tokens(self):
        """What its page keeps in the browser of someone who has logged in."""
        refresh = json.loads((self.data / "token.json").read_text())["refresh_token"]
        answer = self.token(grant_type="refresh_token", refresh_token=refresh)
        return answer | {"refresh_token": refresh, "hassUrl": self.url, "clientId": self.url + "/", "expires": int((time.time() + 1800) * 1000)}

    def entities(self):
        """Its entities: `entity_id`, `state`, `attributes`, and the `device` that each belongs to, or an empty one."""
        devices = self.ask("POST", "/api/template", {"template": DEVICES})
        return [one | {"device": devices.get(one["entity_id"], {})} for one in self.ask("GET", "/api/states")]

    def complaints(self):
        """The warnings and errors in its log that our messages can have caused."""
        lines = (self.data / "home-assistant.log").read_text(errors="replace").splitlines()
        return [line for line in lines if REACHED.search(line) and not any(text in line for text in EXPECTED)]
