"""The queries that are interrupted: generated streams, and the papers' own examples."""

from itertools import pairwise
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

import slackwater as sw
from golden.test_join import FIGURE_5, LATE_COKE, START, attributes, figure_1, menu, streams
from helpers import Case, engine_query, tables
from spark.streams import in_parts, pair, pair_query, write

FILES = 5


class Trial(NamedTuple):
    """A query, and one file of each stream after the other."""

    query: sw.JoinQuery
    parts: dict
    arrival: str
    options: dict = {}  # of `stream`

    def write(self, folder, numbers=range(FILES)):
        for name, parts in self.parts.items():
            for number in numbers:
                write(folder / name, [parts[number]], first=number)

    def stream(self, inputs):
        return self.query.stream(inputs, arrival=self.arrival, **self.options)


def generated():
    query = pair_query(slack="100 ms", late="emit")
    parts = {name: in_parts(table, FILES) for name, table in pair(rows=3_000).items()}
    return Trial(query, parts, "arrival")


def golden(case, files):
    """An example of a paper: its arrivals in turn, cut into files."""
    ends = [number * len(case.events) // files for number in range(files + 1)]
    parts = {
        name: [_between(table, begin, end) for begin, end in pairwise(ends)]
        for name, table in tables(case).items()
    }
    return Trial(engine_query(case, late="emit"), parts, "arr")


def _between(table, first, end) -> pa.Table:
    arrival = table["arr"]
    return table.filter(pc.and_(pc.greater_equal(arrival, first), pc.less(arrival, end)))


def _situation(text):
    options = {"bounds": "(]", "overdue": "now", "late_probe": "window-end"}
    return Case(streams(START + text)[1], [3, 2], "cross", **options)


PAPERS = {
    "icde16 figure 1": figure_1(slack=2),
    "icde16 figure 1, no slack": figure_1(slack=0, overdue="now"),
    **{
        f"icde16 figure 5{name}": Case(attributes(text)[1], [3, 3], "key", slack=0, overdue="now")
        for name, (text, *_) in FIGURE_5.items()
    },
    "thesis figure 1.1": menu("Alice", "Coke", "Bob", "Burger", "Carol", "Burger'", "Dave")[1],
    "thesis figure 1.2": menu(*LATE_COKE, overdue="now")[1],
    "thesis figure 1.2, slack": menu(*LATE_COKE, slack=4000)[1],
    "thesis situation 1": _situation("A7 A11 B11"),
    "thesis situation 2": _situation("A9 A11 B11"),
    "thesis situation 2, other stream": _situation("B9' A10' A11"),
    "thesis situation 3": _situation("A10'"),
    "thesis situation 4a": _situation("A12 A11"),
    "thesis situation 4b": _situation("B11 B13 A12"),
    "thesis situation 4c": _situation("B11 B13 A15"),
}
