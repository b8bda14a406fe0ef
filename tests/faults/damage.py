"""Damage to the files of a checkpoint, which can be mended."""

from threading import Timer
from typing import NamedTuple

from faults.checkpoint import numbers

TARGETS = {  # what a restart reads
    "metadata": "metadata",
    "offsets": "offsets/[0-9]*",
    "commits": "commits/[0-9]*",
    "sources": "sources/*/[0-9]*",
    "changelog": "state/*/*/*.changelog",
    "snapshot": "state/*/*/*.zip",
    "sst": "state/*/*/SSTs/*.sst",
    "operator": "state/*/_metadata/v2/*",
    "schema": "state/*/_stateSchema/*/*",
}
WAYS = ("missing", "truncated", "changed", "delayed")


class Damage(NamedTuple):
    """What was done to a file, and what it was."""

    what: str
    before: dict  # contents by path: the file, and its checksum where it lost that too
    after: dict

    def mend(self):
        """Put everything back, unless somebody wrote it anew."""
        for file, content in self.before.items():
            if (file.read_bytes() if file.exists() else None) == self.after[file]:
                file.write_bytes(content)


def candidates(checkpoint, target):
    """The files of a kind that a restart needs: of each log and each partition the last."""
    newest = {}
    for file in sorted(checkpoint.glob(TARGETS[target]), key=_age):
        newest[file.parent] = file
    return sorted(newest.values())


def _age(file):
    number = file.name.partition(".")[0]
    return (int(number) if number.isdigit() else 0, file.name)


def damaged(checkpoint, target, way, rng):
    """Damage a file; None if there is none of this kind."""
    files = candidates(checkpoint, target)
    if not files:
        return None
    file = rng.choice(files)
    # A local file system keeps checksums beside the files, as not every one does.
    checksum = file.with_name(f".{file.name}.crc")
    alone = checksum.exists() and way in ("truncated", "changed") and rng.random() < 0.5
    before = {f: f.read_bytes() for f in ([file] if alone else [file, checksum]) if f.exists()}
    after = dict.fromkeys(before) | {file: _changed(before[file], way, rng)}
    for each, content in after.items():
        each.unlink()
        if content is not None:
            each.write_bytes(content)
    damage = Damage(f"{target} {way}{', checksum kept' if alone else ''}", before, after)
    if way == "delayed":
        later = Timer(rng.uniform(0.5, 3), damage.mend)
        later.daemon = True
        later.start()
    return damage


def _changed(content, way, rng):
    """What is left of a file; None: nothing."""
    if way == "truncated":
        return content[: rng.randrange(len(content))]
    if way == "changed":
        place = rng.randrange(len(content))
        other = bytes([content[place] ^ 1 << rng.randrange(8)])
        return content[:place] + other + content[place + 1 :]
    return None


def uncommitted(folder):
    """As if the last micro-batch had not been committed, neither by the sink nor by Spark."""
    last = numbers(folder / "checkpoint/commits")[-1]
    for log in ("checkpoint/commits", "out/_spark_metadata"):
        for file in (folder / log).glob(f"*{last}*"):
            file.unlink()
