"""A pytest plugin: how many examples each property tried, as a table at the end.

Hypothesis calls the test below its decorator once per example; so do we, and count. A test that
generates its cases itself says how many: ``record_property("examples", n)``.
"""

import time
from functools import wraps

import pytest

import profiles

EXAMPLES, SECONDS = "examples", "cpu seconds"
KINDS = ("determinism", "differential")  # the markers that the totals are told of


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    handle = getattr(getattr(item, "obj", None), "hypothesis", None)
    passed = 0
    if handle is not None:
        test = handle.inner_test

        @wraps(test)
        def counted(*args, **kwargs):
            nonlocal passed
            test(*args, **kwargs)
            passed += 1

        handle.inner_test = counted
    began = time.process_time()
    try:
        return (yield)
    finally:
        if handle is not None:
            handle.inner_test = test
            item.user_properties.append((EXAMPLES, passed))
        item.user_properties.append((SECONDS, time.process_time() - began))
        item.user_properties += [(kind, 1) for kind in KINDS if item.get_closest_marker(kind)]


def pytest_terminal_summary(terminalreporter, config):
    if profiles.PROFILE != "trust":
        return
    ended = [r for o in ("passed", "failed") for r in terminalreporter.stats.get(o, [])]
    rows = [(r.nodeid, r.outcome, dict(r.user_properties)) for r in ended]
    rows = [row for row in rows if EXAMPLES in row[2]]
    if not rows:
        return
    terminalreporter.section(f"examples, seed {config.getoption('hypothesis_seed')}")
    for nodeid, outcome, told in sorted(rows):
        kinds = ", ".join(kind for kind in KINDS if kind in told)
        terminalreporter.write_line(
            f"{told[EXAMPLES]:>9,}  {told[SECONDS]:>7.1f} s  {outcome}  {nodeid}  {kinds}".rstrip()
        )
    for kind in KINDS:
        told_of_it = [told[EXAMPLES] for _, _, told in rows if kind in told]
        terminalreporter.write_line(f"{sum(told_of_it):>9,}  {kind}: {len(told_of_it)} properties")
    terminalreporter.write_line(f"{sum(told[EXAMPLES] for *_, told in rows):>9,}  in all")
