"""Small file systems that can be filled; they need the right to mount."""

import os
import subprocess
from pathlib import Path

MEGABYTES = 64
MOUNTED = set()


class Disk:
    """A file system of its own in a folder."""

    def __init__(self, folder):
        self._folder = Path(folder)
        self._filler = self._folder / ".filler"
        self._folder.mkdir(parents=True, exist_ok=True)
        options = ["-t", "tmpfs", "-o", f"size={MEGABYTES}m", "tmpfs"]
        subprocess.run(["mount", *options, str(folder)], check=True, capture_output=True)
        MOUNTED.add(self)

    def fill(self):
        """Leave not a byte."""
        with self._filler.open("ab", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                os.fsync(file.fileno())

    def free(self):
        self._filler.unlink(missing_ok=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        subprocess.run(["umount", "--lazy", str(self._folder)], check=True)
        MOUNTED.discard(self)


def can_mount(folder):
    """Whether this user may."""
    try:
        Disk(folder).close()
    except (OSError, subprocess.CalledProcessError):
        return False
    return True
