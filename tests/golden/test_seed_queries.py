"""Every query printed in the five documents, as written there, from text to results.

PECJ and GrubJoin print no queries as text: PECJ's Q1 to Q3 are described in words and stand here in
our own spelling, GrubJoin's joins (similar vectors, |x - y| <= r) likewise.
"""

import pyarrow as pa
import pytest

import slackwater as sw


def run(text, tables, arrival=None, **streams):
    query = sw.sql(text, **streams)
    assert sw.sql(str(query)) == query  # and what it prints is the same query
    return query, query.replay(tables, arrival)


def table(**columns):
    return pa.table(columns)


# ---- ICDE16, section VI


def test_icde16_q2_players_closer_than_5_meters():
    players = table(ts=[0, 1000, 9000], xCoord=[0.0, 3.0, 0.0], yCoord=[0.0, 4.0, 1.0])
    others = table(ts=[500, 2000, 14_001], xCoord=[0.0, 3.0, 0.0], yCoord=[1.0, 9.5, 1.0])
    query, done = run(
        "SELECT * FROM S1 [5 SEC], S2 [5 SEC] "
        "WHERE dist(S1.xCoord, S1.yCoord, S2.xCoord, S2.yCoord) < 5",
        {"S1": players, "S2": others},
    )
    assert query.lengths == (5000, 5000)
    pairs = done.results.select(["result_ts", "S1_ts", "S2_ts"]).to_pylist()
    # 3-4-5: the player at 1000 is 4.2 m from the one at 500; 14,001 is a millisecond too late
    assert [tuple(pair.values()) for pair in pairs] == [(500, 0, 500), (1000, 1000, 500)]


def test_icde16_q3_and_q4():
    streams = {f"S{i}": table(ts=[i, i + 10], a1=[1, 2]) for i in (1, 2, 3)}
    _, done = run(
        "SELECT * FROM S1 [5 SEC], S2 [5 SEC], S3 [5 SEC] WHERE S1.a1=S2.a1 AND S2.a1=S3.a1",
        streams,
    )
    assert [row["result_ts"] for row in done.results.to_pylist()] == [3, 13]
    star = {
        "S1": table(ts=[1], a1=[1], a2=[2], a3=[3]),
        "S2": table(ts=[2, 2], a1=[1, 9]),
        "S3": table(ts=[3, 3], a2=[2, 2]),
        "S4": table(ts=[4], a3=[3]),
    }
    query, done = run(
        "SELECT * FROM S1 [3 SEC], S2 [3 SEC], S3 [3 SEC], S4 [3 SEC] "
        "WHERE S1.a1=S2.a1 AND S1.a2=S3.a2 AND S1.a3=S4.a3",
        star,
    )
    assert len(query.keys) == 3
    assert done.results.num_rows == 2  # 1 × 1 × 2 × 1


# ---- Thesis, chapter 1 and section 6.3.1

THESIS_1 = """
SELECT
    MAX(S.Timestamp, T.Timestamp) as Timestamp, S.ItemID as ItemID,
    S.Name, T.Order
FROM SensorOne as S KEEP 3 SECOND, SensorTwo as T KEEP 2 SECOND
SLIDE 1 SECOND
WHERE S.ItemID = T.ItemID
"""
THESIS_6 = """
SELECT
  MAX(A.Timestamp, B.Timestamp) as Timestamp, A.Value, B.Value
FROM StreamA as A KEEP 2 SECOND, StreamB as B KEEP 3 SECOND
SLIDE 10 MILLISECOND
"""


def test_the_thesis_first_query():
    """Figure 1.1: Alice's burger at global time 2, and Bob's later."""
    one = table(Timestamp=[1000, 2000], ItemID=["0199", "0200"], Name=["Alice", "Bob"])
    two = table(Timestamp=[2000, 3000], ItemID=["0199", "0200"], Order=["Burger", "Cola"])
    query, done = run(
        THESIS_1,
        {"SensorOne": one, "SensorTwo": two},
        SensorOne="Timestamp",
        SensorTwo="Timestamp",
    )
    assert query.slide == "1 second"
    assert done.results.column_names == ["result_ts", "Timestamp", "ItemID", "Name", "Order"]
    assert done.results.to_pylist()[0] == {
        "result_ts": 2000, "Timestamp": 2000, "ItemID": "0199", "Name": "Alice",
        "Order": "Burger",
    }  # fmt: skip


def test_the_thesis_experiment_joins_every_pair_in_the_windows():
    a = table(Timestamp=[0, 1000], Value=[1, 2])
    b = table(Timestamp=[500, 2500], Value=[3, 4])
    _, done = run(THESIS_6, {"StreamA": a, "StreamB": b}, StreamA="Timestamp", StreamB="Timestamp")
    assert done.results.column_names == ["result_ts", "Timestamp", "A_Value", "B_Value"]
    assert done.results.to_pylist() == [
        {"result_ts": 500, "Timestamp": 500, "A_Value": 1, "B_Value": 3},
        {"result_ts": 1000, "Timestamp": 1000, "A_Value": 2, "B_Value": 3},
        {"result_ts": 2500, "Timestamp": 2500, "A_Value": 2, "B_Value": 4},
    ]


# ---- Kim, Q1 to Q3


def test_kim_q1_largest_reading_of_the_last_30_seconds():
    readings = table(ts=[0, 10_000, 30_000, 45_000], value=[5, 9, 4, 1])
    query, done = run("SELECT MAX(value)  \nFROM Sensors [RANGE 30 seconds]", {"Sensors": readings})
    assert query.length == 30_000
    # (t - 30, t]: at 30 s the reading at 0 s is gone
    assert done.results.column("max_value").to_pylist() == [5, 9, 9, 4]


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (0.0, "SELECT AVG(serviceTime)\n FROM Services [RANGE 100 tuples,\n  WATTR orderID]"),
        (
            0.01,
            "SELECT AVG(serviceTime)\n FROM Services [RANGE 100 tuples,\n  WATTR orderID,\n"
            "  DRATIO 1%]",
        ),
    ],
)
def test_kim_q2_and_q3_average_over_the_last_100_orders(ratio, text):
    orders = list(range(300))
    orders[10], orders[17] = orders[17], orders[10]  # two stores, one a little slower
    services = table(orderID=orders, serviceTime=[float(o) for o in orders])
    query, done = run(text, {"Services": services})
    assert query.goal == sw.DropRatio(ratio)
    assert query.length == sw.Tuples(100)
    last = done.results.to_pylist()[-1]
    assert last == {"result_ts": 299, "avg_serviceTime": 249.5}


# ---- PECJ's Q1 to Q3 and GrubJoin's ε-join, which are not printed as text


@pytest.mark.parametrize(
    ("select", "deadline", "found"),
    [
        ("COUNT(*) AS n", "10 MS", {"n": 2}),
        ("SUM(r.v) AS s", "10 MS", {"s": 12.0}),
        ("COUNT(*) AS n", "200 MS", {"n": 3}),  # Q3 waits longer, and so has the last one too
    ],
)
def test_pecj_queries(select, deadline, found):
    r = table(ts=[1, 4], k=[1, 2], v=[5.0, 7.0], arrival=[2, 5])
    s = table(ts=[2, 5, 9], k=[1, 2, 1], v=[0.0, 0.0, 0.0], arrival=[3, 6, 150])
    _, done = run(
        f"SELECT {select} FROM r, s WHERE r.k = s.k WINDOW TUMBLING 10 MS WITH DEADLINE {deadline}",
        {"r": r, "s": s},
        "arrival",
    )
    first = done.results.to_pylist()[0]
    assert {name: first[name] for name in found} == found


def test_grubjoin_similar_values_of_three_streams():
    streams = {f"s{i}": table(ts=[i], x=[float(i)]) for i in range(3)}
    _, done = run(
        "SELECT COUNT(*) FROM s0 [RANGE 10 SECONDS], s1 [RANGE 10 SECONDS], s2 [RANGE 10 SECONDS] "
        "WHERE ABS(s0.x - s1.x) <= 1 AND ABS(s1.x - s2.x) <= 1 WITH NO SLACK, SHED ADAPTIVE",
        streams,
    )
    assert done.results.to_pylist() == [{"result_ts": 2, "n": 1}]
