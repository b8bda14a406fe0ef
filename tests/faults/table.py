"""What came of the runs, as text and as data."""

import re
from collections import Counter, defaultdict

HEAD = ("query", "faults by", "faults", "runs", "identical", "refusals", "lost", "doubled")


def table(runs):
    """A line for each kind of query and family of faults, a sum, and the messages."""
    lines = [HEAD, ["---"] * 2 + ["---:"] * 6]
    by_line = defaultdict(list)
    for run in runs:
        by_line[run.kind, run.family].append(run)
    lines += [[*names, *_figures(own)] for names, own in by_line.items()]
    lines.append(["all", "", *_figures(runs)])
    text = "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
    done = Counter(fault.what for run in runs for fault in run.faults)
    said = defaultdict(Counter)
    for run in runs:
        for fault in run.faults:
            if fault.refused:
                said[brief(fault.refused)][fault.what] += 1
    bad = [f"- {run.kind}, {run.family}: {run.verdict}" for run in runs if not run.verdict.ok]
    parts = [text, "\n".join(f"- {what}: {n}" for what, n in sorted(done.items()))]
    parts.append("\n".join(
        f"- `{message}`: {', '.join(f'{what} ({n})' for what, n in sorted(whats.items()))}"
        for message, whats in sorted(said.items())
    ))  # fmt: skip
    return "\n\n".join([*parts, *bad])


def _figures(runs):
    faults = [fault for run in runs for fault in run.faults]
    return [
        len(faults),
        len(runs),
        sum(run.verdict.ok for run in runs),
        sum(bool(fault.refused) for fault in faults),
        sum(run.verdict.lost for run in runs),
        sum(run.verdict.doubled for run in runs),
    ]


def brief(message):
    """What a message says, without paths, numbers and stack traces."""
    found = re.findall(r"slackwater\.errors\.\w+: ([^\n]+)", message)
    found = found or re.findall(r"^Caused by: ([^\n]+)", message, re.MULTILINE)
    text = (found or message.rpartition("terminated with exception: ")[2:])[-1]
    text = re.sub(r"(file:)?/\S*/", "…/", text.partition("\n")[0])
    return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27,}|\d+", "n", text)[:200].strip()


def as_dict(seed, runs):
    """All of it."""
    return {
        "command": "faults",
        "seed": seed,
        "runs": [
            {"kind": run.kind, "family": run.family, "verdict": run.verdict._asdict()}
            | {"faults": [fault._asdict() for fault in run.faults]}
            for run in runs
        ],
    }
