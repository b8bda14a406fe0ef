"""What all properties share."""

import pytest

from slackwater.disorder import rings


@pytest.fixture(autouse=True, scope="module")
def few_buckets():
    """Buckets become wider early: to clear a million takes longer than the rest of a case.

    The properties of `tests/spark/test_operator.py` keep the limit as it is.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rings, "_MOST_BUCKETS", 2**12)
        yield
