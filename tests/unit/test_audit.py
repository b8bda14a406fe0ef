"""What tools/audit.py makes of pip-audit's answers."""

import pytest

from audit import CLEAN, UNKNOWN, VULNERABLE, verdict

FINE = {"name": "numpy", "version": "2.4.6", "vulns": []}
HOLE = {"id": "PYSEC-1", "fix_versions": ["1.1", "2.0"], "aliases": [], "description": "…"}
BAD = {"name": "holey", "version": "1.0", "vulns": [HOLE]}
ASKED_IN_VAIN = {"name": "private", "skip_reason": "Dependency not found on PyPI"}


@pytest.mark.parametrize(
    ("packages", "status", "messages"),
    [
        ([FINE, FINE], CLEAN, "audit: 2 packages, no known vulnerability"),
        ([FINE, BAD], VULNERABLE, "audit: holey 1.0: PYSEC-1, mended in 1.1, 2.0"),
        ([ASKED_IN_VAIN, BAD], VULNERABLE, "audit: holey 1.0: PYSEC-1, mended in 1.1, 2.0"),
        ([FINE, ASKED_IN_VAIN], UNKNOWN, "audit: could not be looked up: private"),
    ],
)
@pytest.mark.parametrize("if_reachable", [False, True])
def test_what_is_known_is_told_and_what_is_not_is_not_called_clean(
    packages, status, messages, if_reachable
):
    assert verdict(packages, if_reachable) == (status, [messages])


@pytest.mark.parametrize("packages", [[], [ASKED_IN_VAIN]])
def test_only_where_nobody_can_be_asked_that_may_be_no_failure(packages):
    messages = ["audit: advisories cannot be reached from here, nothing was looked up"]
    assert verdict(packages, if_reachable=False) == (UNKNOWN, messages)
    assert verdict(packages, if_reachable=True) == (CLEAN, messages)
