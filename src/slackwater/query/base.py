"""What all kinds of queries share, so that stages need not test for a kind.

`JoinQuery`, `WindowQuery` and `AggregateQuery` are the kinds. An engine, the Spark stages and the
command line read these properties of a query; what belongs to one kind only is in its module.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from slackwater.errors import QueryError
from slackwater.query.stream import Stream, by_stream, named_inputs
from slackwater.query.units import Duration, TimeUnit, as_plain

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from slackwater.query.goals import Goal
    from slackwater.query.keys import Key

AtEnd = Literal["hold", "flush"]
QueryKind = Literal["join", "window", "aggregate"]


class Query(ABC):
    """A description of what to compute: frozen, validated, serialisable."""

    kind: ClassVar[QueryKind]
    needs_arrival: ClassVar[bool] = False  # results depend on when rows arrived
    has_slack: ClassVar[bool] = True  # there is a K that can be set by hand
    adds_up_shards: ClassVar[bool] = False  # results are made from what all shards have counted
    shares_delays: ClassVar[bool] = False  # all shards must know the largest delay of any
    numbers_are_times: ClassVar[bool] = True  # a number in the time column is a time in `unit`

    streams: tuple[Stream, ...]
    goal: Goal
    unit: TimeUnit
    strict: bool

    @property
    def has_recall(self) -> bool:
        """Whether single results can be lost, and are counted."""
        return False

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the streams, in order."""
        return tuple(stream.name for stream in self.streams)

    @property
    @abstractmethod
    def keys(self) -> list[Key]:
        """The keys by which events are compared or grouped."""

    @property
    def has_ids(self) -> bool:
        """Whether results have identities."""
        return False

    @property
    def preserved(self) -> tuple[bool, ...]:
        """For each stream, whether its events give a row also without a partner."""
        return (False,) * len(self.streams)

    def shows(self, stream: int) -> bool:  # noqa: ARG002  all are, but of semi and anti joins
        """Whether results have columns of this stream."""
        return True

    @property
    @abstractmethod
    def single_shard_reason(self) -> str | None:
        """Which part of the query needs all events in one shard; None: they may be spread."""

    @property
    def single_shard(self) -> bool:
        """Whether all events must be in one shard."""
        return self.single_shard_reason is not None

    @property
    def shares_slack(self) -> bool:
        """Whether all shards are to have one K."""
        return False

    @property
    def has_fixed_slack(self) -> bool:
        """Whether K is what the goal says, whatever arrives."""
        return False

    def result_schema(
        self, schemas: Mapping[str, pa.Schema] | None = None, /, **streams: pa.Schema
    ) -> pa.Schema:
        """Return the columns of the results, for streams with these columns.

        Parameters
        ----------
        schemas
            The Arrow schema of each stream, by stream name; for streams whose names are not given
            as keywords.
        **streams
            The same schemas as keywords: ``query.result_schema(quotes=a, trades=b)``.

        Returns
        -------
        pyarrow.Schema
            The schema of ``replay(...).results``; that of `stream` on Spark follows from it.

        Raises
        ------
        QueryError
            If the query names columns that the streams do not have, or if two columns of the
            results would have one name.
        DataError
            If the schema of a stream is missing.
        """
        from slackwater.engine.result_schema import result_schema  # the front door, on call

        given = by_stream(self.streams, named_inputs(self.streams, schemas, streams))
        return result_schema(self, given)  # type: ignore[arg-type]  # one of the three kinds

    # ---- as data

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that JSON can hold.

        Returns
        -------
        dict
            What `from_dict` takes.

        Raises
        ------
        QueryError
            If `where` is a function.
        """
        return as_plain(self._plain())

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Return the query that `to_dict` described.

        Parameters
        ----------
        plain
            What `to_dict` returned, or the same read from JSON.

        Returns
        -------
        Query
            Equal to the one that was described.
        """
        return cls(**cls._options(dict(plain)))

    @abstractmethod
    def _plain(self) -> dict[str, Any]:
        """The options, in values that `as_plain` knows."""

    @classmethod
    @abstractmethod
    def _options(cls, plain: dict[str, Any]) -> dict[str, Any]:
        """The options that `_plain` wrote down."""

    def __str__(self) -> str:
        from slackwater.sql.printer import printed  # the front door

        return printed(self)  # type: ignore[arg-type]  # one of the three kinds

    def stream(
        self,
        inputs: Mapping[str, DataFrame] | DataFrame | None = None,
        /,
        arrival: str | None = None,
        shards: int | None = None,
        *,
        at_end: AtEnd = "hold",
        control: str | None = None,
        idle_after: Duration | None = None,
        max_future_skew: Duration | None = "1 hour",
        rejects: bool = False,
        shared: str | None = None,
        **streams: DataFrame,
    ) -> DataFrame:
        """Run the query on Spark DataFrames, streaming or batch; the result is of the same kind.

        Parameters
        ----------
        inputs
            One DataFrame per stream, by stream name; for streams whose names are not given as
            keywords. The only stream of a window may be given as it is.
        arrival
            The column with the arrival of a row: rows are processed in the order (arrival, stream,
            ts, row). With one shard, a fixed K or ``slack_scope="shard"`` the results do not depend
            on how Spark cuts the input into micro-batches; with one K for several shards they are
            the same for the same cuts. Without it a micro-batch is one instant, and its rows are
            sorted by ts before they are judged late; a batch DataFrame then gives the exact join.
        shards
            The number of shards of the join; by default one per shuffle partition. With one shard
            it is the papers' join, event by event; with several, each is a join of its slice, with
            a common clock and one K for all (`slack_scope` of `join`).
        at_end
            What happens to waiting events when all sources are quiet: ``"hold"`` them for the next
            run, or ``"flush"`` them, as a last run should. Batch DataFrames are always flushed.
        control
            A directory that is watched for commands, one JSON object per file:
            ``{"set": {"slack": "1 s"}}``, ``{"finished": ["trades"]}``, ``{"flush": true}``.
        idle_after
            A stream whose local time stands still while another moves on by this is idle: it stops
            holding back the join until it sends rows again, which may then be late. None: the join
            waits for it without a limit.
        max_future_skew
            A time that is later than the row's arrival (where both are timestamps, else: than the
            time of the micro-batch) by more than this is rejected, so that one broken clock does
            not make everything else late. None disables the check. Batch DataFrames are checked
            against arrivals only.
        rejects
            Return the rejected rows too: the results keep their columns, behind them is a column
            ``rejected`` (stream, reason, row as JSON), which is null for results. `results` and
            `rejects` take the two apart.
        shared
            A folder, best beside the checkpoint, that all executors can write to: there the shards
            of a streaming join leave what they have learnt for each other, so that all have one K
            (``slack_scope="query"``). Any path or URI that `pyarrow.fs` knows. None: a folder
            ``slackwater`` in the session's ``spark.sql.streaming.checkpointLocation``; if that is
            not set and the goal needs to learn, each shard chooses its own K, and the log says so.
        **streams
            The same DataFrames as keywords: ``query.stream(quotes=a, trades=b)``.

        Returns
        -------
        DataFrame
            The results; columns as in `result_schema`.

        Raises
        ------
        DataError
            If a DataFrame or a column is missing.
        SparkError
            If the session or the mixture of DataFrames cannot be used.
        """
        from slackwater.spark.api import Options, stream

        frames = named_inputs(self.streams, inputs, streams)
        options = Options(
            arrival, shards, at_end, control, idle_after, max_future_skew, rejects, shared
        )
        return stream(self, frames, options)  # type: ignore[arg-type]  # one of the three kinds

    def with_(self, **others: Any) -> Callable[[DataFrame], DataFrame]:
        """Return the join as a step of a chain: ``trades.transform(query.with_(quotes=quotes))``.

        Parameters
        ----------
        **others
            The DataFrames of all streams but one, and options of `stream`.

        Returns
        -------
        Callable
            A function of the DataFrame of the remaining stream, for `DataFrame.transform`.

        Raises
        ------
        QueryError
            If not exactly one stream is left for the chain.
        """
        frames = {name: others.pop(name) for name in self.names if name in others}
        left = [name for name in self.names if name not in frames]
        if len(left) != 1:
            got = ", ".join(frames) or "none"
            msg = f"with_ takes the DataFrames of all streams but one, got {got}"
            raise QueryError(msg)
        return lambda frame: self.stream({left[0]: frame, **frames}, **others)
