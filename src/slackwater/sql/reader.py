"""From a `Statement` to a query: one stream is a window, several are a join or its aggregates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, get_args

from sqlglot import exp

from slackwater.errors import QueryError
from slackwater.query.aggregate import aggregate
from slackwater.query.any_query import AnyQuery
from slackwater.query.functions import Aggregate, Function
from slackwater.query.goals import DropRatio
from slackwater.query.join import join
from slackwater.query.keys import shared_text
from slackwater.query.stream import Stream
from slackwater.query.window import window
from slackwater.query.windows import sliding_window
from slackwater.sql.diagnostics import SqlError, meant
from slackwater.sql.expressions import column_in, condition, conjuncts, expression, key_of
from slackwater.sql.parser import parse
from slackwater.sql.statement import Span, Statement, StreamClause

Made = TypeVar("Made")

_AGGREGATES = get_args(Function)
_WINDOW = ("goal", "bounds", "unit", "strict")
_AGGREGATED = ("goal", "compensate", "confidence", "late", "retention", "unit", "strict")
_JOINED = (
    "goal", "late", "bounds", "overdue", "late_probe", "retention", "unit", "strict", "shed",
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
        self._sql = sql
        self._statement = statement
        self._given = streams
        known = {clause.source for clause in statement.streams}
        for name in streams:
            if name not in known:
                listed = ", ".join(sorted(known))
                msg = f"there is no stream {name}; the text has {listed}{meant(name, known)}"
                raise QueryError(msg)
        self._names = [clause.name for clause in statement.streams]

    def query(self) -> AnyQuery:
        """The query."""
        if len(self._statement.streams) == 1:
            return self._window()
        for clause in self._statement.streams:
            for part, instead in ((clause.slide, "SLIDE"), (clause.dratio, "WITH DROP RATIO")):
                if part is not None:
                    msg = f"this is for a single stream; a join has it behind FROM: {instead}"
                    raise self._error(msg, part.span)
        if self._statement.window is not None:
            return self._aggregates()
        return self._join()

    # ---- errors

    def _error(self, problem: str, span: Span) -> SqlError:
        return SqlError(problem, self._sql, *span)

    def _fail(self, node: exp.Expr, problem: str) -> SqlError:
        return self._error(problem, self._place(node))

    def _place(self, node: exp.Expr) -> Span:
        """Where an expression stands: from its first word to its last."""
        marks = [n.meta for n in node.walk() if "start" in n.meta]
        if not marks:
            return self._statement.span
        return Span(min(m["start"] for m in marks), max(m["end"] for m in marks) + 1)

    def _made(self, make: Callable[[], Made], span: Span) -> Made:
        try:
            return make()
        except SqlError:
            raise
        except QueryError as error:
            raise self._error(str(error), span) from error

    # ---- streams

    def _stream(self, clause: StreamClause, has_window: bool) -> Stream:
        known = self._given.get(clause.source, "")
        reach, vectors = (known.window, known.vectors) if isinstance(known, Stream) else (None, {})
        own = clause.range.value if clause.range is not None else reach
        if has_window and own is None:
            msg = f"stream {clause.name} needs a window: {clause.source} [RANGE 5 SECONDS]"
            raise self._error(msg, clause.span)
        if not has_window and clause.range is not None:
            msg = f"stream {clause.name} has a window of its own, but there is WINDOW for all"
            raise self._error(msg, clause.range.span)
        return self._made(
            lambda: Stream(
                clause.name,
                self._time(clause),
                own if has_window else None,
                vectors=clause.vectors or vectors,
                source=clause.source,
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
                raise self._error(msg, setting.span)
        return {name: setting.value for name, setting in self._statement.settings.items()}

    # ---- one stream

    def _window(self) -> AnyQuery:
        statement = self._statement
        [clause] = statement.streams
        if clause.using is not None or clause.on is not None or statement.where is not None:
            msg = "a window over one stream takes all its rows; filter the stream before"
            where = statement.where if statement.where is not None else clause.on
            place = clause.span if where is None else self._place(where)
            raise self._error(msg, place)
        if statement.window is not None:
            msg = "WINDOW is for joins; a single stream has its window in brackets"
            raise self._error(msg, statement.window.span)
        if clause.range is None:
            msg = f"stream {clause.name} needs a window: {clause.source} [RANGE 30 SECONDS]"
            raise self._error(msg, clause.span)
        if clause.slide is not None and statement.slide is not None:
            msg = "there is more than one SLIDE"
            raise self._error(msg, statement.slide.span)
        slide = clause.slide or statement.slide
        by = [self._group(node) for node in statement.group]
        options = self._settings(_WINDOW, "a window over one stream")
        if clause.dratio is not None:
            if "goal" in options:
                msg = "DRATIO is a goal, and there is one more"
                raise self._error(msg, clause.dratio.span)
            ratio = clause.dratio.value
            options["goal"] = self._made(lambda: DropRatio(ratio), clause.dratio.span)
        stream = self._made(
            lambda: Stream(
                clause.name, self._time(clause), vectors=clause.vectors, source=clause.source
            ),
            clause.span,
        )
        select = self._select(by, qualified=False)
        length = clause.range.value
        return self._made(
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
            raise self._error(msg, self._place(statement.group[0]))
        streams = [self._stream(clause, has_window=True) for clause in statement.streams]
        on, tests = self._conditions()
        where = condition(tests, self._fail)
        options = self._settings(_JOINED, "a join")
        if statement.slide is not None:
            options["slide"] = statement.slide.value
        select = self._columns()
        return self._made(
            lambda: join(*streams, on=on, where=where, select=select, **options),
            self._statement.span,
        )

    def _aggregates(self) -> AnyQuery:
        statement = self._statement
        assert statement.window is not None
        windows = statement.window.value
        if statement.slide is not None:
            msg = "WINDOW says how windows move: WINDOW SLIDING 10 SECONDS EVERY 1 SECOND"
            raise self._error(msg, statement.slide.span)
        streams = [self._stream(clause, has_window=False) for clause in statement.streams]
        on, tests = self._conditions()
        if tests:
            msg = "aggregates over joined windows are counted by key; they take equalities only"
            raise self._fail(tests[0], msg)
        by = [self._group(node) for node in statement.group]
        options = self._settings(_AGGREGATED, "an aggregate over joined windows")
        if "goal" not in options:
            msg = "aggregates over joined windows need a deadline: WITH DEADLINE 12 SECONDS"
            raise self._error(msg, statement.window.span)
        options["deadline"] = options.pop("goal")
        select = self._select(by, qualified=True)
        return self._made(
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
            raise self._error(msg, odd.span)
        nodes = [node for clause in joined for node in conjuncts(clause.on)]
        nodes += conjuncts(self._statement.where)
        keys, tests = list(map(shared_text, shared[0])) if shared else [], []
        for node in nodes:
            self._check_streams(node)
            key = key_of(node)
            if key is None:
                tests.append(node)
            else:
                keys.append(key)
        if len(keys) == 1 and shared:
            return keys[0], tests
        return tuple(keys) or None, tests

    def _check_streams(self, node: exp.Expr) -> None:
        for column in node.find_all(exp.Column):
            if len(column.parts) > 2:
                raise self._fail(column, f"a column is stream.column, got {column.sql()}")
            if not column.table:
                near = " or ".join(f"{name}.{column.name}" for name in self._names)
                raise self._fail(column, f"say of which stream {column.name} is: {near}")
            if column.table not in self._names:
                listed = ", ".join(self._names)
                near = meant(column.table, self._names)
                msg = f"there is no stream {column.table}; streams are {listed}{near}"
                raise self._fail(column, msg)

    # ---- what is selected

    def _columns(self) -> Any:
        """``"*"``, ``"count"``, or columns by name."""
        items = self._statement.items
        if len(items) == 1 and isinstance(items[0], exp.Star):
            return "*"
        if len(items) == 1 and _is_count(items[0]):
            return "count"
        named: list[tuple[str | None, str, exp.Expr]] = []
        for item in items:
            named += self._item(item)
        plain = Counter(name or _last(text) for name, text, _ in named if not text.endswith(".*"))
        select: dict[str, str] = {}
        for name, text, node in named:
            column = name or self._named(text, plain, node)
            if column in select:
                raise self._fail(node, f"there is more than one column {column}; name one with AS")
            select[column] = text
        return select

    def _item(self, item: exp.Expr) -> list[tuple[str | None, str, exp.Expr]]:
        name = item.alias or None
        node = item.this if isinstance(item, exp.Alias) else item
        if isinstance(node, exp.Star):
            return [(f"{stream}.*", f"{stream}.*", item) for stream in self._names]
        self._check_streams(node)
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            return [(f"{node.table}.*", f"{node.table}.*", item)]
        if self._aggregate_of(node) is not None and len(node.expressions) == 1:
            msg = "aggregates over a join need windows: WINDOW TUMBLING 10 SECONDS"
            raise self._fail(node, msg)
        return [(name, expression(node, self._fail), item)]

    def _named(self, text: str, plain: Counter[str], node: exp.Expr) -> str:
        """The name of a column that has none: its own, with its stream where that is not enough."""
        column = column_in(text)
        if column is None:
            raise self._fail(node, f"name the column {text} with AS")
        return column.name if plain[column.name] == 1 else f"{column.stream}_{column.name}"

    def _group(self, node: exp.Expr) -> str:
        if not isinstance(node, exp.Column):
            raise self._fail(node, f"GROUP BY takes columns, got {node.sql()}")
        if node.table:
            self._check_streams(node)
        if len(self._names) == 1:
            return str(node.name)
        return f"{node.table}.{node.name}" if node.table else str(node.name)

    def _select(self, by: list[str], qualified: bool) -> dict[str, Aggregate]:
        """Aggregates by name; columns of the groups are in the results anyway."""
        select: dict[str, Aggregate] = {}
        for item in self._statement.items:
            node = item.this if isinstance(item, exp.Alias) else item
            if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
                if item.alias or self._group(node) not in by:
                    msg = f"{node.sql()} must be one of GROUP BY, under its own name"
                    raise self._fail(item, msg)
                continue
            function = self._aggregate_of(node)
            if function is None:
                msg = f"expected aggregates ({', '.join(_AGGREGATES).upper()}), got {node.sql()}"
                raise self._fail(item, msg)
            column = self._argument(node, function, qualified)
            name = item.alias or "_".join(
                [function, *([] if column is None else column.split("."))]
            )
            if name in select:
                raise self._fail(item, f"there is more than one column {name}; name one with AS")
            select[name] = self._made(lambda: Aggregate(function, column), self._place(item))  # type: ignore[arg-type]  # noqa: B023
        return select

    def _aggregate_of(self, node: exp.Expr) -> str | None:
        name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
        return name if name in _AGGREGATES else None

    def _argument(self, node: exp.Expr, function: str, qualified: bool) -> str | None:
        arguments = node.expressions
        if function == "count" and (not arguments or isinstance(arguments[0], exp.Star)):
            return None
        if len(arguments) != 1 or not isinstance(arguments[0], exp.Column):
            raise self._fail(node, f"{function.upper()} takes one column, got {node.sql()}")
        [column] = arguments
        if column.table or qualified:
            self._check_streams(column)
        return f"{column.table}.{column.name}" if qualified else str(column.name)


def _is_count(node: exp.Expr) -> bool:
    """Whether it is COUNT(*), which has a name of its own."""
    return (
        isinstance(node, exp.Anonymous)
        and node.name.upper() == "COUNT"
        and all(isinstance(argument, exp.Star) for argument in node.expressions)
    )


def _last(text: str) -> str:
    column = column_in(text)
    return text if column is None else column.name
