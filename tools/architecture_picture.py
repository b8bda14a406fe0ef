"""Draw docs/images/architecture.svg, the map of the code, from the import contracts.

Run it with ``.venv/bin/python tools/architecture_picture.py``; a test compares the file with what
this draws. Everything comes from ``[tool.importlinter]`` in pyproject.toml: layers are rows,
packages of a layer are boxes, exceptions that point up are dashed arrows, and packages that must
not import pyspark have a colour of their own.
"""

from __future__ import annotations

import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "images" / "architecture.svg"
PACKAGE = ROOT / "src" / "slackwater"

WIDTH, MARGIN, SIDE = (
    540,
    16,
    88,
)  # pixels, so that a phone can show it; dashed arrows run in the side
HEIGHT, GAP, BETWEEN = 36, 24, 8  # of a box; between layers; between boxes of a layer
PER_LINE = 3  # boxes side by side
TOP, LEGEND = 16, 88

COLOURS = {"free": ("#e3f2ef", "#00796b"), "spark": ("#fff0d9", "#b26a00")}
STYLE = (
    "text{font-family:system-ui,sans-serif;font-size:14px;fill:#1f2933;text-anchor:middle}"
    ".note{font-size:12px;fill:#52606d;text-anchor:start}"
    ".down{stroke:#7b8794;stroke-width:1.5;fill:none}"
    ".up{stroke:#b23b3b;stroke-width:1.5;stroke-dasharray:5 4;fill:none}"
)


@dataclass(frozen=True)
class Contracts:
    """The import contracts, by packages without the name of the whole."""

    layers: tuple[tuple[str, ...], ...]  # from the top
    exceptions: tuple[tuple[str, str], ...]  # importing, imported
    without_spark: frozenset[str]


@dataclass(frozen=True)
class Box:
    """A package on the picture."""

    name: str
    x: float
    y: float
    width: float

    @property
    def middle(self) -> float:
        """Where its middle is, from the left."""
        return self.x + self.width / 2


def contracts(pyproject: str) -> Contracts:
    """The contracts of a pyproject.toml.

    Parameters
    ----------
    pyproject
        Its text.
    """
    found: list[dict[str, Any]] = tomllib.loads(pyproject)["tool"]["importlinter"]["contracts"]
    layers = next(contract for contract in found if contract["type"] == "layers")
    free = next(contract for contract in found if contract.get("forbidden_modules") == ["pyspark"])
    rows = tuple(
        tuple(short(name) for name in layer.split("|") if name.strip())
        for layer in layers["layers"]
    )
    arrows = (line.split(" -> ") for line in layers.get("ignore_imports", ()))
    exceptions = sorted({(short(begin), short(end)) for begin, end in arrows})
    return Contracts(rows, tuple(exceptions), frozenset(map(short, free["source_modules"])))


def short(module: str) -> str:
    """The package that a module is in, without the name of the whole.

    >>> short("slackwater.query.* "), short("slackwater_lab")
    ('query', 'lab')
    """
    name = module.strip()
    return "lab" if name.startswith("slackwater_lab") else name.split(".")[1]


def packages() -> set[str]:
    """Packages and modules of slackwater as they are on disk."""
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    return folders | {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}


def placed(layers: tuple[tuple[str, ...], ...]) -> dict[str, Box]:
    """Where each package is: layers below each other, their packages side by side in lines."""
    boxes = {}
    space = WIDTH - 2 * MARGIN - SIDE
    y = TOP
    for names in layers:
        for line in (names[i : i + PER_LINE] for i in range(0, len(names), PER_LINE)):
            width = (space - BETWEEN * (len(line) - 1)) / len(line)
            for place, name in enumerate(line):
                x = MARGIN + place * (width + BETWEEN)
                boxes[name] = Box(name, round(x, 1), y, round(width, 1))
            y += HEIGHT + BETWEEN
        y += GAP - BETWEEN
    return boxes


def drawn(found: Contracts) -> str:
    """The picture as SVG."""
    boxes = placed(found.layers)
    height = boxes[found.layers[-1][-1]].y + HEIGHT + GAP + LEGEND
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img">',
        "<title>Packages of Slackwater in layers; imports point down</title>",
        f"<style>{STYLE}</style>",
        "<defs>" + marker("grey", "#7b8794") + marker("red", "#b23b3b") + "</defs>",
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
    ]
    middle = MARGIN + (WIDTH - 2 * MARGIN - SIDE) / 2
    for layer in found.layers[1:]:
        y = boxes[layer[0]].y
        parts.append(
            f'<path class="down" marker-end="url(#grey)" d="M{middle} {y - GAP + 3}V{y - 4}"/>'
        )
    parts += [box_of(box, box.name in found.without_spark) for box in boxes.values()]
    parts += exceptions(found, boxes)
    parts += legend(height - LEGEND + 8)
    return "\n".join([*parts, "</svg>"]) + "\n"


def marker(name: str, colour: str) -> str:
    """The head of an arrow."""
    return (
        f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        f'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="{colour}"/></marker>'
    )


def box_of(box: Box, is_free: bool) -> str:
    """A package: a box with its name."""
    fill, line = COLOURS["free" if is_free else "spark"]
    return (
        f'<rect x="{box.x}" y="{box.y}" width="{box.width}" height="{HEIGHT}" rx="6" '
        f'fill="{fill}" stroke="{line}"/>'
        f'<text x="{round(box.middle, 1)}" y="{box.y + HEIGHT / 2 + 5}">{box.name}</text>'
    )


def exceptions(found: Contracts, boxes: dict[str, Box]) -> list[str]:
    """Arrows of imports that point up, beside the boxes, each in a lane of its own."""
    parts = []
    upward = [(b, e) for b, e in found.exceptions if boxes[e].y < boxes[b].y]
    edge = WIDTH - MARGIN - SIDE
    for lane, (begin, end) in enumerate(sorted(upward, key=lambda pair: -boxes[pair[1]].y)):
        low = boxes[begin].y + HEIGHT / 2 + 6 * lane - 6
        high = boxes[end].y + HEIGHT / 2
        x = edge + 20 + 18 * lane
        parts.append(
            f'<path class="up" marker-end="url(#red)" d="M{edge} {low}H{x}V{high}H{edge + 3}"/>'
        )
    return parts


def legend(y: float) -> list[str]:
    """What colours and arrows mean, a line for each."""
    parts = []
    for kind, x, text in (
        ("free", MARGIN, "without pyspark"),
        ("spark", 180, "may import pyspark"),
    ):
        fill, line = COLOURS[kind]
        parts.append(
            f'<rect x="{x}" y="{y}" width="18" height="14" rx="3" fill="{fill}" stroke="{line}"/>'
            f'<text class="note" x="{x + 26}" y="{y + 12}">{text}</text>'
        )
    parts.append(
        f'<path class="up" marker-end="url(#red)" d="M{MARGIN} {y + 31}H{MARGIN + 34}"/>'
        f'<text class="note" x="{MARGIN + 42}" y="{y + 36}">exception listed in the contract</text>'
    )
    note = "A package imports only from layers below its own, never from its own layer."
    parts.append(f'<text class="note" x="{MARGIN}" y="{y + 60}">{note}</text>')
    return parts


def current() -> str:
    """The picture of the contracts as they are."""
    return drawn(contracts((ROOT / "pyproject.toml").read_text(encoding="utf-8")))


def main() -> int:
    """Write the picture."""
    PICTURE.write_text(current(), encoding="utf-8")
    print(f"written: {PICTURE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
