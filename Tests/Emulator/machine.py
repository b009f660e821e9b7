"""A Debian kernel in QEMU on this machine's own root: the initramfs, and the process."""
import gzip
import lzma
import pathlib
import subprocess

# The first program of the guest. The root is this machine's, read-only below a layer of memory; `/bench` is the
# one folder that it writes for us. The modules come from where the kernel was unpacked.
INIT = """#!/bin/busybox sh
set -e
fail() {{ echo "emulator: $1"; /bin/busybox poweroff -f; }}
PATH=/bin
busybox mkdir -p /proc /sys /dev /host /layer /new
busybox mount -t devtmpfs none /dev
busybox mount -t proc none /proc
while read -r module; do busybox insmod "/modules/$module" || fail "insmod $module"; done < /order
options=trans=virtio,version=9p2000.L,msize=262144
busybox mount -t 9p -o "ro,cache=loose,$options" root /host || fail "the root"
busybox mount -t tmpfs -o size=75% none /layer
busybox mkdir /layer/upper /layer/work
busybox mount -t overlay -o lowerdir=/host,upperdir=/layer/upper,workdir=/layer/work none /new || fail "the layer"
busybox mkdir -p /new/bench /new/usr/lib/modules
busybox ln -s "{modules}" "/new/usr/lib/modules/{version}"
busybox mount -t 9p -o "$options" bench /new/bench || fail "the bench"
busybox mount --move /dev /new/dev
busybox mount --move /proc /new/proc
busybox mount -t sysfs none /new/sys
busybox mount -t tmpfs none /new/run
busybox mkdir -p /new/dev/pts /new/dev/shm
busybox mount -t devpts none /new/dev/pts
busybox mount -t tmpfs none /new/dev/shm
busybox hostname emulator
{end}
"""
PLAIN = "exec busybox switch_root /new /bin/sh /bench/start"
# The same under systemd, with as little beside it as it takes; no sign of a container if this machine is one.
SYSTEMD = """busybox rm -f /new/.dockerenv
busybox mkdir -p /new/run/systemd/system
busybox cp -a /units/. /new/run/systemd/system/
exec busybox switch_root /new /lib/systemd/systemd"""
UNITS = {
    "emulator.target": "[Unit]\nRequires=emulator.service\nAllowIsolate=yes\n",
    "emulator.service": "[Unit]\nWants=systemd-udevd.service dbus.socket\nAfter=systemd-udevd.service dbus.socket\n"
                        "[Service]\nType=oneshot\nTimeoutStartSec=infinity\nExecStart=/bin/sh /bench/start\n",
}
# Services of this machine do not matter here, and probing the guest's devices takes a minute.
MASKED = """
    apparmor.service bluetooth.service e2scrub_reap.service kmod-static-nodes.service systemd-binfmt.service
    systemd-hwdb-update.service systemd-modules-load.service systemd-pstore.service systemd-random-seed.service
    systemd-tmpfiles-setup.service systemd-udev-settle.service systemd-udev-trigger.service systemd-update-utmp.service
""".split()
# A root on 9p and a writable layer above it.
NEEDED = ["virtio_pci", "9pnet_virtio", "9p", "overlay"]


def read(module):
    """A module's file, unpacked: Debian 13 packs them and busybox cannot."""
    content = module.read_bytes()
    return lzma.decompress(content) if module.suffix == ".xz" else content


class Machine:
    """One guest; `folder` is shared with it as /bench."""

    def __init__(self, kernel, version, folder, start, is_accelerated=False, has_systemd=False):
        self.kernel, self.version, self.folder, self.has_systemd = kernel, version, folder, has_systemd
        words = ["console=ttyS0 panic=-1 loglevel=6 mitigations=off net.ifnames=0"]
        if has_systemd:
            words.append("systemd.unit=emulator.target systemd.show_status=0")
        (folder / "start").write_text(start)
        self.console = folder / "console.log"
        image = self.initramfs()
        share = "local,security_model=none,multidevs=remap"
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64", "-nodefaults", "-no-user-config", "-no-reboot",
             "-display", "none", "-machine", "q35,hpet=off", "-m", "2048", "-smp", "2",
             *(["-accel", "kvm", "-cpu", "host"] if is_accelerated else ["-accel", "tcg,thread=multi", "-cpu", "max"]),
             "-serial", f"file:{self.console}", "-kernel", str(kernel / f"boot/vmlinuz-{version}"), "-initrd", image,
             "-fsdev", f"{share},id=root,path=/,readonly=on", "-device", "virtio-9p-pci,fsdev=root,mount_tag=root",
             "-fsdev", f"{share},id=bench,path={folder}", "-device", "virtio-9p-pci,fsdev=bench,mount_tag=bench",
             "-append", " ".join(words)],
            stdin=subprocess.DEVNULL, stdout=open(folder / "qemu.log", "wb"), stderr=subprocess.STDOUT)

    def initramfs(self):
        """Packs busybox, the modules that reach the root, and the script above."""
        root = self.folder / "initramfs"
        for name in ("bin", "modules", "units"):
            (root / name).mkdir(parents=True)
        (root / "bin/busybox").write_bytes(pathlib.Path("/bin/busybox").read_bytes())
        (root / "bin/busybox").chmod(0o755)
        order = []
        for line in self.dependencies():
            # Parameters and modules that are built in stand there, too.
            if line.startswith("insmod ") and (path := pathlib.Path(line.split()[1])).stem not in order:
                order.append(path.stem)
                (root / "modules" / path.stem).write_bytes(read(path))
        (root / "order").write_text("".join(f"{name}\n" for name in order))
        for name, text in UNITS.items():
            (root / "units" / name).write_text(text)
        for name in MASKED:
            (root / "units" / name).symlink_to("/dev/null")
        modules = self.kernel / "lib/modules" / self.version
        end = SYSTEMD if self.has_systemd else PLAIN
        (root / "init").write_text(INIT.format(modules=modules, version=self.version, end=end))
        (root / "init").chmod(0o755)
        packed = subprocess.run(
            "find . | busybox cpio -o -H newc", shell=True, cwd=root, check=True, capture_output=True).stdout
        image = self.folder / "initramfs.gz"
        image.write_bytes(gzip.compress(packed, 1))
        return str(image)

    def dependencies(self):
        done = subprocess.run(
            ["modprobe", "--show-depends", "-d", str(self.kernel), "-S", self.version, "-a", *NEEDED],
            check=True, capture_output=True, text=True)
        return done.stdout.splitlines()

    @property
    def is_running(self):
        return self.process.poll() is None

    def end(self):
        self.process.kill()
        self.process.wait()
