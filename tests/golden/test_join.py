"""The join on the papers' own examples; the oracle and the engine answer each of them.

An event is written as a letter and its time. In the ICDE16 examples the letter is the join
attribute: capitals are stream S1, small letters stream S2. In the Thesis' join logic the letter is
the stream. A result is written as its members; results stand in the order of their times, those of
one time in the order in which their members arrived.
"""

import pyarrow as pa
import pytest

import slackwater as sw
from helpers import Case, arrivals, emitted, engine_run, naive_run, naive_steps, plain
from naive import Event, join, truth


def attributes(text):
    """Events such as ``C4 c3``: the letter is the join attribute, its case the stream."""
    words = text.split()
    values = [(ord(w[0].lower()) - ord("a"), 0, 0) for w in words]
    return words, [
        Event(int(w[1:]), int(w.islower()), n, v)
        for n, (w, v) in enumerate(zip(words, values, strict=True))
    ]


def streams(text):
    """Events such as ``A8 B9 A10'``: the letter is the stream; a dash tells equal ones apart."""
    words = text.split()
    return words, [
        Event(int(w[1:].strip("'")), "AB".index(w[0]), n, (0, 0, 0)) for n, w in enumerate(words)
    ]


def spell(results, words):
    return [" ".join(words[n] for n in ids) for _, ids in results]


def by_oracle(case, words):
    return spell(plain(naive_run(case)[0]), words)


def by_engine(case, words):
    results = emitted(engine_run(case), case.m)
    assert [ts for ts, _ in results] == sorted(ts for ts, _ in results)
    return spell(sorted(results), words)


both = pytest.mark.parametrize("answer", [by_oracle, by_engine], ids=["oracle", "engine"])


# ---- ICDE16 Fig. 1: what disorder does to a join; windows of 2
#
#   time  1   2   3   4   5   6   7   8
#   S1    A           C   E   B       D     C4 arrives after B6
#   S2        a   c           b   e   d     e7 arrives after D8
#
#   true results, by result time: A1 a2 at 2, C4 c3 at 4, B6 b6 at 6, E5 e7 at 7, D8 d8 at 8

FIGURE_1, FIGURE_1_EVENTS = attributes("A1 a2 c3 E5 B6 b6 C4 D8 e7 d8")


def figure_1(**options):
    return Case(FIGURE_1_EVENTS, [2, 2], "key", **options)


def test_icde16_figure_1_the_true_results():
    case = figure_1()
    true = spell(plain(truth(case.events, *case.query)), FIGURE_1)
    assert true == ["A1 a2", "C4 c3", "B6 b6", "E5 e7", "D8 d8"]


def test_icde16_figure_1_a_join_without_disorder_handling_misses_two_results():
    case = figure_1()
    results, late = join(case.events, *case.query)
    assert spell(plain(results), FIGURE_1) == ["A1 a2", "B6 b6", "D8 d8"]
    assert [(FIGURE_1[e.arrival], kept) for e, kept in late] == [("C4", True), ("e7", True)]


@both
def test_icde16_figure_1_the_synchronizer_alone_recovers_e7_in_order(answer):
    case = figure_1(slack=0, overdue="now")
    assert answer(case, FIGURE_1) == ["A1 a2", "B6 b6", "E5 e7", "D8 d8"]


@both
def test_icde16_figure_1_slack_as_large_as_the_delay_of_c4_gives_everything_in_order(answer):
    # C4 arrives when S1 is at 6: its delay is 2.
    assert answer(figure_1(slack=2), FIGURE_1) == ["A1 a2", "C4 c3", "B6 b6", "E5 e7", "D8 d8"]


# ---- ICDE16 Fig. 5: a late event changes the selectivity, and more or less of the recall
#
#   time  1   2   3   4          cross join (W = 3): A1 b3, B2 b3, A1 a4, B2 a4
#   S1    A   B                  that match:                B2 b3, A1 a4         1/2
#   S2            b   a
#
# Z9 belongs to no result: it takes S1 ahead, so that what follows it in S1 is late in the join.

FIGURE_5 = {  # arrivals, cross results, results
    "a: complete handling": ("A1 B2 b3 Z9 a4", 4, 2),
    "b: B2 is late": ("A1 b3 Z9 B2 a4", 3, 1),
    "c: A1 is late": ("B2 b3 Z9 A1 a4", 3, 2),
}


@both
@pytest.mark.parametrize(("text", "cross", "matching"), FIGURE_5.values(), ids=FIGURE_5)
def test_icde16_figure_5_selectivity_of_what_the_join_sees(answer, text, cross, matching):
    words, events = attributes(text)
    case = Case(events, [3, 3], slack=0, overdue="now")
    assert len(answer(case._replace(kind="cross"), words)) == cross
    assert len(answer(case._replace(kind="key"), words)) == matching


@both
def test_icde16_figure_5_the_recall_depends_on_which_event_is_late(answer):
    recall = {}
    for name, (text, *_) in FIGURE_5.items():
        words, events = attributes(text)
        case = Case(events, [3, 3], slack=0, overdue="now")
        true = len(list(truth(case.events, *case.query)))
        recall[name[0]] = len(answer(case, words)) / true
    assert recall == {"a": 1.0, "b": 0.5, "c": 1.0}


# ---- Thesis Fig. 1.1 and 1.2: KEEP 3 SECOND, KEEP 2 SECOND, SLIDE 1 SECOND, on ItemID
#
#   second  1            2             3            4             5
#   S       199 Alice    200 Bob       201 Carol                  200 Dave
#   T       200 Coke     199 Burger                 201 Burger

S = {"Alice": (1, 199), "Bob": (2, 200), "Carol": (3, 201), "Dave": (5, 200)}
T = {"Coke": (1, 200), "Burger": (2, 199), "Burger'": (4, 201), "Tea": (5, 202)}


def menu(*names, **options):
    """Alice and friends in the order in which they arrive; seconds as milliseconds."""
    events = [
        Event(1000 * (S | T)[name][0], int(name in T), n, ((S | T)[name][1], 0, 0))
        for n, name in enumerate(names)
    ]
    return names, Case(events, [3000, 2000], "key", bounds="(]", slide=1000, **options)


@both
def test_thesis_figure_1_1_ordered_streams(answer):
    names, case = menu("Alice", "Coke", "Bob", "Burger", "Carol", "Burger'", "Dave")
    # Dave does not meet Coke: they are not in their windows at the same time.
    assert answer(case, names) == ["Alice Burger", "Bob Coke", "Carol Burger'"]


LATE_COKE = ("Alice", "Bob", "Burger", "Carol", "Burger'", "Dave", "Tea", "Coke")


@both
def test_thesis_figure_1_2_a_late_event_loses_its_result(answer):
    # Tea, like Dave of second 5, lets the window end reach 5. Coke, of second 1, comes after it.
    names, case = menu(*LATE_COKE, overdue="now")
    assert answer(case, names) == ["Alice Burger", "Carol Burger'"]


def test_thesis_figure_1_2_the_loss_is_counted():
    _, case = menu(*LATE_COKE, overdue="now")
    run = engine_run(case, retention=60_000)
    assert run.late.select(["stream", "ts", "late_by", "kept", "lost", "exact"]).to_pylist() == [
        {"stream": "b", "ts": 1000, "late_by": 4000, "kept": False, "lost": 1, "exact": True}
    ]


@both
def test_thesis_figure_1_2_slack_of_four_seconds_loses_nothing(answer):
    names, case = menu(*LATE_COKE, slack=4000)
    assert answer(case, names) == ["Alice Burger", "Bob Coke", "Carol Burger'"]


# ---- Thesis 4.2: the join logic by situation; no condition, W_A = 3, W_B = 2, bounds (]
#
# All situations start from here, with the window end at 10:
#
#   arrives   A8        B9          A10        B10
#   leaves              A8          B9         A10 B10
#   results                         A8 B9      A10 B9, A8 B10, A10 B10
#   windows at 10:  A in (7, 10] holds A8 A10, B in (8, 10] holds B9 B10

START = "A8 B9 A10 B10 "
START_RESULTS = ["A8 B9", "A8 B10", "A10 B9", "A10 B10"]


def situation(answer, text, **options):
    """Results beyond the start's; the last step empties the synchroniser's buffers."""
    words, events = streams(START + text)
    options = {"bounds": "(]", "overdue": "now", "late_probe": "window-end"} | options
    results = answer(Case(events, [3, 2], "cross", **options), words)
    assert [r for r in results if r in START_RESULTS] == START_RESULTS
    return [r for r in results if r not in START_RESULTS]


def waiting(text):
    """Times in the synchroniser's buffers (A, B) after the last arrival."""
    _, events = streams(START + text)
    *_, last, _ = naive_steps(events, slack=0, n_streams=2, overdue="now")
    return last.sync


@both
def test_thesis_situation_1_an_event_behind_its_window_is_dropped(answer):
    # A7 is not in (7, 10]; neither is it there when B11 comes.
    assert situation(answer, "A7") == []
    assert situation(answer, "A7 A11 B11") == ["A10 B11", "A11 B10", "A11 B11"]


@both
def test_thesis_situation_2_a_late_event_meets_partners_at_the_window_end(answer):
    # A9 meets B10; A9 B9 would be a result of time 9, behind the window end.
    assert situation(answer, "A9") == ["A9 B10"]


@both
def test_thesis_situation_2_a_late_event_is_stored_for_later_results(answer):
    # B11 sees A in (8, 11]: A9, A10 and A11, but no longer A8.
    assert situation(answer, "A9 A11 B11") == [
        "A9 B10",
        "A10 B11",
        "A9 B11",
        "A11 B10",
        "A11 B11",
    ]


@both
def test_icde16_does_not_probe_with_the_late_event_of_situation_2(answer):
    assert situation(answer, "A9", late_probe="none") == []
    assert situation(answer, "A9 A11 B11", late_probe="none") == [
        "A10 B11",
        "A9 B11",
        "A11 B10",
        "A11 B11",
    ]


@both
def test_thesis_situation_2_is_the_same_for_the_other_stream(answer):
    # B9' meets A10, and is still there for A10' but not for A11, since 9 is not in (9, 11].
    assert situation(answer, "B9'") == ["A10 B9'"]
    assert situation(answer, "B9' A10' A11") == [
        "A10 B9'",
        "A10' B9",
        "A10' B10",
        "A10' B9'",
        "A11 B10",
    ]


@both
def test_thesis_situation_3_an_event_at_the_window_end_meets_the_whole_window(answer):
    assert situation(answer, "A10'") == ["A10' B9", "A10' B10"]


@both
def test_thesis_situation_4a_the_leading_stream_waits(answer):
    assert waiting("A12") == [[12], []]
    assert waiting("A12 A11") == [[11, 12], []]
    # At the end of the input A11 meets B10, in (9, 11]; A12 meets nothing in (10, 12].
    assert situation(answer, "A12 A11") == ["A11 B10"]


@both
def test_thesis_situation_4b_the_lagging_stream_moves_the_window_end_up_to_itself(answer):
    # B leads with 11 and 13, then A12: window end 11, then 12; B13 goes on waiting.
    assert waiting("B11 B13") == [[], [11, 13]]
    assert waiting("B11 B13 A12") == [[], [13]]
    # B11: A in (8, 11] is A10. A12: B in (10, 12] is B11. B13 at the end: A in (10, 13] is A12.
    assert situation(answer, "B11 B13 A12") == ["A10 B11", "A12 B11", "A12 B13"]


@both
def test_thesis_situation_4c_the_lagging_stream_takes_the_lead(answer):
    # B leads with 11 and 13, then A15: the window end goes to 13, now A15 waits.
    assert waiting("B11 B13 A15") == [[15], []]
    # B11: A10. B13: A in (10, 13] is empty. A15 at the end: B in (13, 15] is empty.
    assert situation(answer, "B11 B13 A15") == ["A10 B11"]


# ---- Windows that slide: the window of a result ends at the next multiple of U


@both
def test_an_event_that_no_window_end_finds_in_its_window_joins_nothing(answer):
    # U = 3: what happens at 7 is seen by windows that end at 9. A's window of 0 begins there.
    words, events = streams("A7 B7 A9 B9")
    assert answer(Case(events, [0, 2], "cross", slide=3), words) == ["A9 B7", "A9 B9"]


#   arrives     A10 B10 B11   A13 B15 A12   A20 B20          U = 10
#   window end  10                          20
ONE_SLIDE = "A10 B10 B11 A13 B15 A12 A20 B20"


@both
def test_the_window_waits_until_it_can_slide(answer):
    # "it cannot move if we have not seen [...] a pending tuple e with e.ts >= WindowEnd + U" (4.1):
    # A12 is not late. All 4 * 4 pairs lie in the windows of 30 that end at 20.
    words, events = streams(ONE_SLIDE)
    case = Case(events, [30, 30], "cross", bounds="(]", slide=10, overdue="now")
    assert len(answer(case, words)) == 16
    unit = case._replace(slide=1)  # the end moves on to 13, and A12 comes behind B10, B11 and A13
    assert len(answer(unit, words)) == 14


def test_what_waits_for_the_slide():
    _, events = streams(ONE_SLIDE)
    steps = naive_steps(events, slack=0, n_streams=2, overdue="now", slide=10)
    assert [step.sync for step in steps][:7] == [
        [[10], []], [[], []], [[], [11]], [[13], [11]], [[13], [11, 15]], [[12, 13], [11, 15]],
        [[12, 13, 20], [11, 15]],
    ]  # fmt: skip


@both
def test_a_window_without_its_end_can_slide_a_unit_earlier(answer):
    # [0, 10) is complete when both streams have reached 9: A8 of [0, 10) is late, A11 is not.
    words, events = streams("A9 B9 A8 B15 A13 A11 B19 A19")
    case = Case(events, [10, 10], "cross", bounds="[)", slide=10, overdue="now")
    made = {"A9 B9", *(f"{a} {b}" for a in ("A11", "A13", "A19") for b in ("B15", "B19"))}
    assert set(answer(case, words)) == made


@both
def test_half_open_windows_of_one_unit_hold_one_time(answer):
    # [t, t + 1) holds t alone, [t + 1 - 2, t + 1) also the time before it.
    words, events = streams("A1 B1 A2 B2 B3")
    options = {"kind": "cross", "bounds": "[)", "slide": 1}
    assert answer(Case(events, [1, 1], **options), words) == ["A1 B1", "A2 B2"]
    assert answer(Case(events, [2, 1], **options), words) == ["A1 B1", "A1 B2", "A2 B2", "A2 B3"]
    assert answer(Case(events, [0, 1], **options), words) == []


def test_a_loss_beyond_retention_is_unknown_and_never_counted_too_high():
    # Nothing of S1 and S2 happened at 0, so the late S3:0 (windows of 0) loses nothing.
    pairs = [(1, 1), (0, 1), (0, 2), (2, 2), (1, 2), (2, 0)]
    run = engine_run(Case(arrivals(*pairs), [0, 0, 0]))
    assert run.late.select(["stream", "ts", "lost", "exact"]).to_pylist() == [
        {"stream": "c", "ts": 0, "lost": 0, "exact": False}
    ]


def test_a_late_event_loses_no_result_with_a_partner_outside_its_own_window():
    # U = 3: B1 is seen by windows that end at 3, and B's window of 0 holds nothing but time 3.
    _, events = streams("A0 B1 A1 A0'")
    for late in ("count", "emit"):  # the lost results are multiplied, or gone through one by one
        run = engine_run(Case(events, [3, 0], slide=3), retention=100, late=late)
        assert (run.metrics.produced, run.metrics.lost, run.metrics.lost_unknown) == (0, 0, 0)


# ---- Conditions on one stream alone
#
#   time  1     2     3     4        a.x > 5 leaves A2 and A4, whichever of the two comes last
#   A     x=1   x=9         x=9
#   B                 B3
#   C                 C3


@pytest.mark.parametrize("names", ["ab", "abc"], ids=["two streams", "three streams"])
@pytest.mark.parametrize("where", ["a.x > 5", "a.x > 5 and a.x > b.x"])
def test_a_condition_on_one_stream_holds_whichever_event_comes_last(names, where):
    a, other = pa.table({"ts": [1, 2, 4], "x": [1, 9, 9]}), pa.table({"ts": [3], "x": [0]})
    tables = {name: a if name == "a" else other for name in names}
    run = sw.join(
        *(sw.Stream(name, "ts", 10) for name in names), where=where, goal=sw.NoSlack()
    ).replay(tables)
    assert run.results["a_ts"].to_pylist() == [2, 4]
    falls = pa.table({"ts": [1, 2, 4], "x": [9, 9, 1]})  # now the last one is out
    run = run.query.replay(tables | {"a": falls})
    assert run.results["a_ts"].to_pylist() == [1, 2]
