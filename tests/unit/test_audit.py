"""What tools/audit.py makes of pip-audit's answers."""

import pytest

from audit import CLEAN, UNKNOWN, VULNERABLE, verdict

FINE = {"name": "numpy", "version": "2.4.6", "vulns": []}
HOLE = {"id": "PYSEC-1", "fix_versions": ["1.1", "2.0"], "aliases": [], "description": "…"}
BAD = {"name": "holey", "version": "1.0", "vulns": [HOLE]}
ASKED_IN_VAIN = {"name": "private", "skip_reason": "Dependency not found on PyPI"}


@pytest.mark.parametrize(
    ("packages", "status", "told"),
    [
        ([FINE, FINE], CLEAN, "audit: 2 packages, no known vulnerability"),
        ([FINE, BAD], VULNERABLE, "audit: holey 1.0: PYSEC-1, mended in 1.1, 2.0"),
        ([ASKED_IN_VAIN, BAD], VULNERABLE, "audit: holey 1.0: PYSEC-1, mended in 1.1, 2.0"),
        ([FINE, ASKED_IN_VAIN], UNKNOWN, "audit: could not be looked up: private"),
    ],
)
@pytest.mark.parametrize("if_reachable", [False, True])
def test_what_is_known_is_told_and_what_is_not_is_not_called_clean(
    packages, status, told, if_reachable
):
    assert verdict(packages, if_reachable) == (status, [told])


@pytest.mark.parametrize("packages", [[], [ASKED_IN_VAIN]])
def test_only_where_nobody_can_be_asked_that_may_be_no_failure(packages):
    told = ["audit: advisories cannot be reached from here, nothing was looked up"]
    assert verdict(packages, if_reachable=False) == (UNKNOWN, told)
    assert verdict(packages, if_reachable=True) == (CLEAN, told)
