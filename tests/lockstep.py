"""Several shards of one query, micro-batch by micro-batch, as Spark runs them: and the oracle."""

from itertools import islice
from math import inf
from typing import NamedTuple

import numpy as np

from helpers import FEW_BUCKETS, by_key, members, schemas, shard_batch, shards
from naive import clocks, truth
from slackwater.engine.common_slack import Clocks
from slackwater.engine.join import JoinEngine
from slackwater.engine.shard_report import Reports, ShardReport
from slackwater.engine.snapshot import restored
from slackwater.kernels.records import BEFORE
from slackwater.stats.arriving import coarse_counts


def micro_batches(events, sizes):
    """The events cut into micro-batches of these sizes, over and over."""
    rest, number = iter(events), 0
    while batch := list(islice(rest, sizes[number % len(sizes)])):
        yield batch
        number += 1


def staircase(case, events, local):
    """The clocks of a micro-batch as every shard gets them; moves `local` on."""
    valid, rose, delays = set(case.valid), [], []
    for e in (e for e in events if e in valid):
        if e.ts > local.get(e.stream, -inf):
            local[e.stream] = e.ts
            rose.append(e)
        delays.append(local[e.stream] - e.ts)
    stream = np.array([e.stream for e in rose], np.uint8)
    times, counts = np.array([e.ts for e in rose], np.int64), coarse_counts(np.array(delays, int))
    return Clocks(stream, times, max(delays, default=0), counts)


class Lockstep:
    """`n` shards that share K, each with its own `controller` (None: that of the goal).

    One shard shares with nobody: it is the engine alone.

    They restart from a snapshot behind each micro-batch if `restart`, and repeat it from there if
    `retry`: nothing may differ.
    """

    def __init__(self, query, case, n, controllers=None, restart=False, retry=False, **options):
        self.query, self.case, self.n = query, case, n
        self.home = options.pop("home", by_key)
        self.options = {"limits": FEW_BUCKETS, "common_clock": n > 1, "sharing": n} | options
        self.controllers = controllers or [None] * n
        self.restart, self.retry = restart, retry
        self.arriving = shards(case, n, self.home)
        self.local, self.reports, self.results = {}, Reports(), []
        first = shard_batch(case, [])
        self.engines = [self.new(shard, first) for shard in range(n)]

    def new(self, shard, batch):
        options = {"controller": self.controllers[shard], **self.options}
        return JoinEngine(self.query, schemas(self.query, batch), **options)

    def run(self, events, commands=()):
        """A micro-batch; the times of its results in time, over all shards."""
        clocks = staircase(self.case, events, self.local)
        saved = [engine.snapshot() for engine in self.engines] if self.retry else []
        found = self._once(self.engines, events, clocks, commands)
        for shard, data in enumerate(saved):
            again = self._restored(shard, data)
            assert self._shard(again, shard, events, clocks, commands) == found[shard]
        self.reports = Reports(ShardReport.from_bytes(report) for _, report in found if report)
        if self.restart:
            self.engines = [
                self._restored(shard, engine.snapshot())
                for shard, engine in enumerate(self.engines)
            ]
        assert all(engine.metrics().is_balanced for engine in self.engines)
        new = [result for results, _ in found for result in results]
        self.results += new
        return [ts for ts, _ in new]

    def _restored(self, shard, data):
        return restored(data, self.new(shard, shard_batch(self.case, [])))

    def _once(self, engines, events, clocks, commands):
        return [
            self._shard(engine, shard, events, clocks, commands)
            for shard, engine in enumerate(engines)
        ]

    def _shard(self, engine, shard, events, clocks, commands):
        """What a shard gives and reports."""
        common = engine.common_slack
        if common is not None:
            common.learn(self.reports if common.needs_reports else Reports())
        for command in commands:
            command.obey(engine)
        if common is not None:
            common.begin(clocks)
        arrivals = {e.arrival for e in events}
        own = [e for e in self.arriving[shard] if e.arrival in arrivals]
        output = engine.feed(shard_batch(self.case, own))
        for more in () if common is None else common.end(None):
            output.extend(more)
        if any(command.flush for command in commands):
            output.extend(engine.flush())
        report = b"" if common is None else common.report().to_bytes()
        return members(output.table, self.case.m), report

    @property
    def reached(self):
        """S of each shard."""
        return [engine.reorder.sync_time for engine in self.engines]

    @property
    def slacks(self):
        """K of each shard."""
        return [engine.reorder.slack for engine in self.engines]


# ---- the oracle


class Shared(NamedTuple):
    """What shards with a common slack produce, S at the end of each micro-batch, and K."""

    results: list
    reached: list
    slacks: list


def naive_shared(case, sizes, scripts, every, idle_after=None, home=by_key):
    """Shards whose own controllers want K by `scripts`, one K per adaptation interval each.

    `clocks` is the oracle of C. All shards know it, so whose events they are does not matter: S at
    the end of a micro-batch is C - K, if that is more than before, with the K that all have agreed
    on. Inside it a shard's S is never beyond that, and its K never below, but in the first one.
    """
    valid = set(case.valid)
    known = clocks(case.valid, [0] * len(case.valid), case.m, idle_after=idle_after)
    common = {e: c for e, (_, c) in zip(case.valid, known, strict=True)}
    agreed, s, c, top, due, local = 0, -inf, -inf, -inf, None, {}
    wanted, before, reached, slacks = [None] * len(scripts), {}, [], []
    for batch in micro_batches(case.events, sizes):
        events = [e for e in batch if e in valid]
        agreed = max(agreed if k is None else k for k in wanted)
        least, is_first = agreed, top == -inf
        if is_first:
            agreed = max(agreed, staircase(case, events, dict(local)).largest_delay)
        staircase(case, events, local)
        c = max([c, *(common[e] for e in events)])
        end = max(s, c - agreed)
        tops, dues = [top] * len(scripts), [due] * len(scripts)
        for i, script in enumerate(scripts):
            own, k = s, least
            for e in events:
                before[i, e] = own
                own = max(own, min(common[e] - k, end))
                if dues[i] is None:
                    dues[i] = (e.ts // every + 1) * every
                tops[i] = max(tops[i], e.ts)
                if tops[i] >= dues[i]:
                    wanted[i] = script[tops[i] // every % len(script)]
                    k = max(least, wanted[i])
                    dues[i] = (tops[i] // every + 1) * every
        s, top, due = end, tops[0], dues[0]
        reached.append(BEFORE if s == -inf else s)
        slacks.append(agreed)
    results = []
    for r in truth(case.valid, *case.query):
        last, t = max(r, key=lambda e: e.arrival), max(r).ts
        (i,) = set.intersection(*(set(home(case, e, len(scripts))) for e in r))
        if t > before[i, last] or t == before[i, last] == last.ts:
            results.append(r)
    return Shared(results, reached, slacks)
