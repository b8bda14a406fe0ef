"""Measured values in the JSON shape that all commands share (DESIGN 10).

>>> speed = Measurement("speed", 4.0, "rows/s", floor=5.0)
>>> speed.ok, speed.as_dict()
(False, {'name': 'speed', 'value': 4.0, 'unit': 'rows/s', 'floor': 5.0, 'ok': False})
"""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Measurement:
    """One measured value, with an optional lower limit (`floor`) or upper limit (`ceiling`)."""

    name: str
    value: float
    unit: str
    floor: float | None = None
    ceiling: float | None = None

    @property
    def ok(self) -> bool:
        """Whether the value is within its limits."""
        above = self.floor is None or self.value >= self.floor
        return above and (self.ceiling is None or self.value <= self.ceiling)

    @property
    def limit(self) -> str:
        """The floor or ceiling as text; empty without one."""
        if self.floor is not None:
            return f">= {amount(self.floor)}"
        return "" if self.ceiling is None else f"<= {amount(self.ceiling)}"

    def as_dict(self) -> dict[str, Any]:
        """Return plain data; `floor` and `ceiling` only where they are set."""
        return {
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            **({} if self.floor is None else {"floor": self.floor}),
            **({} if self.ceiling is None else {"ceiling": self.ceiling}),
            "ok": self.ok,
        }


def sheet(command: str, seed: int | None, measurements: Sequence[Measurement]) -> dict[str, Any]:
    """Return all values of a command as JSON data, with the machine they were measured on.

    `seed` is None if the command does not generate data.
    """
    return {
        "command": command,
        "seed": seed,
        "machine": machine(),
        "lines": [measured.as_dict() for measured in measurements],
    }


def machine() -> dict[str, Any]:
    """Describe the kind of machine, without anything that identifies it."""
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "architecture": platform.machine(),
        "cpus": os.cpu_count(),
    }


def amount(value: float) -> str:
    """Format a number for people.

    >>> amount(5_250_000), amount(1.25), amount(0.0312), amount(3)
    ('5,250,000', '1.25', '0.0312', '3')
    """
    return f"{value:,.0f}" if value == round(value) or abs(value) >= 1000 else f"{value:.3g}"
