"""Kinds of joins in SQL: as the standard, Spark and DuckDB write them."""

import pytest

import slackwater as sw

A, B = sw.Stream("a", "ts", "5 seconds"), sw.Stream("b", "ts", "5 seconds")
FROM = "SELECT * FROM a [5 SECONDS]"


@pytest.mark.parametrize(
    ("words", "how"),
    [
        ("LEFT JOIN", "left"),
        ("LEFT OUTER JOIN", "left"),
        ("RIGHT JOIN", "right"),
        ("FULL OUTER JOIN", "full"),
        ("SEMI JOIN", "semi"),
        ("LEFT SEMI JOIN", "semi"),
        ("LEFT ANTI JOIN", "anti"),
        ("INNER JOIN", "inner"),
    ],
)
def test_kinds(words, how):
    assert sw.sql(f"{FROM} {words} b [5 SECONDS] USING (k)") == sw.join(A, B, on="k", how=how)


def test_an_as_of_join_has_a_tolerance_in_place_of_windows():
    query = sw.sql("SELECT * FROM a ASOF JOIN b [ID seq] USING (k) TOLERANCE 2 SECONDS NEAREST")
    streams = sw.Stream("a", "ts"), sw.Stream("b", "ts", id="seq")
    options = {"tolerance": "2 seconds", "direction": "nearest"}
    assert query == sw.join(*streams, on="k", how="asof", **options)


def test_eager_joins_have_a_goal_of_their_own():
    query = sw.sql(f"{FROM} JOIN b [5 SECONDS] USING (k) WITH EMIT EAGER, RESULT_ID")
    assert query == sw.join(A, B, on="k", emit="eager", result_id=True)
    assert query.goal == sw.Recall(0.999)


def test_a_query_prints_its_conditions_behind_on():
    query = sw.join(A, B, on="k", where="a.x < b.x", how="left", goal=sw.Slack("2 seconds"))
    assert str(query).splitlines() == [
        "SELECT *",
        "FROM a [RANGE 5 SECONDS]",
        "     LEFT JOIN b [RANGE 5 SECONDS] USING (k) ON a.x < b.x",
        "WITH SLACK 2 SECONDS",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{FROM} LEFT JOIN b [5 SECONDS] WHERE a.k = b.k", "stand behind ON; filter streams"),
        (f"{FROM} LEFT b [5 SECONDS]", "expected JOIN, got b"),
        (f"{FROM} ASOF JOIN b USING (k)", "how='asof' needs tolerance="),
        (f"{FROM} ASOF JOIN b USING (k) TOLERANCE 5 SECONDS", "the tolerance is the window"),
        (
            f"{FROM} JOIN b [5 SECONDS] USING (k) TOLERANCE 5 SECONDS",
            "tolerance= is for how='asof'",
        ),
        (
            f"{FROM} LEFT JOIN b [5 SECONDS] USING (k) JOIN c [5 SECONDS] USING (k)",
            "joins two streams, got 3; join two of them first",
        ),
        (
            "SELECT COUNT(*) FROM a LEFT JOIN b USING (k) WINDOW TUMBLING 10 SECONDS "
            "WITH DEADLINE 12 SECONDS",
            "is of an inner join",
        ),
    ],
)
def test_refusals(text, message):
    with pytest.raises(sw.QueryError, match=message):
        sw.sql(text)
