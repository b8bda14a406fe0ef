"""Find the same story in three news streams: articles match if their embeddings are similar.

Run it with ``.venv/bin/python examples/similar_news.py``.
"""

import numpy as np
import pyarrow as pa

import slackwater as sw

SOURCES = ("cnn", "reuters", "bbc")
MINUTE = 60_000  # ms
MORNING = 360 * MINUTE
ARTICLES, STORIES, LENGTH = 6_000, 500, 32
rng = np.random.default_rng(1)


def directions(n: int) -> np.ndarray:
    """Return random embeddings of length 1; any two of them are nearly orthogonal."""
    vectors = rng.normal(size=(n, LENGTH))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


stories, happened = directions(STORIES), rng.integers(0, MORNING, STORIES)


def source() -> pa.Table:
    """Return a morning of one source: every story within half an hour, and other articles.

    The crawler finds one article in four some minutes after it appeared.
    """
    others = ARTICLES - STORIES
    lag = rng.integers(0, 30 * MINUTE, STORIES)
    time = np.concatenate([happened + lag, rng.integers(0, MORNING, others)])
    articles = stories + rng.normal(0, 0.05, stories.shape)
    found = time + np.where(rng.random(ARTICLES) < 0.25, rng.exponential(MINUTE, ARTICLES), 0)
    return pa.table({
        "time": time,
        "found": found.astype(np.int64),
        "story": np.concatenate([np.arange(STORIES), np.full(others, -1)]),  # to check the results
        "v": list(np.concatenate([articles, directions(others)]).astype(np.float32)),
    })  # fmt: skip


query = sw.join(
    *(sw.Stream(name, ts="time", window="1 hour", vectors={"v": LENGTH}) for name in SOURCES),
    where="cosine(cnn.v, reuters.v) > 0.8 and cosine(reuters.v, bbc.v) > 0.8"
    " and cosine(cnn.v, bbc.v) > 0.8",
    goal=sw.Recall(0.95, over="1 hour", every="1 minute", granularity="5 seconds"),
)
run = query.replay({name: source() for name in SOURCES}, arrival="found")
found = np.stack([run.results[f"{name}_story"].to_numpy() for name in SOURCES])
right = (found == found[0]).all(axis=0) & (found[0] >= 0)
k = np.median(run.slack["k"]) / MINUTE
print(f"{3 * ARTICLES:,} articles, {STORIES} stories that all three sources report")
print(f"found in all three: {len(set(found[0, right]))}; by mistake: {np.sum(~right)}")
print(f"lost because of late articles: {run.metrics.lost}, counted by the join itself")
print(f"median wait {k:.1f} minutes; the longest delay was {run.metrics.max_delay / MINUTE:.1f}")
