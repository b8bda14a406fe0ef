"""What `explain` writes about kinds of joins: when rows come, and what the goal sets."""

from __future__ import annotations

from slackwater.query.goals import MaxSlack, Recall, Slack
from slackwater.query.join import JoinQuery
from slackwater.query.join_kinds import WITH_PAIRS, unmatched_target

_NAMES = {
    "inner": "join", "left": "left outer join", "right": "right outer join",
    "full": "full outer join", "semi": "semi join", "anti": "anti join", "asof": "as-of join",
}  # fmt: skip


def is_plain(query: JoinQuery) -> bool:
    """Whether it is an inner join in order."""
    return query.how == "inner" and query.emit == "ordered"


def name_of(query: JoinQuery) -> str:
    """Name the kind of a join, with its article."""
    name = _NAMES[query.how]
    return f"An {name}" if name[0] == "a" else f"A {name}"


def _row_of(query: JoinQuery) -> str:
    """Name a row whose members are there."""
    if query.how == "semi":
        return "row"
    return "pair" if len(query.names) == 2 else "result"


def when_rows_come(query: JoinQuery) -> list[str]:
    """Say which rows there are, and when each of them is given out."""
    if is_plain(query):
        return ["A result comes when the slowest stream is K past its time."]
    eager, left = query.emit == "eager", query.names[0]
    sentences = []
    if query.how in WITH_PAIRS:
        last = "second" if len(query.names) == 2 else "last"
        when = (
            f"with its {last} event, in no order of time"
            if eager
            else "in the order of times, when the join's clock, K behind, is there"
        )
        sentences.append(f"A {_row_of(query)} comes {when}.")
    clock = "the slowest stream is K" if eager else "the join's clock, K behind, is"
    if query.how == "asof":
        return [
            f"Each event of {left} has one row, with the nearest event of {query.names[1]} that is "
            f"at most {query.tolerance} away ({query.direction}), or nulls.",
            f"It comes when {clock} past its time.",
        ]
    if query.how == "semi":
        when = "with its first partner" if eager else "at the time of its first pair, K behind"
        return [f"Each event of {left} that has a partner has one row, which comes {when}."]
    if not any(query.preserved):
        return sentences
    kept = " or ".join(n for n, keeps in zip(query.names, query.preserved, strict=True) if keeps)
    return [
        *sentences,
        f"An event of {kept} that has no partner has a row of its own. That is a decision: it "
        f"comes when {clock} past the end of the event's window.",
    ]


def what_the_goal_sets(query: JoinQuery) -> list[str]:
    """Say what is chosen, and what can be wrong with which share; nothing for a plain join."""
    if is_plain(query):
        return []
    keeps_only = query.emit == "eager" and not any(query.preserved)
    what = "how long events are kept beyond their windows" if keeps_only else "K"
    goal = query.goal
    if not isinstance(goal, Recall):
        fixed = f"{goal.length}, fixed" if isinstance(goal, Slack) else "0"
        chosen = "the largest delay so far" if isinstance(goal, MaxSlack) else fixed
        return [f"{what[0].upper()}{what[1:]} is {chosen}.", *_what_can_go_wrong(query)]
    sentences, over = [], f"over any {goal.over}"
    if query.how == "asof":
        sentences.append(f"At least {goal.target:.6g} of the rows are right at once, {over}.")
    elif query.how != "anti":
        of = f"{_row_of(query)}s"
        how = "found" if query.emit == "eager" else "in time"
        cost = "how long events are kept" if query.emit == "eager" else "K"
        sentences.append(
            f"At least {goal.target:.6g} of the true {of} are {how}, {over}: this sets {cost}."
        )
    target = unmatched_target(query)
    if target is not None:
        sentences.append(
            f"At least {target:.6g} of the rows without partner are right, {over}: this sets K."
        )
    elif query.how in ("left", "right", "full"):
        sentences.append(
            "Nothing is asked of the rows without partner: they wait as long as pairs need "
            "(unmatched= asks for a share of right ones)."
        )
    return sentences + _what_can_go_wrong(query)


def _what_can_go_wrong(query: JoinQuery) -> list[str]:
    sentences = []
    if query.how in WITH_PAIRS or query.how == "semi":
        lost = "is lost if its first event is forgotten when the second one comes"
        if len(query.names) > 2:
            lost = "is lost if one of its events is forgotten when the last one comes"
        late = "is late, or lost, if an event comes more than K late"
        sentences.append(f"A {_row_of(query)} {lost if query.emit == 'eager' else late}.")
    if any(query.preserved) and query.how != "asof":
        sentences.append("A row without partner is wrong if the partner comes after it.")
    if query.how == "asof":
        sentences.append("A row is wrong if a nearer event comes after it.")
    if not any(query.preserved):
        return sentences
    if query.late != "emit":
        return [*sentences, 'What turns out wrong is counted, not corrected (late = "emit").']
    change = "update" if query.how == "asof" else "delete"
    by = "result_id" if query.result_id else "all its columns"
    return [
        *sentences,
        f"It is then corrected: a row with change = {change}, which names the wrong one by {by}.",
    ]
