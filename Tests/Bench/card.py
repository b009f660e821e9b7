"""A card as a Pi has one: ext4 with a journal, on a device that has no cache to flush, as most SD cards."""
import contextlib
import pathlib
import subprocess
import tempfile


def run(*command):
    return subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout.strip()


def unmount(folder):
    """Also while a program that was killed still has a file open there: the folder is deleted next."""
    try:
        run("umount", folder)
    except subprocess.CalledProcessError:
        run("umount", "--lazy", folder)


@contextlib.contextmanager
def card(directory="/var/tmp"):
    """A folder on it; in a file below `directory`, as root."""
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="wpcard-", dir=directory)))
        image, mounted = folder / "image", folder / "card"
        mounted.mkdir()
        run("truncate", "-s", "1G", image)
        run("/sbin/mke2fs", "-q", "-t", "ext4", image)
        device = run("/sbin/losetup", "--find", "--show", image)
        stack.callback(run, "/sbin/losetup", "--detach", device)
        # Otherwise each flush would wait for the disk below, which has a cache.
        pathlib.Path("/sys/block", pathlib.Path(device).name, "queue/write_cache").write_text("write through")
        run("mount", "-o", "noatime", device, mounted)
        stack.callback(unmount, mounted)
        yield mounted
