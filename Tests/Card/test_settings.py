#!/usr/bin/env python3
"""The effects of the card's settings, and the messages for wrong ones. Run by deploy/test, without root or a card."""
import base64
import contextlib
import errno
import functools
import importlib.machinery
import importlib.util
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2] / "deploy/card/root"
CARD = ROOT / "usr/lib/waypost-card"
sys.path.insert(0, str(CARD))

import cardsettings

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ6vG1s3Zc9l2p6w1e0m8yq7r5t4u3i2o1p0a9s8d7f6 anna@laptop"
# As Imager 2.0.11 writes it (generateRpiPreseedToml in its customization_generator.cpp).
IMAGER = f"""config_version = "1.0"

[system]
hostname = "lake-7"

[user]
name = "anna"
password = "$y$j9T$abc$def"
password_encrypted = true
groups = ["sudo"]

[ssh]
enabled = true
password_authentication = false
authorized_keys = [
  "{KEY}",
]

[wlan]
ssid = "Field \\"station\\""
password = "{'0a' * 32}"
password_encrypted = true
hidden = true
country = "CH"

[locale]
keymap = "ch"
timezone = "Europe/Zurich"

[connect]
enabled = true
mode = "device-identity"
"""


class SettingsTests(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def read(self, **contents):
        for name, content in contents.items():
            data = content if isinstance(content, bytes) else content.encode()
            (self.folder / name.replace("_toml", ".toml").replace("rpi_", "rpi-")).write_bytes(data)
        return cardsettings.read(cardsettings.files(self.folder))

    def test_imagers_file(self):
        settings = self.read(rpi_preseed_toml=IMAGER)
        self.assertEqual(settings.errors, [])
        self.assertEqual(settings.notes, ["rpi-preseed.toml: connect.enabled is not used here",
                                          "rpi-preseed.toml: connect.mode is not used here"])
        self.assertEqual((settings.get("system.hostname"), settings.get("user.name")), ("lake-7", "anna"))
        self.assertEqual(settings.get("ssh.authorized_keys"), [KEY])
        self.assertEqual(cardsettings.wireless(settings), "\n".join([
            "ctrl_interface=DIR=/run/wpa_supplicant GROUP=netdev", "country=CH", "network={",
            "    ssid=" + b'Field "station"'.hex(), "    scan_ssid=1", "    key_mgmt=WPA-PSK", f"    psk={'0a' * 32}", "}", ""]))

    def test_the_file_written_by_hand_counts_more(self):
        settings = self.read(rpi_preseed_toml=IMAGER, custom_toml='[system]\nhostname = "hill-2"\n[updates]\nsecurity = true\n')
        self.assertEqual(settings.errors, [])
        self.assertEqual((settings.get("system.hostname"), settings.get("user.name")), ("hill-2", "anna"))
        self.assertTrue(settings.get("updates.security"))

    def test_files_as_windows_leaves_them(self):
        (self.folder / "CUSTOM.TOML.txt").write_bytes(b'\xef\xbb\xbf[system]\r\nhostname = "hill-2"\r\n')
        settings = self.read()
        self.assertEqual((settings.errors, settings.get("system.hostname")), ([], "hill-2"))

    def test_two_files_of_one_name_are_told(self):
        # The card comes with a custom.toml; Notepad puts what was written beside it.
        (self.folder / "custom.toml").write_text("[system]\n")
        (self.folder / "custom.toml.txt").write_text('[wlan]\nssid = "lake"\n')
        self.assertEqual(self.read().errors, ["custom.toml and custom.toml.txt are both there: keep one"])

    def test_the_card_as_it_is_made_says_nothing(self):
        template = pathlib.Path(__file__).resolve().parents[2] / "deploy/card/boot/custom.toml"
        settings = self.read(custom_toml=template.read_text())
        self.assertEqual((settings.values, settings.errors, settings.notes), ({}, [], []))

    def test_its_suggestions_are_right(self):
        template = pathlib.Path(__file__).resolve().parents[2] / "deploy/card/boot/custom.toml"
        text = template.read_text().replace("\n# ", "\n").replace("ssh-ed25519 AAAA… anna@laptop", KEY)
        settings = self.read(custom_toml=text)
        self.assertEqual((settings.errors, settings.notes), ([], []))
        self.assertEqual(len(settings.values), 9)

    def test_wrong_values_are_all_named_and_nothing_else_is(self):
        settings = self.read(custom_toml="""
[system]
hostname = "lake 7"
[user]
name = "Anna"
[ssh]
authorized_keys = ["ssh-rsa short"]
password_authentication = true
[wlan]
ssid = "x"
password = 12345678
country = "Switzerland"
[locale]
timezone = "../../etc/passwd"
[gnss]
device = "/dev/ttyS1; reboot"
""")
        named = sorted(words.split()[1] for words in settings.errors)
        self.assertEqual(named, ["gnss.device", "locale.timezone", "ssh.authorized_keys", "system.hostname", "user.name",
                                 "wlan.country", "wlan.password"])
        self.assertEqual(settings.notes, ["custom.toml: ssh.password_authentication: no passwords here, keys only"])

    def test_keys_that_sshd_does_not_take_are_told(self):
        """Cut in copying, or another type before it: nobody could log in, and nothing would say so."""
        kind, key, name = KEY.split()
        made = "ecdsa-sha2-nistp256 " + base64.b64encode(b"".join(len(field).to_bytes(4, "big") + field for field in (
            b"ecdsa-sha2-nistp256", b"nistp256", b"\x04" + bytes(64)))).decode()
        for good in (KEY, f"{kind} {key}", f'from="10.0.0.0/8",no-pty {KEY}', f"  {KEY}\n", f"{KEY} of the lab", made):
            self.assertTrue(cardsettings.is_key(good), good)
        for bad in (f"{kind} {key[:-8]} {name}", f"{kind} {key[:-1]}", f"ssh-rsa {key}", f"{kind} {key}AAAA", f"{kind} {'A' * 68}"):
            settings = self.read(custom_toml=f"[ssh]\nauthorized_keys = ['{KEY}', '{bad}']\n")
            self.assertEqual(settings.errors, [
                'custom.toml: ssh.authorized_keys must be a list of public keys, each whole ("ssh-ed25519 AAAA…")'], bad)

    def test_what_is_no_toml_is_told_with_its_line(self):
        settings = self.read(custom_toml='[system]\nhostname = lake\n')
        self.assertEqual(len(settings.errors), 1)
        self.assertIn("custom.toml: ", settings.errors[0])
        self.assertIn("line 2", settings.errors[0])
        self.assertEqual(self.read(custom_toml=b"\xff\xfe[\x00").errors, ["custom.toml: not UTF-8 from byte 0 on"])

    def test_a_file_that_a_card_pulled_out_too_early_left_empty_is_told(self):
        for content in ("", "\r\n"):
            settings = self.read(custom_toml=content)
            self.assertEqual(settings.values, {})
            self.assertEqual(settings.errors, ["custom.toml: is empty: save it again, and eject the card before you pull it out"])

    def test_wireless_contradictions(self):
        for text, words in (('password = "12345678"', "without wlan.ssid"), ('ssid = "x"\npassword = "short"', "8 to 63"),
                            ('ssid = "x"\npassword = "12345678"\npassword_encrypted = true', "64 hexadecimal"),
                            ('ssid = "x"\nkey_mgmt = "sae"', "needs wlan.password")):
            errors = self.read(custom_toml=f"[wlan]\n{text}\n").errors
            self.assertEqual(len(errors), 1, text)
            self.assertIn(words, errors[0])

    def test_a_network_cannot_smuggle_lines_in(self):
        settings = self.read(custom_toml='[wlan]\nssid = "a\\n}\\nnetwork={"\npassword = "1234\\n5678"\ncountry = "CH"\n')
        self.assertEqual(len(settings.errors), 1)
        self.assertIn("wlan.password must be", settings.errors[0])


def load_program():
    loader = importlib.machinery.SourceFileLoader("settings", str(CARD / "settings"))
    program = importlib.util.module_from_spec(importlib.util.spec_from_loader("settings", loader))
    loader.exec_module(program)
    return program


class UserTests(unittest.TestCase):
    """The user after a power cut within useradd."""

    def make_user(self, shadow, number=1000):
        """The commands that are run."""
        program, ran = load_program(), []
        with tempfile.TemporaryDirectory() as folder:
            program.USERS = pathlib.Path(folder)
            program.KEYS, program.SUDO = program.USERS / "keys", program.USERS / "sudo"
            (program.USERS / "shadow").write_text(shadow)
            for name in ("passwd", "shadow", "group", "gshadow"):
                (program.USERS / f"{name}.lock").touch()

            def run(*command, input=None):
                # As shadow does it: a lock without a number is never free.
                self.assertEqual(list(program.USERS.glob("*.lock")), [])
                ran.append(command[0])
            program.run = run
            answer = {"side_effect": KeyError} if number is None else {"return_value": mock.Mock(pw_uid=number)}
            with mock.patch("pwd.getpwnam", **answer):
                program.make_user(cardsettings.Settings({"ssh.authorized_keys": [KEY]}))
        return ran

    def test_locks_do_not_keep_it_out(self):
        self.assertEqual(self.make_user("root:*:1::::::\n", None), ["useradd", "usermod"])
        self.assertEqual(self.make_user("root:*:1::::::\npi:!:1::::::\n"), ["usermod"])

    def test_half_a_user_is_made_anew(self):
        self.assertEqual(self.make_user("root:*:1::::::\npip:!:1::::::\n"), ["userdel", "useradd", "usermod"])

    def test_users_of_the_system_stay_as_they_are(self):
        with self.assertRaisesRegex(OSError, "pi is a user of the system"):
            self.make_user("root:*:1::::::\n", 33)


class WirelessTests(unittest.TestCase):
    """The network, and the service of each adapter."""

    def test_an_adapter_of_any_name_is_given_the_network(self):
        # By udev's rule the service has the adapter's name: wlan0, or wlx and its address on USB.
        unit = (ROOT / "etc/systemd/system/wpa_supplicant@.service.d/waypost.conf").read_text()
        rule = (ROOT / "etc/udev/rules.d/80-waypost-wireless.rules").read_text()
        self.assertIn("wpa_supplicant@$name.service", rule)
        for name in ("wlan0", "wlx00c0ca3f3f23"):
            lines = unit.replace("%I", name).replace("%i", name).splitlines()
            path = load_program().WIRELESS
            self.assertIn(f"ConditionPathExists={path}", lines)
            start = [line for line in lines if line.startswith("ExecStart=")]
            self.assertEqual(start, ["ExecStart=", f"ExecStart=/usr/sbin/wpa_supplicant -c{path} -i{name}"])


class RestTests(unittest.TestCase):
    """The last settings: time zone and SSH."""

    def set_rest(self, zone):
        """The commands that are run, and the files that are written."""
        program, done = load_program(), []
        with tempfile.TemporaryDirectory() as folder:
            program.ZONES = pathlib.Path(folder)
            (program.ZONES / "Europe").mkdir()
            (program.ZONES / "Europe/Zurich").touch()
            program.put = lambda path, text, mode=0o644: done.append(path.name)
            program.run = lambda *command, input=None: done.append(command[0])
            try:
                program.set_rest(cardsettings.Settings({"locale.timezone": zone, "ssh.enabled": False}))
            except OSError as error:
                done.append(str(error))
        return done

    def test_a_time_zone_that_is_none_is_told_and_keeps_nothing_from_being_done(self):
        files = ["90waypost-card", "gpsd", "sshd_not_to_be_run"]
        self.assertEqual(self.set_rest("Europe/Zurich"), files + ["ln"])
        for zone in ("Europe/Zurch", "europe/zurich", "Europe"):
            self.assertEqual(self.set_rest(zone), files + [f"locale.timezone: there is no time zone {zone} here"])


class ErrorsFileTests(unittest.TestCase):
    """custom-errors.txt, on a file system without a journal."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.file = self.folder / "custom-errors.txt"
        self.program = load_program()
        self.program.FAT = self.folder

    def test_no_cut_leaves_two_names_for_one_content(self):
        self.program.tell(["custom.toml: user.name must be a name"])
        names, fsync = set(), os.fsync

        def sync(number):
            names.update(os.listdir(self.folder))
            fsync(number)
        with mock.patch("os.fsync", sync):
            self.program.tell(["custom.toml: wlan.country must be a country"])
        self.assertEqual(names, {self.file.name})
        self.assertEqual(self.file.read_bytes().splitlines()[1:], [b"custom.toml: wlan.country must be a country"])

    def test_what_stands_there_is_not_written_again(self):
        self.program.tell(["a"])
        before = self.file.stat()
        self.program.tell(["a"])
        self.assertEqual((self.file.stat().st_ino, self.file.stat().st_mtime_ns), (before.st_ino, before.st_mtime_ns))

    def start(self, refuse=None):
        """The steps that are made at a start; the user may be refused."""
        made = []
        with contextlib.ExitStack() as stack:
            for step in ("name_host", "make_user", "set_wireless", "set_rest"):
                call = mock.Mock(side_effect=lambda settings, step=step: made.append(step), __name__=step)
                stack.enter_context(mock.patch.object(self.program, step, call))
            if refuse:
                self.program.make_user.side_effect = refuse
            stack.enter_context(mock.patch("pathlib.Path.is_mount", return_value=True))
            self.program.main()
        return made

    def test_what_is_not_done_is_told_at_each_start(self):
        state = tempfile.TemporaryDirectory()
        self.addCleanup(state.cleanup)
        self.program.STATE = pathlib.Path(state.name)
        (self.folder / "rpi-preseed.toml").write_text(IMAGER)
        self.assertEqual(len(self.start()), 4)
        self.assertFalse(self.file.exists())
        (self.folder / "custom.toml").write_text('[wifi]\nssid = "lake"\n')
        for steps in (4, 0):
            self.assertEqual(len(self.start()), steps)
            self.assertEqual(self.file.read_text().splitlines(), ["This is not done:", "custom.toml: wifi.ssid is not used here"])
        (self.folder / "custom.toml").write_text('[user]\nname = "audio"\n')
        for _ in range(2):
            self.assertEqual(len(self.start(OSError("useradd ended with 9: group audio exists"))), 3)
            self.assertIn("useradd ended with 9: group audio exists; it is tried again", self.file.read_text())
        self.assertEqual(len(self.start()), 4)
        self.assertFalse(self.file.exists())

    def test_a_card_that_cannot_be_read_is_told_and_changes_nothing(self):
        for known, makes in ((None, ["name_host", "make_user", "set_wireless", "set_rest"]), ("sum", [])):
            with self.subTest(known=known), tempfile.TemporaryDirectory() as state, contextlib.ExitStack() as stack:
                self.program.STATE = pathlib.Path(state)
                if known:
                    (self.program.STATE / "settings").write_text(known + "\n")
                made = []
                for step in ("name_host", "make_user", "set_wireless", "set_rest"):
                    call = functools.partial(lambda step, settings: made.append((step, settings.values)), step)
                    call.__name__ = step
                    stack.enter_context(mock.patch.object(self.program, step, call))
                stack.enter_context(mock.patch("pathlib.Path.is_mount", return_value=True))
                error = OSError(errno.EIO, "Input/output error", str(self.folder / "custom.toml"))
                stack.enter_context(mock.patch.object(cardsettings, "files", side_effect=error))
                self.program.main()
                # At the first boot the device gets a name all the same.
                self.assertEqual(made, [(step, {}) for step in makes])
                self.assertIn("custom.toml: cannot be read: Input/output error", self.file.read_text())
                self.assertEqual((self.program.STATE / "settings").read_text().strip(), known or "wrong")

    def test_it_goes_when_all_is_well(self):
        self.program.tell(["a"])
        self.program.tell([])
        self.assertEqual(os.listdir(self.folder), [])


if __name__ == "__main__":
    unittest.main()
