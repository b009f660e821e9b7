#!/usr/bin/env python3
"""The data partition of the card, as the initramfs finds it: the script's functions, over commands that are noted."""
import pathlib
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "deploy/card/root/usr/share/initramfs-tools/scripts/local-bottom/waypost-data"
HEAD = "label: dos\nunit: sectors\n\n/dev/card1 : start=8192, size=1048576, type=c\n/dev/card2 : start=1056768, size=2097152, type=83\n"
WHOLE = HEAD + "/dev/card4 : start=5251072, size=10000000, type=83\n"
COMMANDS = """
sleep() { :; }; sync() { :; }; partx() { :; }; wait_for_node() { :; }; tell() { echo "told: $*"; }
number() { case $1 in card2/start) echo 1056768 ;; card2/size) echo 2097152 ;; card4/start) echo 5251072 ;;
    card4/size) echo 10000000 ;; *) echo $card ;; esac; }
mke2fs() { echo "made anew"; }; mount() { echo "mounted"; }; resize2fs() { :; }
# A check that takes longer than it may ends with 143.
timeout() { [ "$1" -le 1800 ] && shift && "$@"; }; e2fsck() { case $1 in -p) return $check ;; *) return $repair ;; esac; }
sfdisk() {
    case $1 in
    --dump)
        echo x >>"$asked"
        if [ "$(wc -l <"$asked")" -le "$refusals" ]; then echo "sfdisk: Input/output error" >&2; return 1; fi
        echo "$found" ;;
    --quiet) case "$*" in *part-type*) echo "type: $*" ;; *) sed "s/^/written: /" ;; esac ;;
    esac
}
root=card2 disk=card data=card4 rootmnt=/root
not_kept="$asked.mark"
mount_data || { echo "not mounted"; do_without; }
[ ! -e "$not_kept" ] || { echo "marked"; rm "$not_kept"; }
"""


class DataTests(unittest.TestCase):
    def boot(self, found, refusals=0, card=16_000_000, check=0, repair=0):
        """Returns the steps of a boot with this table, which the card refuses to give at first."""
        functions = SCRIPT.read_text().split("modprobe -q overlay")[0]
        asked = subprocess.run(["mktemp"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        self.addCleanup(pathlib.Path(asked).unlink)
        done = subprocess.run(
            ["dash", "-c", functions + COMMANDS], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env={"PATH": "/usr/bin:/bin", "found": found, "asked": asked, "refusals": str(refusals), "card": str(card),
                 "check": str(check), "repair": str(repair)})
        return done.stdout.splitlines()

    def test_first_boot_makes_it(self):
        done = self.boot(HEAD)
        self.assertIn("written: /dev/card4 : start=5251072, size=10748928, type=da", done)
        self.assertLess(done.index("made anew"), done.index("type: --quiet --no-reread --no-tell-kernel --force --part-type /dev/card 4 83"))
        self.assertEqual(done[-1], "mounted")

    def test_power_cut_while_it_was_made_makes_it_anew(self):
        self.assertIn("made anew", self.boot(HEAD + "/dev/card4 : start=5251072, size=10000000, type=da\n"))

    def test_what_is_there_is_mounted_and_grows(self):
        self.assertEqual(self.boot(WHOLE, card=15_251_072), ["mounted"])
        done = self.boot(WHOLE)
        self.assertIn("written: /dev/card4 : start=5251072, size=10748928, type=83", done)
        self.assertNotIn("made anew", done)
        self.assertEqual(done[-1], "mounted")

    def test_card_that_does_not_answer_is_never_made_anew(self):
        for refusals in range(1, 3):
            self.assertEqual(self.boot(WHOLE, refusals, card=15_251_072), ["mounted"])
        done = self.boot(WHOLE, refusals=9)
        self.assertEqual(done, ["told: the card's partition table cannot be read", "not mounted",
                                "told: no data partition: nothing of this boot will be kept", "mounted", "marked"])

    def test_check_that_fails_or_takes_too_long_lets_the_device_start(self):
        repaired = ["told: the data partition is damaged; repairing it", "mounted"]
        self.assertEqual(self.boot(WHOLE, card=15_251_072, check=4, repair=1), repaired)
        self.assertEqual(self.boot(WHOLE, card=15_251_072, check=143, repair=0), repaired)
        done = self.boot(WHOLE, card=15_251_072, check=143, repair=143)
        self.assertEqual(done[1:], ["told: the data partition cannot be repaired", "not mounted",
                                    "told: no data partition: nothing of this boot will be kept", "mounted", "marked"])

    def test_half_a_table_is_none(self):
        self.assertIn("not mounted", self.boot("label: dos\n"))


if __name__ == "__main__":
    unittest.main()
