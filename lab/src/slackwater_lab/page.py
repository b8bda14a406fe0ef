"""Findings as a page: Markdown and PNG."""

from __future__ import annotations

import platform
from pathlib import Path

from slackwater.jobs.measurement import machine
from slackwater_lab.experiment import Experiment, Findings, Table


def write(folder: Path, experiment: Experiment, findings: Findings, command: str) -> Path:
    """Write NAME.md and its figures; return the page."""
    folder.mkdir(parents=True, exist_ok=True)
    here = machine()
    parts = [
        f"# {experiment.source}: {experiment.title}",
        f"`{command}` on {here['cpus']} cores, {here['system']} {here['architecture']}, "
        f"Python {platform.python_version()}.",
    ]
    for end, figure in findings.figures.items():
        name = f"{experiment.name}{end}.png"
        figure.savefig(folder / name, facecolor="white", metadata={"Software": None})
        parts.append(f"![{experiment.title}]({name})")
    parts += findings.words
    parts += [_markdown(table) for table in findings.tables]
    page = folder / f"{experiment.name}.md"
    page.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return page


def _markdown(table: Table) -> str:
    left = ["---"] * len(table.labels)
    right = ["---:"] * len(table.columns)
    rows = [table.header(), left + right, *table.text()]
    return f"## {table.title}\n\n" + "\n".join(f"| {' | '.join(row)} |" for row in rows)
