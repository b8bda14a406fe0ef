"""From a `Statement` to a query: one stream is a window, several are a join or its aggregates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from slackwater.errors import QueryError
from slackwater.query.aggregate import aggregate
from slackwater.query.any_query import AnyQuery
from slackwater.query.interval import windows_of
from slackwater.query.join import join
from slackwater.query.keys import shared_text
from slackwater.query.stream import Stream
from slackwater.query.units import TimeUnit, to_units
from slackwater.query.window import window
from slackwater.query.window_goals import DropRatio
from slackwater.query.windows import sliding_window
from slackwater.sql.diagnostics import SqlError, meant
from slackwater.sql.expressions import condition, conjuncts, key_of
from slackwater.sql.intervals import Interval, Times
from slackwater.sql.parser import parse
from slackwater.sql.places import Places
from slackwater.sql.select_list import SelectList
from slackwater.sql.statement import Statement, StreamClause

_WINDOW = ("goal", "bounds", "unit", "strict", "max_jump")
_AGGREGATED = ("goal", "compensate", "confidence", "late", "retention", "unit", "strict")
_JOINED = (
    "goal", "late", "bounds", "pipeline", "overdue", "late_probe", "retention", "unit", "strict",
    "shed", "slack_scope", "emit", "result_id",
)  # fmt: skip


def read(sql: str, streams: Mapping[str, str | Stream]) -> AnyQuery:
    """The query that a text is; `streams` says of some which column is their time."""
    statements = parse(sql)
    if len(statements) != 1 or not isinstance(statements[0], Statement):
        msg = f"expected one SELECT, got {len(statements)} statements; files may have more"
        if len(statements) == 1:
            msg = "expected SELECT; SET, CREATE STREAM and INSERT INTO are for files"
        raise SqlError(msg, sql, 0, len(sql))
    try:
        return Reader(sql, statements[0], streams).query()
    except RecursionError:  # a long chain of AND is a deep tree
        msg = "expressions are nested too deeply"
        raise SqlError(msg, sql, 0, len(sql)) from None


class Reader:
    """Reads one statement."""

    def __init__(self, sql: str, statement: Statement, streams: Mapping[str, str | Stream]) -> None:
        self._statement = statement
        self._given = streams
        known = {clause.source for clause in statement.streams}
        for name in streams:
            if name not in known:
                listed = ", ".join(sorted(known))
                msg = f"there is no stream {name}; the text has {listed}{meant(name, known)}"
                raise QueryError(msg)
        names = [clause.name for clause in statement.streams]
        self._places = Places(sql, statement.span)
        self._selected = SelectList(statement.items, names, self._places)

    def query(self) -> AnyQuery:
        """The query."""
        if len(self._statement.streams) == 1:
            return self._window()
        for clause in self._statement.streams:
            for part, instead in ((clause.slide, "SLIDE"), (clause.dratio, "WITH DROP RATIO")):
                if part is not None:
                    msg = f"this is for a single stream; a join has it behind FROM: {instead}"
                    raise self._places.error(msg, part.span)
        if self._statement.window is not None:
            return self._aggregates()
        return self._join()

    # ---- streams

    def _stream(self, clause: StreamClause, has_window: bool) -> Stream:
        known = self._given.get(clause.source, "")
        reach, vectors = (known.window, known.vectors) if isinstance(known, Stream) else (None, {})
        own = clause.range.value if clause.range is not None else reach
        if has_window and own is None:
            msg = f"stream {clause.name} needs a window: {clause.source} [RANGE 5 SECONDS]"
            raise self._places.error(msg, clause.span)
        if not has_window and clause.range is not None:
            msg = f"stream {clause.name} has a window of its own, but there is WINDOW for all"
            raise self._places.error(msg, clause.range.span)
        return self._places.checked(
            lambda: Stream(
                clause.name,
                self._time(clause),
                own if has_window else None,
                vectors=clause.vectors or vectors,
                source=clause.source,
                id=tuple(clause.id) or (known.id if isinstance(known, Stream) else ()),
            ),
            clause.span,
        )

    def _time(self, clause: StreamClause) -> str:
        """The column of its time: as the text says, as was given beside it, or ``ts``."""
        known = self._given.get(clause.source, "")
        return clause.wattr or (known.ts if isinstance(known, Stream) else known) or "ts"

    def _settings(self, allowed: Sequence[str], what: str) -> dict[str, Any]:
        """The options behind WITH, which must be ones of this kind of query."""
        for name, setting in self._statement.settings.items():
            if name not in allowed:
                words = ", ".join(option.upper().replace("_", " ") for option in allowed)
                msg = f"{what} has no {name.upper().replace('_', ' ')}; it has {words}"
                raise self._places.error(msg, setting.span)
        return {name: setting.value for name, setting in self._statement.settings.items()}

    # ---- one stream

    def _window(self) -> AnyQuery:
        statement = self._statement
        [clause] = statement.streams
        if clause.using is not None or clause.on is not None or statement.where is not None:
            msg = "a window over one stream takes all its rows; filter the stream before"
            where = statement.where if statement.where is not None else clause.on
            place = clause.span if where is None else self._places.span(where)
            raise self._places.error(msg, place)
        if statement.window is not None:
            msg = "WINDOW is for joins; a single stream has its window in brackets"
            raise self._places.error(msg, statement.window.span)
        if clause.range is None:
            msg = f"stream {clause.name} needs a window: {clause.source} [RANGE 30 SECONDS]"
            raise self._places.error(msg, clause.span)
        if clause.slide is not None and statement.slide is not None:
            msg = "there is more than one SLIDE"
            raise self._places.error(msg, statement.slide.span)
        slide = clause.slide or statement.slide
        by = [self._selected.group(node) for node in statement.group]
        options = self._settings(_WINDOW, "a window over one stream")
        if clause.dratio is not None:
            if "goal" in options:
                msg = "DRATIO is a goal, and there is one more"
                raise self._places.error(msg, clause.dratio.span)
            ratio = clause.dratio.value
            options["goal"] = self._places.checked(lambda: DropRatio(ratio), clause.dratio.span)
        stream = self._places.checked(
            lambda: Stream(
                clause.name, self._time(clause), vectors=clause.vectors, source=clause.source
            ),
            clause.span,
        )
        select = self._selected.aggregates(by, qualified=False)
        length = clause.range.value
        return self._places.checked(
            lambda: window(
                stream,
                window=sliding_window(length, None if slide is None else slide.value),
                select=select,
                by=by,
                **options,
            ),
            self._statement.span,
        )

    # ---- several

    def _join(self) -> AnyQuery:
        statement = self._statement
        if statement.group:
            msg = "GROUP BY needs aggregates over windows: WINDOW TUMBLING 10 SECONDS"
            raise self._places.error(msg, self._places.span(statement.group[0]))
        kind = self._kind()
        on, tests = self._conditions()
        interval, tests = self._interval(tests)
        may_lack = interval is not None or kind.get("how") == "asof"
        streams = [
            self._stream(clause, has_window=not may_lack or clause.range is not None)
            for clause in self._unwindowed(interval)
        ]
        where = condition(tests, self._places.error_at)
        options = self._settings(_JOINED, "a join")
        if statement.slide is not None:
            options["slide"] = statement.slide.value
        if interval is not None:
            options["between"] = interval.between
        select = self._selected.columns()
        return self._places.checked(
            lambda: join(*streams, on=on, where=where, select=select, **kind, **options),
            self._statement.span,
        )

    def _interval(self, tests: list[exp.Expr]) -> tuple[Interval | None, list[exp.Expr]]:
        """How far apart the times of two streams may be, and the other conditions."""
        clauses = self._statement.streams
        if len(clauses) != 2:
            return None, tests
        left, right = ((clause.name, self._time(clause)) for clause in clauses)
        has_windows = any(clause.range or self._reach(clause) for clause in clauses)
        return Times(left, right, self._places.error_at).take(tests, not has_windows)

    def _unwindowed(self, interval: Interval | None) -> list[StreamClause]:
        """The streams; windows beside an interval must say the same, as in text that we print."""
        clauses = self._statement.streams
        if interval is None:
            return clauses
        setting = self._statement.settings.get("unit")
        unit: TimeUnit = "ms" if setting is None else setting.value
        for clause, length in zip(clauses, windows_of(interval.between), strict=True):
            own = None if clause.range is None else to_units(clause.range.value, unit)
            if own not in (None, to_units(length, unit)):
                msg = f"the interval of the times gives stream {clause.name} the window {length}"
                raise self._places.error(msg, clause.range.span)  # type: ignore[union-attr]
        return [replace(clause, range=None) for clause in clauses]

    def _reach(self, clause: StreamClause) -> Any:
        known = self._given.get(clause.source, "")
        return known.window if isinstance(known, Stream) else None

    def _kind(self) -> dict[str, Any]:
        """The options of a join that is not an inner one."""
        found: dict[str, Any] = {}
        for clause in self._statement.streams:
            for option in ("how", "tolerance", "direction"):
                given = getattr(clause, option)
                if given is not None:
                    found[option] = given.value
        where = self._statement.where
        if "how" in found and where is not None:
            msg = "conditions of this kind of join stand behind ON; filter streams before"
            raise self._places.error_at(where, msg)
        return found

    def _aggregates(self) -> AnyQuery:
        statement = self._statement
        assert statement.window is not None
        windows = statement.window.value
        if statement.slide is not None:
            msg = "WINDOW says how windows move: WINDOW SLIDING 10 SECONDS EVERY 1 SECOND"
            raise self._places.error(msg, statement.slide.span)
        for clause in statement.streams:
            if clause.how is not None:
                msg = "an aggregate over joined windows is of an inner join"
                raise self._places.error(msg, clause.how.span)
        streams = [self._stream(clause, has_window=False) for clause in statement.streams]
        on, tests = self._conditions()
        if tests:
            msg = "aggregates over joined windows are counted by key; they take equalities only"
            raise self._places.error_at(tests[0], msg)
        by = [self._selected.group(node) for node in statement.group]
        options = self._settings(_AGGREGATED, "an aggregate over joined windows")
        if "goal" not in options:
            msg = "aggregates over joined windows need a deadline: WITH DEADLINE 12 SECONDS"
            raise self._places.error(msg, statement.window.span)
        options["deadline"] = options.pop("goal")
        select = self._selected.aggregates(by, qualified=True)
        return self._places.checked(
            lambda: aggregate(*streams, on=on, select=select, window=windows, by=by, **options),
            self._statement.span,
        )

    def _conditions(self) -> tuple[Any, list[exp.Expr]]:
        """What must be equal, and what else must hold."""
        joined = self._statement.streams[1:]
        shared = [clause.using for clause in joined if clause.using is not None]
        if shared and (len(shared) < len(joined) or any(cols != shared[0] for cols in shared)):
            odd = next(c for c in joined if c.using != shared[0])
            msg = "USING must name the same columns for all streams; others are for WHERE"
            raise self._places.error(msg, odd.span)
        nodes = [node for clause in joined for node in conjuncts(clause.on)]
        nodes += conjuncts(self._statement.where)
        keys, tests = list(map(shared_text, shared[0])) if shared else [], []
        for node in nodes:
            self._selected.check_streams(node)
            key = key_of(node)
            if key is None:
                tests.append(node)
            else:
                keys.append(key)
        if len(keys) == 1 and shared:
            return keys[0], tests
        return tuple(keys) or None, tests
