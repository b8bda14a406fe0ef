"""Arrays of Spark as vectors: the same results and rejects as those of the embedded engine."""

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from spark.streams import (
    collected,
    finish,
    in_parts,
    is_balanced,
    observed,
    replayed,
    sources,
    write,
)

LENGTH = 4


def articles(seed):
    """Vectors of which some are null, hold a null or are too short."""
    rng = np.random.default_rng(seed)
    vectors = [list(v) for v in rng.normal(size=(90, LENGTH))]
    for n, bad in {7: None, 30: [1.0] * 3, 31: [1.0, None, 1.0, 1.0], 62: []}.items():
        vectors[n] = bad
    ts, kind = np.arange(90) * 10, pa.list_(pa.float32())
    return pa.table({"ts": ts, "id": range(90), "v": pa.array(vectors, kind)})


@pytest.mark.full
def test_arrays_are_compared_as_vectors(spark, tmp_path):
    tables = {"a": articles(1), "b": articles(2)}
    for name, table in tables.items():
        write(tmp_path / name, in_parts(table, 2))
    streams = [sw.Stream(name, "ts", "100 ms", vectors={"v": LENGTH}) for name in "ab"]
    query = sw.join(*streams, where="cosine(a.v, b.v) > 0.8", goal=sw.Slack("1 s"))
    tagged = query.stream(sources(spark, tmp_path), shards=2, rejects=True, at_end="flush")
    told = observed(finish(tagged, tmp_path))
    assert all(map(is_balanced, told))
    assert told[-1]["rejected"] == {
        "bad_time": 0, "null_key": 0, "null_in_where": 4, "too_far_in_the_future": 0,
        "bad_vector": 4,
    }  # fmt: skip
    stored = spark.read.parquet(f"{tmp_path}/out")
    expected = replayed(query, tables, arrival="ts")
    assert expected
    assert collected(sw.results(stored)) == expected
    rejected = {(r.stream, r.reason) for r in sw.rejects(stored).collect()}
    assert rejected == {(s, reason) for s in "ab" for reason in ("null in where", "bad vector")}
