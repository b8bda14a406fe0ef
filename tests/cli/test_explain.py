"""`slackwater explain`: jobs in words, and how much they keep."""

import json
import subprocess
import sys

import pytest

from recorded import figures, slackwater, write_job


def explained(*arguments):
    result = slackwater("explain", *arguments)
    assert result.exit_code == 0, result.output
    assert max(map(len, result.stdout.splitlines())) <= 80
    return " ".join(result.stdout.split())


def test_a_join_in_words(tmp_path):
    asked = '[join]\non = "k"\nwhere = "abs(a.v - b.v) < 1"\ngoal = {recall = 0.9}\nlate = "emit"'
    said = explained(write_job(tmp_path, asked=asked, more="shards = 4"))
    for words in (
        "A join of 2 streams, a, b",
        "an event finds partners for 1 second",
        "Equal keys: a and b by k.",
        "compiled to native code; a part is tested as soon as its streams have an event: "
        "abs(a.v - b.v) < 1 (a and b)",
        "a hash table by key (k)",
        "4 shards: a, b by k.",
        "At least 0.9 of the true results over any 1 minute",
        "kept beyond their window for as long as all but a few late events need",
        "Late results are emitted too, marked in the column late.",
        "May change: goal, late, retention, shed, slack_scope, strict",
        "Must not: on, where, select, bounds, slide",
    ):
        assert words in said


ORDERED = "Results in time are above complete_through of every earlier micro-batch."
ANY_CUTS = "Any cuts into micro-batches give the same results, given an arrival column."
SAME_CUTS = "The same cuts into micro-batches give the same results; a retry repeats them."


@pytest.mark.parametrize(
    ("shards", "asked", "words"),
    [
        (4, "", f"All shards have one K. {ORDERED} {SAME_CUTS}"),
        (4, 'goal = {slack = "1 second"}', f"All shards have one K. {ORDERED} {ANY_CUTS}"),
        (4, 'emit = "eager"', f"All shards have one K. Rows are in no order. {SAME_CUTS}"),
        (
            4,
            'slack_scope = "shard"',
            "Each shard chooses its own K. Results of several shards are not in order from one "
            f"micro-batch to the next. {ANY_CUTS}",
        ),
        (1, "", f"1 shard: the job sets it, or there is one core. {ORDERED} {ANY_CUTS}"),
        (1, 'emit = "eager"', f"or there is one core. Rows are in no order. {ANY_CUTS}"),
    ],
)
def test_what_is_promised_of_the_order_of_results(tmp_path, shards, asked, words):
    job = write_job(tmp_path, asked=f'[join]\non = "k"\n{asked}', more=f"shards = {shards}")
    assert words in explained(job)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (
            'how = "left"\nemit = "eager"\nlate = "emit"\ngoal = {recall = 0.99, unmatched = 0.95}',
            [
                "A left outer join of 2 streams, a, b; results have all columns of all.",
                "A pair comes with its second event, in no order of time.",
                "An event of a that has no partner has a row of its own. That is a decision: it "
                "comes when the slowest stream is K past the end of the event's window.",
                "At least 0.99 of the true pairs are found, over any 1 minute: this sets how long",
                "At least 0.95 of the rows without partner are right, over any 1 minute: this "
                "sets K.",
                "A row without partner is wrong if the partner comes after it.",
                "a row with change = delete, which names the wrong one by all its columns",
                "nothing is decided: idle_after is not set",
            ],
        ),
        (
            'how = "full"\ngoal = {recall = 0.9}',
            [
                "An event of a or b that has no partner",
                "Nothing is asked of the rows without partner",
                "What turns out wrong is counted, not corrected",
            ],
        ),
        (
            'how = "asof"\ntolerance = "1 second"\ngoal = {recall = 0.99}',
            [
                "An as-of join of 2 streams",
                "the nearest event of b that is at most 1 second away (backward), or nulls.",
                "It comes when the join's clock, K behind, is past its time.",
                "At least 0.99 of the rows are right at once",
                "A row is wrong if a nearer event comes after it.",
                "tolerance 1 second",
            ],
        ),
        (
            'how = "semi"\nemit = "eager"',
            [
                "results have all columns of a",
                "which comes with its first partner",
                "At least 0.999 of the true rows are found",
                "Nothing is late",
            ],
        ),
        (
            'how = "anti"\ngoal = {slack = "2 seconds"}',
            ["An anti join of 2 streams", "K is 2 seconds, fixed."],
        ),
        (
            'emit = "eager"\ngoal = "max-slack"',
            ["beyond their windows is the largest delay so far"],
        ),
    ],
)
def test_kinds_of_joins_in_words(tmp_path, asked, words):
    file = write_job(tmp_path, asked=f'[join]\non = "k"\n{asked}')
    if "asof" in asked:
        text = file.read_text(encoding="utf-8").replace('window = "1 second"', "")
        file.write_text(text, encoding="utf-8")
    said = explained(file)
    for sentence in words:
        assert sentence in said


def test_streams_that_no_key_ties_are_copied(tmp_path):
    asked = '[join]\nwhere = "abs(a.v - b.v) <= 1"\nshed = "adaptive"'
    file = write_job(tmp_path, asked=asked, more="shards = 3")
    said = explained(file)
    assert "No key ties a and b" in said
    assert "basic windows sorted by v: partners by bisection" in said
    assert "3 shards: a by row; b copied to each." in said
    assert "Each event of b is kept 3 times" in said
    plan = json.loads(slackwater("explain", file, "--json").stdout)["plan"]
    assert (plan["kind"], plan["copied"]) == ("join", ["b"])
    assert "Shards" in plan["words"]


@pytest.mark.parametrize(
    ("kind", "asked", "words"),
    [
        ("window", None, ["for each k: n = count(), most = max(v)", "2 s long, ending each 1 s"]),
        (
            "window",
            '[window]\nwindow = "9 tuples"\nselect = {n = "count()"}',
            ["1 shard: there are no gr"],
        ),
        ("aggregate", None, ["Each window is emitted 200 ms after its end", "estimated (ours)"]),
        ("aggregate", None, ["the exact value follows", "May change: compensate, confidence"]),
        (
            "join",
            '[join]\non = "k"\nretention = "5 s"',
            ["window for 5 s (retention)", "0.95 of the true results"],
        ),
        ("join", '[join]\non = "k"\ngoal = "max-slack"', ["K is the largest delay so far"]),
    ],
)
def test_every_kind_of_job_can_be_explained(tmp_path, kind, asked, words):
    said = explained(write_job(tmp_path, kind, asked))
    for text in words:
        assert text in said


def test_rates_and_delays_become_bytes(tmp_path):
    file = write_job(tmp_path)
    rates = ("--rate", "a=1000/s, b=60/min", "--delay", "2 s", "--json")
    told = figures(slackwater("explain", file, *rates), "explain")
    # a second of window, 300 ms of slack, two seconds for late ones
    assert (told["a: kept for"], told["a: rows kept"], told["b: rows kept"]) == (3.3, 3_300, 3.3)
    assert told["a: row"] == 4 * 8
    assert told["a: state"] == pytest.approx(3_300 * 32 * 0.37)
    assert told["a: memory"] == 3_300 * (32 + told["a: beside the row"])
    assert "--rate and --delay turn this into bytes" in explained(file)


def test_what_an_event_takes_beside_its_row_is_what_the_engine_says(tmp_path):
    from slackwater.engine.join import JoinEngine
    from slackwater.jobs.job import read_job
    from slackwater.jobs.recordings import of_job
    from slackwater.jobs.state_estimate import estimate_state

    job = read_job(write_job(tmp_path, asked='[join]\non = "k"\nwhere = "a.v < b.v"'))
    schemas = {name: table.schema for name, table in of_job(job).tables.items()}
    log = JoinEngine(job.query, schemas).log
    state = estimate_state(job, [1, 1], {}, None)[0]
    assert state.bookkeeping == log.bytes_per_event + 16


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rate", "c=1000/s"], '--rate must be like "a=1000/s" for streams a, b, got'),
        (["--rate", "a=fast"], "--rate must be like"),
        (["--rate", "a=5/fortnight"], "--rate must be like"),
        (["--delay", "long"], "--delay must be like '5 seconds'"),
    ],
)
def test_a_bad_request_exits_with_2(tmp_path, options, message):
    result = slackwater("explain", write_job(tmp_path), *options)
    assert result.exit_code == 2, result.output
    assert message in result.stderr


def test_spark_is_not_needed(tmp_path):
    code = (
        "import sys; from slackwater.cli import app; "
        "app(['explain', sys.argv[1], '--json'], standalone_mode=False); "
        "sys.exit('pyspark' in sys.modules)"
    )
    command = [sys.executable, "-c", code, str(write_job(tmp_path))]
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0
