"""Measured figures in the one shape that all commands share (DESIGN 10).

>>> line = Line("speed", 4.0, "rows/s", floor=5.0)
>>> line.ok, line.as_dict()
(False, {'name': 'speed', 'value': 4.0, 'unit': 'rows/s', 'floor': 5.0, 'ok': False})
"""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Line:
    """One figure; with a floor it must not be below it, with a ceiling not above."""

    name: str
    value: float
    unit: str
    floor: float | None = None
    ceiling: float | None = None

    @property
    def ok(self) -> bool:
        """Whether floor and ceiling hold."""
        above = self.floor is None or self.value >= self.floor
        return above and (self.ceiling is None or self.value <= self.ceiling)

    @property
    def limit(self) -> str:
        """Floor or ceiling as text."""
        if self.floor is not None:
            return f">= {amount(self.floor)}"
        return "" if self.ceiling is None else f"<= {amount(self.ceiling)}"

    def as_dict(self) -> dict[str, Any]:
        """Plain data; a floor or ceiling only where there is one."""
        return {
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            **({} if self.floor is None else {"floor": self.floor}),
            **({} if self.ceiling is None else {"ceiling": self.ceiling}),
            "ok": self.ok,
        }


def sheet(command: str, seed: int | None, lines: Sequence[Line]) -> dict[str, Any]:
    """All figures of a command, with what is needed to compare them; no seed, no made-up data."""
    return {
        "command": command,
        "seed": seed,
        "machine": machine(),
        "lines": [line.as_dict() for line in lines],
    }


def machine() -> dict[str, Any]:
    """What kind of machine this is, and nothing that tells which one."""
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "architecture": platform.machine(),
        "cpus": os.cpu_count(),
    }


def amount(value: float) -> str:
    """A number for people.

    >>> amount(5_250_000), amount(1.25), amount(0.0312), amount(3)
    ('5,250,000', '1.25', '0.0312', '3')
    """
    return f"{value:,.0f}" if value == round(value) or abs(value) >= 1000 else f"{value:.3g}"
