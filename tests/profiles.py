"""How many examples a property tries, by profile; `SLACKWATER_PROFILE` names the profile."""

import os

EXAMPLES = {
    "ci": 40,  # `make test`
    "all": 100,  # `make test-all`
    "nojit": 40,  # kernels as plain Python, in both
    "mutants": 15,  # `make mutants`, for each mutant
    "trust": 5_000,  # `make trust`; of cases of joins more, see property/strategies.py
}

PROFILE = os.environ.get("SLACKWATER_PROFILE", "ci")
if PROFILE not in EXAMPLES:
    msg = f"SLACKWATER_PROFILE must be one of {', '.join(EXAMPLES)}, got {PROFILE!r}"
    raise ValueError(msg)

PLAIN = PROFILE in ("nojit", "mutants")  # the kernels are plain Python, so slow
MAX_EXAMPLES = EXAMPLES[PROFILE]


def share(fraction: float) -> int:
    """Examples for a property that costs more than most: a fraction of the profile's, at least 1.

    Use as ``@settings(max_examples=profiles.share(0.1))``.
    """
    return max(1, round(MAX_EXAMPLES * fraction))
