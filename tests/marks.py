"""Marks of parameters."""

import pytest


def full_but(often, names):
    """Parameters that only `make test-all` runs, but for those of `often`."""
    return [pytest.param(name, marks=[] if name in often else pytest.mark.full) for name in names]
