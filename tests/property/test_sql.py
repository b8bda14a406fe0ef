"""SQL to queries and back, and texts that are no SQL any more."""

import random
import string
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import profiles
import slackwater as sw
from slackwater.query.expression import Condition
from slackwater.query.functions import Aggregate
from slackwater.sql.diagnostics import SqlError

NAMES = st.sampled_from(
    ["a", "quotes", "S1", "left", "order", "Keep", "range", "_x", "select", "union", "Trades"]
)
COLUMNS = st.sampled_from(["k", "px", "Timestamp", "orderID", "x_1", "group", "value"])
SHARES = st.sampled_from([0.5, 0.8, 0.95, 0.999, 0.01])
UNITS = ["ms", "second", "seconds", "minutes", "sec", "h"]
DURATIONS = st.one_of(
    st.builds("{} {}".format, st.integers(1, 50), st.sampled_from(UNITS)),
    st.integers(1, 10_000),
    st.just("1.5 minutes"),
)
LONG = st.builds("{} minutes".format, st.integers(1, 9))


@st.composite
def distinct_streams(draw, windows, most=4, vectors=False):
    names = draw(st.lists(NAMES, min_size=2, max_size=most, unique=True))
    return [
        sw.Stream(
            name,
            draw(COLUMNS),
            draw(windows),
            vectors={"v": draw(st.integers(1, 9))} if vectors and draw(st.booleans()) else {},
            source=draw(st.sampled_from([name, "shared", "other source"])),
            id=draw(st.sampled_from([(), (), "seq", ("part", "seq no")])),
        )
        for name in names
    ]


SIGNS = st.sampled_from(["+", "-", "*", "/", "//", "%", "**"])


def numbers(names):
    """Expressions that are numbers."""
    columns = st.builds("{}.{}".format, st.sampled_from(names), COLUMNS)
    atoms = columns | st.sampled_from(["1", "0.5", "2e-05", "100"])

    def more(inner):
        return st.one_of(
            st.builds(
                "({} {} {})".format, inner, st.sampled_from("+ - * / // % **".split()), inner
            ),
            st.builds("-{}".format, inner),
            st.builds("abs({})".format, inner),
            st.builds("max({}, {})".format, inner, inner),
            st.builds("dist({}, {}, {}, {})".format, inner, inner, inner, inner),
        )

    return st.recursive(atoms, more, max_leaves=4)


def conditions(names):
    """Expressions that are true or not."""
    number = numbers(names)
    compared = st.builds(
        "({} {} {})".format, number, st.sampled_from("< <= > >= == !=".split()), number
    )

    def more(inner):
        return st.one_of(
            st.builds("({} and {})".format, inner, inner),
            st.builds("({} or {})".format, inner, inner),
            st.builds("(not {})".format, inner),
        )

    return st.recursive(compared, more, max_leaves=4)


GOALS = st.one_of(
    st.builds(
        sw.Recall,
        SHARES,
        over=LONG,
        confidence=st.sampled_from([0.9, 0.97]),
        model=st.sampled_from(["measured", "eqsel", "noneqsel"]),
        every=st.sampled_from(["1 second", "2 seconds"]),
        gains=st.sampled_from([("200 ms", "200 ms"), ("1 second", 5)]),
    ),
    st.builds(sw.Latency, DURATIONS),
    st.builds(sw.InputQuantile, SHARES, every=st.sampled_from(["1 second", "3 seconds"])),
    st.builds(sw.DropRatio, SHARES),
    st.builds(sw.Slack, DURATIONS),
    st.just(sw.MaxSlack()),
    st.builds(sw.NoSlack, st.booleans()),
)
SHEDDING = st.one_of(
    st.sampled_from(["off", "adaptive"]),
    st.builds(sw.Harvest, budget=st.sampled_from([None, 100.0, 5]), memory=st.just("64 MB")),
    st.builds(sw.RandomDrop, budget=st.just(7.5), buffer=DURATIONS),
    st.builds(sw.TailDrop, usage=SHARES),
)


@st.composite
def joins(draw):
    windows = st.one_of(DURATIONS, st.builds(sw.Tuples, st.integers(1, 9)))
    shed = draw(SHEDDING)
    streams = draw(distinct_streams(windows if shed == "off" else DURATIONS, vectors=True))
    names = [stream.name for stream in streams]
    tied = [f"{a}.{draw(COLUMNS)} = {b}.{draw(COLUMNS)}" for a, b in pairwise(names)]
    every = f"{names[0]}.*"
    listed = st.dictionaries(COLUMNS, numbers(names), min_size=1, max_size=3)
    time_windows = not any(isinstance(stream.window, sw.Tuples) for stream in streams)
    pipeline = draw(st.sampled_from(["clocked", "icde16"]))
    return sw.join(
        *streams,
        on=draw(st.sampled_from([None, "k", ("k", "px"), (tied[0],)])),
        where=draw(st.none() | conditions(names)),
        select=draw(listed | st.sampled_from(["*", "count", {every: every, "n": "1 + 1"}])),
        goal=draw(GOALS),
        late=draw(st.sampled_from(["count", "emit"])),
        slide=draw(st.none() | DURATIONS) if time_windows else None,
        pipeline=pipeline,
        overdue=draw(st.sampled_from(["advance", "now"])) if pipeline == "icde16" else "advance",
        retention=draw(st.none() | DURATIONS),
        unit=draw(st.sampled_from(["ms", "us"])),
        strict=draw(st.booleans()),
        shed=shed,
    )


@st.composite
def kinds_of_joins(draw):
    how = draw(st.sampled_from(["inner", "left", "right", "full", "semi", "anti", "asof"]))
    windows = st.none() if how == "asof" else DURATIONS
    streams = draw(distinct_streams(windows, most=2))
    names = [stream.name for stream in streams]
    emit = draw(st.sampled_from(["ordered", "eager"]))
    has_corrections = emit == "ordered" or how not in ("inner", "semi")
    has_alone = how in ("left", "right", "full", "anti")
    unmatched = st.sampled_from([None, 0.99]) if has_alone else st.none()
    tied = f"{names[0]}.{draw(COLUMNS)} = {names[1]}.{draw(COLUMNS)}"
    return sw.join(
        *streams,
        on=draw(st.sampled_from([None, "k", ("k", "px"), (tied,)])),
        where=draw(st.none() | conditions(names)),
        goal=draw(
            st.builds(sw.Recall, SHARES, over=LONG, unmatched=unmatched)
            | st.builds(sw.Slack, DURATIONS)
        ),
        late=draw(st.sampled_from(["count", "emit"])) if has_corrections else "count",
        how=how,
        emit=emit,
        tolerance=draw(DURATIONS) if how == "asof" else None,
        direction=draw(st.sampled_from(["backward", "nearest"])) if how == "asof" else "backward",
        retention=draw(st.none() | DURATIONS),
        result_id=draw(st.booleans()),
    )


@st.composite
def windows(draw):
    functions = st.sampled_from(["avg", "sum", "count", "min", "max", "stddev", "first", "last"])
    select = st.dictionaries(
        st.sampled_from(["m", "total", "n"]), st.builds(Aggregate, functions, COLUMNS), min_size=1
    )
    lengths = st.one_of(
        st.integers(1, 99),
        st.builds("{} {}".format, st.integers(1, 50), st.sampled_from(UNITS)),
    )
    in_tuples = draw(st.booleans())
    counts = st.integers(1, 99)
    windows = (
        st.builds(sw.Tuples, counts, st.none() | counts)
        if in_tuples
        else st.builds(sw.Sliding, lengths, st.none() | lengths)
    )
    return sw.window(
        sw.Stream(draw(NAMES), draw(COLUMNS), source=draw(st.sampled_from(["", "services"]))),
        window=draw(windows),
        select=draw(select),
        by=draw(st.sampled_from([(), ("px",), ("px", "value")])),
        goal=draw(
            st.sampled_from(
                [None, sw.DropRatio(0.1, every=sw.Tuples(50)), sw.Slack(5), sw.MaxSlack()]
            )
        ),
        unit=draw(st.sampled_from(["ms", "us"])),
    )


@st.composite
def aggregates(draw):
    streams = draw(distinct_streams(st.none(), most=3))
    names = [stream.name for stream in streams]
    length = draw(st.integers(1, 5))
    column = f"{names[0]}.{draw(COLUMNS)}"
    sliding = sw.Sliding(f"{length} minutes", "1 second")
    ends = st.sampled_from(["start", "end"])
    deadlines = st.builds(sw.Deadline, DURATIONS, ends, st.none() | DURATIONS)
    return sw.aggregate(
        *streams,
        on="k",
        select={"n": sw.count(), "s": sw.functions.sum(column), "mean": sw.avg(column)},
        window=draw(st.sampled_from([sw.Tumbling(f"{length} seconds"), sliding])),
        deadline=draw(deadlines),
        by=draw(st.sampled_from([(), ("k",), (f"{names[0]}.region",)])),
        compensate=draw(st.sampled_from([None, True, False, "aema", "mlp-elbo"])),
        confidence=draw(st.sampled_from([0.95, 0.8])),
        late=draw(st.sampled_from(["count", "emit"])),
        unit=draw(st.sampled_from(["ms", "us"])),
    )  # fmt: skip


QUERIES = st.one_of(joins(), kinds_of_joins(), windows(), aggregates())


def normal(query):
    """What a query says, its condition and columns in the spelling of Python."""
    said = query.to_dict()
    if isinstance(query, sw.JoinQuery):
        said["where"] = spelled(query.where)
        said["select"] = {name: spelled(text) for name, text in query.listed} or query.select
    return said


def spelled(text):
    return text if text is None or text.endswith("*") else Condition.parse(text).parts


@settings(max_examples=profiles.share(1))
@given(query=QUERIES)
def test_a_query_is_the_same_after_its_own_sql(query):
    text = str(query)
    again = sw.sql(text)
    assert normal(again) == normal(query)
    assert str(again) == text
    assert sw.sql(str(again)) == again  # from here on to the letter
    spaced = text.replace("\n", " \n\t ").replace("SELECT", "select").replace(" AS ", " as ")
    assert sw.sql("-- a comment\n" + spaced + " ;") == again


SIGNS_OF_TROUBLE = "@#$~^&|\\!?:;'\"`(){}[]<>,.*/%+-=\0é∞"
WORDS_OF_TROUBLE = ["SELECT", "FROM", "UNION", "CASE", "NULL", "x", "1e999", "OVER", "BETWEEN"]


def mutilated(text, how, rng):
    """A text with something wrong in it, probably."""
    i, words = rng.randrange(len(text)), text.split()
    w = rng.randrange(len(words))
    if how == "cut":
        return text[:i]
    if how == "lose":
        return text[:i] + text[i + 1 :]
    if how == "lose a word":
        return " ".join(words[:w] + words[w + 1 :])
    if how == "double a word":
        return " ".join(words[: w + 1] + words[w:])
    if how == "another letter":
        return text[:i] + rng.choice(string.printable) + text[i + 1 :]
    if how == "a strange sign":
        return text[:i] + rng.choice(SIGNS_OF_TROUBLE) + text[i:]
    if how == "a strange word":
        return " ".join([*words[:w], rng.choice(WORDS_OF_TROUBLE), *words[w:]])
    return " ".join(rng.sample(words, len(words)))


HOW = st.sampled_from([
    "cut", "lose", "lose a word", "double a word", "another letter", "a strange sign",
    "a strange word", "shuffle",
])  # fmt: skip


@settings(max_examples=profiles.share(1))
@given(query=QUERIES, how=HOW, seed=st.integers(0, 2**32))
def test_a_mutilated_query_is_another_one_or_an_error_with_its_place(query, how, seed):
    text = mutilated(str(query), how, random.Random(seed))
    try:
        made = sw.sql(text)
    except SqlError as error:
        assert 1 <= error.line <= text.count("\n") + 1
        assert error.column >= 1
        problem, shown, caret = str(error).rsplit("\n", 2)
        assert problem and shown.startswith(f"  line {error.line}:")
        assert caret.strip("^ ") == "" and "^" in caret
    else:
        assert sw.sql(str(made)) == made


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("SELECT * FORM a [5 SEC]", "expected FROM, got FORM; did you mean FROM?"),
        ("SELECT * FROM a [5 SEC], b [5 SEC] WITH RECAL .9", "did you mean RECALL?"),
        ("SELECT * FROM a [5 SEC], b [5 SEC] WITH RECALL 95", "recall must be above 0 and at"),
        ("SELECT * FROM a [5 SEC], b [5 SEC] WITH RECALL .9 (modle 'pd')", "did you mean model?"),
        ("SELECT * FROM a [5 SEC], b", "stream b needs a window: b [RANGE 5 SECONDS]"),
        ("SELECT * FROM a [5 SEC], b [5 SEC] WHERE x = 1", "say of which stream x is: a.x or b.x"),
        ("SELECT * FROM ab [5 SEC], c [5 SEC] WHERE abc.x = 1", "did you mean ab?"),
        ("SELECT * FROM a [5 SEC], b [5 SEC] WHERE lowr(a.s) = 'IBM'", "did you mean lower?"),
        ("SELECT * FROM a [5 SEC], b [5 SEC] WHERE a.x <=> 1", "expected columns, numbers"),
        ("SELECT a.x + 1 FROM a [5 SEC], b [5 SEC]", "name the column a.x + 1 with AS"),
        ("SELECT a.x AS x, b.y AS x FROM a [5 SEC], b [5 SEC]", "more than one column x; name one"),
        ("SELECT SUM(a.x) FROM a [5 SEC], b [5 SEC]", "need windows: WINDOW TUMBLING"),
        ("SELECT MAX(v) FROM a", "stream a needs a window: a [RANGE 30 SECONDS]"),
        ("SELECT v FROM a [5 SEC]", "v must be one of GROUP BY"),
        ("SELECT MAX(v) FROM a [5 SEC] WHERE a.v > 1", "takes all its rows; filter the stream"),
        ("SELECT MAX(v) FROM a [5 SEC, DRATIO 100%]", "below 1, got 1.0"),
        (
            "SELECT COUNT(*) FROM a, b WHERE a.k = b.k WINDOW TUMBLING 5 S",
            "need a deadline: WITH DEADLINE",
        ),
        ("SELECT MIN(a.v) FROM a, b WHERE a.k = b.k WINDOW TUMBLING 5 S WITH DEADLINE 5 S",
         "a join is aggregated by count, sum and avg"),
        ("SELECT * FROM a [5 SEC], b [5 SEC] WITH COMPENSATE", "a join has no COMPENSATE"),
        ("SELECT * FROM a [5 SEC], b [5 SEC] WHERE a.x = b.x AND b.y = c.y", "no stream c"),
        ("SELECT * FROM a [5 SEC], b [5 SEC], c [5 SEC] "
         "WHERE a.x = b.x AND b.y = c.y AND a.z = c.z", "on forms a cycle"),
        ("SELECT 'abc FROM a", "a quote or comment is not closed"),
        ("SELECT * FROM a [5 SEC] WHERE (", "expected an expression"),
        ("SELECT * FROM a [5 SEC], b [5 SEC]; SELECT 1 FROM c [5 S]", "expected one SELECT"),
        ("SET x = 1", "are for files"),
        ("", "expected SELECT, got the end"),
    ],
)  # fmt: skip
def test_an_error_says_what_and_where(text, problem):
    with pytest.raises(SqlError) as caught:
        sw.sql(text)
    assert problem in str(caught.value)


def test_an_equality_can_be_tested_without_being_a_key():
    text = "SELECT * FROM a [5 SEC], b [5 SEC] WHERE a.k = b.k AND TEST(a.x = b.x)"
    query = sw.sql(text)
    assert (query.on, query.where) == (("a.k = b.k",), "a.x == b.x")


def test_what_the_text_leaves_open_is_given_beside_it():
    text = "SELECT COUNT(*) FROM quotes q, trades [RANGE 2 SECONDS] t WHERE q.k = t.k"
    quotes = sw.Stream("quotes", "at", "5 seconds")
    query = sw.sql(text, quotes=quotes, trades="time")
    assert [(s.name, s.ts, s.window, s.source) for s in query.streams] == [
        ("q", "at", "5 seconds", "quotes"),
        ("t", "time", "2 seconds", "trades"),
    ]
    with pytest.raises(sw.QueryError, match="no stream qoutes; the text has quotes, trades; did"):
        sw.sql(text, qoutes="ts")


def test_a_function_cannot_be_written_as_sql_and_says_so():
    query = sw.join(
        sw.Stream("a", "ts", 1),
        sw.Stream("b", "ts", 1),
        where=lambda a, b: a.x < b.x,
        goal=sw.NoSlack(),
    )
    assert "<the function <lambda>>" in str(query)
    with pytest.raises(SqlError):
        sw.sql(str(query))
