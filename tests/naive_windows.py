"""The obviously right version of heartbeats and windows over one stream: lists and loops."""

from dataclasses import dataclass
from math import sqrt


@dataclass(frozen=True)
class Event:
    ts: int
    value: float | int | None
    group: int = 0


def beats(events, distance):
    """Kim, section 3: (released, dropped) with the heartbeat `distance` behind the largest ts.

    What is released together is in (ts, arrival) order.
    """
    heartbeat, top, waiting, released, dropped = None, None, [], [], []
    for number, event in enumerate(events):
        if heartbeat is not None and event.ts < heartbeat:
            dropped.append(number)
            continue
        waiting.append((event.ts, number))
        top = event.ts if top is None else max(top, event.ts)
        heartbeat = top - distance if heartbeat is None else max(heartbeat, top - distance)
        due = sorted(pair for pair in waiting if pair[0] <= heartbeat)
        waiting = [pair for pair in waiting if pair[0] > heartbeat]
        released += [number for _, number in due]
    return released + [number for _, number in sorted(waiting)], dropped


def extents(events, released, length, slide, tuples, open_end):
    """The windows over what was released: (end, group, members), in order."""
    inside = [(events[n].ts, n) for n in released]
    if slide is None or tuples:
        step = slide or 1
        found = []
        for i, (ts, n) in enumerate(inside):
            before = [m for _, m in inside[: i + 1] if events[m].group == events[n].group]
            if tuples:
                members = before[-length:]
            else:
                members = [m for m in before if events[m].ts > ts - length]
            if len(before) % step == 0:
                found.append((ts, events[n].group, members))
        return found
    if not inside:
        return []
    found = []
    first, last = inside[0][0] // slide * slide, inside[-1][0] + length
    for end in range(first, last + slide + 1, slide):
        if open_end:
            members = [n for ts, n in inside if end - length <= ts < end]
        else:
            members = [n for ts, n in inside if end - length < ts <= end]
        by_group = {}
        for n in members:
            by_group.setdefault(events[n].group, []).append(n)
        for own in sorted(by_group.values()):  # by the arrival of the group's first event
            found.append((end, events[own[0]].group, own))
    return found


def aggregate(function, values):
    """A function of values, some of which may be null."""
    known = [v for v in values if v is not None]
    match function:
        case "count":
            return len(known)
        case "first":
            return values[0]
        case "last":
            return values[-1]
    if not known:
        return None
    mean = sum(known) / len(known)
    match function:
        case "sum":
            return sum(known)
        case "avg":
            return mean
        case "min":
            return min(known)
        case "max":
            return max(known)
    if len(known) < 2:
        return None
    return sqrt(sum((v - mean) ** 2 for v in known) / (len(known) - 1))
