"""Reads the settings on the card's FAT partition; changes nothing.

`rpi-preseed.toml` is what Raspberry Pi Imager writes (keys of the `rpi-preseed` schema, config_version 1.x); `custom.toml` is
the same for those who write by hand, and has two tables more: [updates] and [gnss]. What both say, `custom.toml` says.
"""
import base64
import binascii
import dataclasses
import pathlib
import re
import tomllib

NAMES = ("rpi-preseed.toml", "custom.toml")
HOSTNAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
USER = re.compile(r"[a-z_][a-z0-9_-]{0,30}")
# sshd checks options before the type (`from="…"`).
KEY = re.compile(r"(.* )?(?P<kind>ssh-(rsa|ed25519)|ecdsa-sha2-nistp\d+|sk-(ssh|ecdsa)-[a-z0-9@.-]+)"
                 r" (?P<key>[A-Za-z0-9+/]{40,}=*)( .*)?")
HEX = re.compile(r"([0-9A-Fa-f]{2})+")


def is_key(text):
    """Whether sshd accepts the key: one that was cut in copying still looks like a key, and nobody could log in."""
    found = KEY.fullmatch(text.strip())
    try:
        rest = base64.b64decode(found["key"], validate=True) if found else b""
    except binascii.Error:
        return False
    # Fields, each preceded by its length; the first repeats the type.
    fields = []
    while len(rest) >= 4 and len(rest) >= (end := 4 + int.from_bytes(rest[:4], "big")):
        fields.append(rest[4:end])
        rest = rest[end:]
    return len(fields) > 1 and not rest and fields[0].decode("latin-1") == found["kind"]


# The type of each key, and the condition that it must meet; the text follows "must be".
# One line: passwords are passed on in lines.
TEXT = (str, lambda value: value != "" and value.isprintable(), "text on one line")
YES_OR_NO = (bool, lambda value: True, "true or false")
KEYS = {
    "system.hostname": (str, HOSTNAME.fullmatch, "letters, digits and hyphens, 63 at most"),
    "user.name": (str, USER.fullmatch, "small letters, digits, - and _, 31 at most"),
    "user.password": TEXT,
    "user.password_encrypted": YES_OR_NO,
    "ssh.enabled": YES_OR_NO,
    "ssh.authorized_keys": (list, lambda keys: all(isinstance(key, str) and is_key(key) for key in keys),
                            'a list of public keys, each whole ("ssh-ed25519 AAAA…")'),
    "wlan.ssid": (str, lambda name: 1 <= len(name.encode()) <= 32, "a name of 32 bytes at most"),
    "wlan.ssid_hex": (str, lambda name: HEX.fullmatch(name) and len(name) <= 64, "32 bytes in hexadecimal at most"),
    "wlan.password": TEXT,
    "wlan.password_encrypted": YES_OR_NO,
    "wlan.hidden": YES_OR_NO,
    "wlan.country": (str, re.compile("[A-Z]{2}").fullmatch, 'two capital letters, as "CH"'),
    "wlan.key_mgmt": (str, ("none", "owe", "wpa-psk", "sae").__contains__, "none, owe, wpa-psk or sae"),
    "locale.timezone": (str, re.compile(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*").fullmatch, 'a name as "Europe/Zurich"'),
    "updates.security": YES_OR_NO,
    "gnss.device": (str, re.compile(r"/dev/[A-Za-z0-9/_:.-]+").fullmatch, 'a device as "/dev/ttyS1"'),
}
# Not used here, and not reported.
SILENT = {"config_version", "user.groups", "user.passwordless_sudo", "locale.keymap"}


@dataclasses.dataclass
class Settings:
    """`values` by dotted key; with `errors` the file is not used, with `notes` it is."""

    values: dict = dataclasses.field(default_factory=dict)
    errors: list = dataclasses.field(default_factory=list)
    notes: list = dataclasses.field(default_factory=list)

    def get(self, key, default=None):
        return self.values.get(key, default)


def name_of(path):
    """Matches any case, and the `.txt` that Windows may add."""
    return path.name.lower().removesuffix(".txt")


def files(folder):
    """Lists the existing files, in the order of their precedence."""
    found = [path for path in sorted(pathlib.Path(folder).iterdir()) if name_of(path) in NAMES and path.is_file()]
    return sorted(found, key=lambda path: NAMES.index(name_of(path)))


def read(paths):
    """Reads the settings of all files together."""
    settings = Settings()
    for path in paths:
        read_file(path, settings)
    for name in NAMES:
        # The card comes with a custom.toml: an editor may save a second file beside it.
        same = [path.name for path in paths if name_of(path) == name]
        if len(same) > 1:
            settings.errors.append(f"{' and '.join(same)} are both there: keep one")
    if not settings.errors:
        settings.errors += contradictions(settings)
    return settings


def read_file(path, settings):
    try:
        # With BOM and CRLF, as editors on Windows write it.
        text = path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
        tables = tomllib.loads(text)
    except UnicodeDecodeError as error:
        settings.errors.append(f"{path.name}: not UTF-8 from byte {error.start} on")
        return
    except tomllib.TOMLDecodeError as error:
        settings.errors.append(f"{path.name}: {error}")
        return
    if not text.strip():
        # An empty file would undo the present settings: the GNSS receiver's device, the keys.
        settings.errors.append(f"{path.name}: is empty: save it again, and eject the card before you pull it out")
    if not str(tables.get("config_version", 1)).startswith("1"):
        settings.errors.append(f"{path.name}: config_version must be 1")
    for table, content in tables.items():
        for key, value in (content.items() if isinstance(content, dict) else [(None, content)]):
            take(path.name, f"{table}.{key}" if key else table, value, settings)


def take(file, key, value, settings):
    if key in SILENT:
        return
    if key == "ssh.password_authentication":
        if value:
            settings.notes.append(f"{file}: {key}: no passwords here, keys only")
        return
    if key not in KEYS:
        settings.notes.append(f"{file}: {key} is not used here")
        return
    kind, is_good, words = KEYS[key]
    if type(value) is not kind or not is_good(value):
        settings.errors.append(f"{file}: {key} must be {words}")
        return
    settings.values[key] = value


def contradictions(settings):
    """Checks conditions between several keys."""
    password, is_psk = settings.get("wlan.password"), settings.get("wlan.password_encrypted", False)
    has_name = settings.get("wlan.ssid") or settings.get("wlan.ssid_hex")
    if password is not None and not has_name:
        yield "wlan.password without wlan.ssid"
    if password is not None and is_psk and not (len(password) == 64 and HEX.fullmatch(password)):
        yield "wlan.password_encrypted: wlan.password must be 64 hexadecimal digits"
    if password is not None and not is_psk and not 8 <= len(password.encode()) <= 63:
        yield "wlan.password must be 8 to 63 characters"
    if has_name and password is None and settings.get("wlan.key_mgmt", "none") in ("wpa-psk", "sae"):
        yield "wlan.key_mgmt needs wlan.password"
    if has_name and not settings.get("wlan.country"):
        settings.notes.append("wlan.country is not set: some channels are not used")


def wireless(settings):
    """Returns the content of wpa_supplicant.conf; None without a network."""
    if settings.get("wlan.ssid"):
        name = settings.get("wlan.ssid").encode().hex()
    elif settings.get("wlan.ssid_hex"):
        name = settings.get("wlan.ssid_hex").lower()
    else:
        return None
    lines = ["ctrl_interface=DIR=/run/wpa_supplicant GROUP=netdev"]
    if settings.get("wlan.country"):
        lines.append(f"country={settings.get('wlan.country')}")
    # In hexadecimal, because it may contain any byte.
    lines += ["network={", f"    ssid={name}"]
    if settings.get("wlan.hidden"):
        lines.append("    scan_ssid=1")
    lines += ["    " + line for line in keys(settings)]
    return "\n".join(lines + ["}", ""])


def keys(settings):
    """Returns the lines of a network that set its authentication."""
    password = settings.get("wlan.password")
    how = settings.get("wlan.key_mgmt", "none" if password is None else "wpa-psk")
    if how == "none":
        return ["key_mgmt=NONE"]
    if how == "owe":
        return ["key_mgmt=OWE", "ieee80211w=2"]
    if settings.get("wlan.password_encrypted"):
        return ["key_mgmt=WPA-PSK", f"psk={password}"]
    # A quote in a quoted passphrase needs no escape: it ends at the last one.
    if how == "sae":
        return ["key_mgmt=SAE", "ieee80211w=2", f'sae_password="{password}"']
    return ["key_mgmt=WPA-PSK", f'psk="{password}"']
