"""Tables of a job file, read key by key: errors name the file, the table and the key.

>>> table = Table("job.toml: [job]", {"nmae": "x"}, ("name", "trigger"))
Traceback (most recent call last):
slackwater.jobs.toml_table.JobFileError: job.toml: [job] has no key "nmae" (did you mean "name"?); \
allowed are name, trigger
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn, TypeVar

from slackwater.errors import QueryError, SlackwaterError
from slackwater.query.units import Duration, TimeUnit, to_units

Made = TypeVar("Made")


class JobFileError(SlackwaterError, ValueError):
    """A job file that cannot be run."""


class Findings:
    """Collects the errors of parts that do not depend on each other, to raise them together."""

    def __init__(self) -> None:
        self._problems: list[str] = []

    def of(self, make: Callable[[], Made]) -> Made | None:
        """Call `make` and return its result; None if it raises, which is noted."""
        try:
            return make()
        except JobFileError as error:
            self._problems.append(str(error))
            return None

    def check(self) -> None:
        """Raise what was noted, a line each."""
        if self._problems:
            raise JobFileError("\n".join(dict.fromkeys(self._problems)))


class Table:
    """One table of a job file.

    Parameters
    ----------
    where
        Its name in error messages.
    given
        Its content.
    allowed
        The keys that it may have; None allows any.
    """

    def __init__(
        self, where: str, given: dict[str, Any], allowed: Sequence[str] | None = None
    ) -> None:
        self.where = where
        self.given = given
        if allowed is not None:
            self.check_known(given, allowed)

    # ---- errors

    def fail(self, what: str) -> NoReturn:
        """Raise an error about this table."""
        msg = f"{self.where} {what}"
        raise JobFileError(msg)

    def refuse(self, key: str, allowed: str) -> NoReturn:
        """Raise: `key` has a value that is not allowed."""
        self.fail(f"{key} must be {allowed}, got {self.given.get(key)!r}")

    def check_known(self, keys: Iterable[str], known: Sequence[str]) -> None:
        """Raise if some keys are not known, about all of them at once."""
        unknown = [f'"{key}"{_meant(key, known)}' for key in keys if key not in known]
        if unknown:
            what = "keys" if len(unknown) > 1 else "key"
            self.fail(f"has no {what} {', '.join(unknown)}; allowed are {', '.join(known)}")

    def checked(self, make: Callable[[], Made]) -> Made:
        """Call `make` and return its result; errors of the query name the table."""
        try:
            return make()
        except QueryError as error:
            msg = f"{self.where} {error}"
            raise JobFileError(msg) from error

    # ---- tables in it

    def table(self, name: str, allowed: Sequence[str] | None, required: bool = True) -> Table:
        """Return the table [name]."""
        if name not in self.given and required:
            self.fail(f"needs a table [{name}]")
        table = self.given.get(name, {})
        if not isinstance(table, dict):
            self.fail(f"[{name}] must be one table in single brackets, got {table!r}")
        return Table(f"{self.where} [{name}]", table, allowed)

    def tables(self, name: str, allowed: Sequence[str], least: int) -> list[Table]:
        """Return the tables [[name]]; errors identify each by its `name` key or its number."""
        tables = self.given.get(name, [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            self.fail(f"[[{name}]] must be written in double brackets, once per {name}")
        if len(tables) < least:
            self.fail(f"needs at least {least} tables [[{name}]], got {len(tables)}")
        titles = [str(table.get("name", number)) for number, table in enumerate(tables, 1)]
        return [
            Table(f"{self.where} [[{name}]] {title}:", table, allowed)
            for title, table in zip(titles, tables, strict=True)
        ]

    # ---- values in it

    def text(self, key: str) -> str:
        """Return a text that is required."""
        if key not in self.given:
            self.fail(f"needs {key}")
        return self.text_or(key, "")

    def text_or(self, key: str, default: Made) -> str | Made:
        """Return a text, or `default` without one."""
        value = self.given.get(key)
        if value is None:
            return default
        if not isinstance(value, str) or not value.strip():
            self.refuse(key, "a text")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts; empty without one."""
        value = self.given.get(key, [])
        if not isinstance(value, list) or not all(isinstance(v, str) and v for v in value):
            self.refuse(key, "a list of texts")
        return tuple(value)

    def whole(self, key: str) -> int | None:
        """Return a whole number from 1, or None."""
        value = self.given.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            self.refuse(key, "a whole number not below 1")
        return value

    def choice(self, key: str, allowed: Sequence[str], default: str) -> Any:
        """Return one of the allowed words."""
        value = self.given.get(key, default)
        if value not in allowed:
            self.refuse(key, " or ".join(f'"{word}"' for word in allowed))
        return value

    def duration(self, key: str, unit: TimeUnit) -> Duration | None:
        """Return a duration as it was given, or None."""
        value: Duration | None = self.given.get(key)
        if value is not None:
            self.checked(lambda: to_units(value, unit, key))
        return value

    def settings(self, key: str) -> dict[str, str]:
        """Return a table of Spark settings, as text; empty without one.

        TOML reads ``kafka.group.id = 1`` as tables in tables; this makes it one name again.
        """
        given = self.given.get(key, {})
        if not isinstance(given, dict):
            self.refuse(key, "a table")
        return self.flat(given, key)

    def flat(self, table: Mapping[str, Any], key: str, prefix: str = "") -> dict[str, str]:
        """Return nested tables as dotted names; `key` is their place, for errors."""
        found: dict[str, str] = {}
        for name, value in table.items():
            dotted = f"{prefix}{name}"
            if isinstance(value, dict):
                found |= self.flat(value, key, f"{dotted}.")
            elif isinstance(value, bool):
                found[dotted] = str(value).lower()
            elif isinstance(value, str | int | float):
                found[dotted] = str(value)
            else:
                what = f"{key} {dotted}".lstrip()
                self.fail(f"{what} must be a text, number or boolean, got {value!r}")
        return found


def _meant(key: str, known: Sequence[str]) -> str:
    near = get_close_matches(key, known, n=1)
    return f' (did you mean "{near[0]}"?)' if near else ""
