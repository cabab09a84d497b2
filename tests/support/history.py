"""Histories of single keys under concurrent requests, and the search for an order that explains them.

An object is a register. What a client did to one key is a step with a beginning, an end, and a rule that
says which states may follow a given one, if the answer that came back is to be true. A history is explained
(it is linearizable) if its steps can be put into one order that each step's rule agrees with, and in which
no step comes before one that ended before it began.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from hashlib import md5
from typing import NamedTuple


def etag_of(body: bytes) -> str:
    return f'"{md5(body).hexdigest()}"'


def etag_of_parts(parts: list[bytes]) -> str:
    digests = b"".join(md5(part).digest() for part in parts)
    return f'"{md5(digests).hexdigest()}-{len(parts)}"'


@dataclass(eq=False)
class Version:
    """One write's object. No two are the same, whatever their bytes are."""

    body: bytes
    # None for a file that S3 did not write, until it was seen.
    etag: str | None
    # Metadata that tells which write it was; None for a file's.
    writer: str | None

    @cached_property
    def plain_etag(self) -> str:
        """The ETag that a copy of it gets."""
        return etag_of(self.body)

    def has_etag(self, etag: str) -> bool:
        return etag.startswith('"foreign-') if self.etag is None else etag == self.etag

    def __repr__(self) -> str:
        return f"<{self.writer or 'by hand'}: {len(self.body)} bytes, {self.etag or 'foreign'}>"


class State(NamedTuple):
    """A key between two steps."""

    version: Version | None = None
    # (id, "completed" or "aborted") of this key's uploads that are over.
    uploads: frozenset[tuple[str, str]] = frozenset()
    # (id, what the key had when it was created) of uploads that are to be completed with a
    # condition.
    noted: frozenset[tuple[str, Version | None]] = frozenset()


@dataclass(eq=False)
class Step:
    key: str
    label: str
    start: float
    end: float
    # The states that may follow; none if the answer cannot have come in this one.
    rule: Callable[[State], list[State]]
    # A step of the same request that comes first.
    after: "Step | None" = None
    writes: bool = False
    # What a write has made.
    makes: Version | None = None


class NotExplained(AssertionError):
    """No order of the steps makes all answers true."""


def reading(
    key: str, label: str, start: float, end: float, is_true: Callable[[Version | None], bool]
) -> Step:
    return Step(key, label, start, end, lambda state: [state] if is_true(state.version) else [])


def explain(key: str, initial: State, steps: list[Step]) -> set[State]:
    """All states that the key may be in after `steps`; fails if there is none.

    A depth-first search. A read that is true now is taken at once: it changes nothing, so an order with the
    read later remains one when it is moved here. What is left to try are the orders of overlapping writes.
    """
    steps = sorted(steps, key=lambda step: (step.start, step.end))
    numbers = {id(step): number for number, step in enumerate(steps)}
    finals: set[State] = set()
    seen: set[tuple[int, State]] = set()
    todo = [(0, initial)]
    furthest = 0
    while todo:
        done, state = todo.pop()
        if (done, state) in seen:
            continue
        seen.add((done, state))
        furthest = max(furthest, done, key=int.bit_count)
        if done == (1 << len(steps)) - 1:
            finals.add(state)
            continue
        following = []
        for number in _next_steps(steps, numbers, done):
            states = steps[number].rule(state)
            if states == [state] and not steps[number].writes:
                following = [(done | 1 << number, state)]
                break
            following += [(done | 1 << number, after) for after in states]
        todo += following
    if not finals:
        raise NotExplained(_report(key, initial, steps, furthest))
    return finals


def _next_steps(steps: list[Step], numbers: dict[int, int], done: int) -> list[int]:
    """The steps that are not done and that no other such step ended before."""
    earliest_end, found = float("inf"), []
    for number, step in enumerate(steps):
        if done >> number & 1:
            continue
        if step.start > earliest_end:
            break
        earliest_end = min(earliest_end, step.end)
        if step.after is None or done >> numbers[id(step.after)] & 1:
            found.append(number)
    return [number for number in found if steps[number].start <= earliest_end]


def _report(key: str, initial: State, steps: list[Step], furthest: int) -> str:
    zero = steps[0].start
    lines = [f"no order explains what happened to {key!r}, which was {initial.version} at first"]
    for number, step in enumerate(steps):
        mark = " " if furthest >> number & 1 else "?"
        lines.append(
            f"{mark} {(step.start - zero) * 1e3:9.3f} .. {(step.end - zero) * 1e3:9.3f} ms  {step.label}"
        )
    lines.append("(the longest order that was found leaves those marked ? out)")
    return "\n".join(lines)
