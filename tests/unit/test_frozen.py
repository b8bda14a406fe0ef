"""Values do not change: what an engine hands on, others may keep."""

from dataclasses import is_dataclass
from importlib import import_module

from mutations import PACKAGES, SOURCE

CHANGING = {"Counters", "Throttle"}


def dataclasses():
    """The dataclasses of the engine."""
    for package in PACKAGES:
        for path in sorted((SOURCE / package).glob("[!_]*.py")):
            module = import_module(f"slackwater.{package}.{path.stem}")
            for name, found in vars(module).items():
                if is_dataclass(found) and getattr(found, "__module__", "") == module.__name__:
                    yield name, found


def test_all_dataclasses_of_the_engine_are_frozen_but_two():
    found = dict(dataclasses())
    assert len(found) > 30
    changing = {name for name, one in found.items() if not one.__dataclass_params__.frozen}
    assert changing == CHANGING
