"""Files of pre-trained weights: what a learning estimator knows, with the recipe it was made by.

The file is JSON. Its recipe has the kind of estimator, the numbers of streams, cells and values,
and how the network was trained; weights of another recipe are refused.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from slackwater.compensation.mlp import MlpEstimator
from slackwater.compensation.observation import Estimator
from slackwater.errors import DataError, QueryError

_FORMAT = 1
_MAY_DIFFER = "steps"  # how long it was trained


def save_weights(estimator: Estimator | None, path: str | Path) -> None:
    """Write what the estimator has learnt.

    Raises
    ------
    QueryError
        If it is not one that has weights.
    """
    known = _with_weights(estimator).state()
    text = json.dumps({"format": _FORMAT, "recipe": known["recipe"], "state": known})
    Path(path).write_text(text, encoding="utf-8")


def load_weights(estimator: Estimator | None, path: str | Path) -> None:
    """Let the estimator continue from what another one has learnt.

    Raises
    ------
    QueryError
        If it has no weights, or was made by another recipe.
    DataError
        If the file has no weights.
    """
    own = _with_weights(estimator)
    try:
        saved = json.loads(Path(path).read_text(encoding="utf-8"))
        is_known = saved["format"] == _FORMAT
        recipe, state = saved["recipe"], saved["state"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        msg = f"{path} must be a file that save_weights wrote: {error}"
        raise DataError(msg) from error
    if not is_known:
        msg = f"{path} must have weights of format {_FORMAT}, got {saved['format']!r}"
        raise DataError(msg)
    wanted = own.recipe
    for name in sorted((wanted.keys() | recipe.keys()) - {_MAY_DIFFER}):
        if wanted.get(name) != recipe.get(name):
            msg = (
                f"weights must be made by the recipe of this query, {name} = {wanted.get(name)!r}, "
                f"got {recipe.get(name)!r} in {path}"
            )
            raise QueryError(msg)
    own.resume(state)


def _with_weights(estimator: Any) -> MlpEstimator:
    if not isinstance(estimator, MlpEstimator):
        msg = "weights need compensate='mlp' or 'mlp-elbo', other estimators have none"
        raise QueryError(msg)
    return estimator
