"""The figures of docs/concepts.md show what their page says."""

import numpy as np
import pytest

from slackwater_lab.concepts import measured as concepts


def test_what_is_late_behind_a_slack_has_a_longer_delay():
    stream = concepts.one_stream(seed=1)
    for slack in (0.0, 1.0, 3.0):
        out = concepts.through_slack(stream, slack)
        delay = dict(zip(stream.ts, stream.delay, strict=True))
        assert all(delay[ts] > slack for ts in out.ts[out.is_late])
        assert (np.diff(out.ts[~out.is_late]) > 0).all()


def test_more_slack_makes_fewer_late_and_all_wait_longer():
    stream = concepts.one_stream(seed=1)
    outs = [concepts.through_slack(stream, slack) for slack in (0.0, 1.0, 3.0)]
    assert [int(out.is_late.sum()) for out in outs] == [11, 4, 1]
    assert outs[0].wait < outs[1].wait < outs[2].wait


def test_the_lead_waits_in_the_synchronizer():
    lead = concepts.two_streams()
    ahead = lead.local[0] - lead.local[1]
    assert lead.waiting.max() == 60  # six seconds, ten events each
    assert (lead.waiting[ahead == 0] <= 1).all()


def test_the_late_event_of_the_small_join_costs_two_results():
    pairs = concepts.small_join()
    assert pairs.late == [(5.6, 4.6), (5.6, 6.4)]
    near = {(a, b) for a in pairs.a for b in pairs.b if abs(a - b) <= pairs.window}
    assert {*pairs.in_time, *pairs.late} == near


def test_every_event_and_every_result_has_a_fate():
    several = list(concepts.fates(seed=1, rows=400))
    for fates in several:
        assert sum(fates.events) == pytest.approx(1)
        assert sum(fates.results) == pytest.approx(1)
        assert min(*fates.events, *fates.results) >= 0
    assert several[0].results[0] < several[-1].results[0]
