"""Which scorecards are of one run, whatever was done to its files between them.

A run is what is at a path now. The same bytes at several paths are one run and its copies. What was
at a path before is an earlier state of the run there, unless those very bytes are now at another
path: then the run was moved, or a copy of it went on.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

Identity = tuple[str | int | None, ...]
"""What tells a run from others: the hash of its bytes, agent, task, tier and repeat."""
_Place = tuple[Hashable, ...]
"""Where a run is: path, id, agent, task and repeat. A file may hold several runs."""


class RunState(NamedTuple):
    """A run as it was when a scorecard was made."""

    path: str | None
    """Of the conversation."""
    sha256: str | None
    """Of the conversation's bytes."""
    run_id: str | None
    cell: tuple[str | int | None, ...]
    """Agent, task, tier and repeat."""
    identity: Identity | None = None
    """If it is known already."""


def identities(states: Sequence[RunState], bytes_now: Mapping[str, str | None]) -> list[Identity]:
    """The identity of the run of each state, equal for states of one run; the oldest come first.

    `bytes_now`: by path, the hash of the conversation there; None if it is gone. At other paths the
    newest state is taken to be there still.
    """
    lineage = _Lineage(states, bytes_now)
    return [lineage.identity(number) for number in range(len(states))]


class _Lineage:
    """What was where, and what became of it."""

    def __init__(self, states: Sequence[RunState], bytes_now: Mapping[str, str | None]) -> None:
        self._states = states
        ids: dict[str | None, set[str | None]] = defaultdict(set)
        for state in states:
            ids[state.path].add(state.run_id)
        self._places = [_place(number, state) for number, state in enumerate(states)]
        self._contents = [
            _content(number, state, len(ids[state.path]) > 1) for number, state in enumerate(states)
        ]
        self._last: dict[_Place, Identity] = {}
        """What was last at each place."""
        self._present: set[Identity] = set()
        """What is at some place now."""
        self._resolved: dict[Hashable, Identity] = {}
        """Known identities, by place and by content."""
        self._places_of: dict[Identity, list[_Place]] = defaultdict(list)
        """Where each content was."""
        by_path: dict[str | None, list[int]] = defaultdict(list)
        for number, state in enumerate(states):
            if state.identity is not None:
                self._resolved[self._places[number]] = state.identity
                self._resolved[self._contents[number]] = state.identity
                continue
            self._last[self._places[number]] = self._contents[number]
            self._places_of[self._contents[number]].append(self._places[number])
            by_path[state.path].append(number)
        for path, numbers in by_path.items():
            self._note_present(numbers, path in bytes_now, bytes_now.get(path or ""))

    def _note_present(self, numbers: list[int], is_known: bool, sha256: str | None) -> None:
        """Note what is at a path now; `numbers`: the states that it had."""
        if not is_known:
            self._present |= {self._last[self._places[number]] for number in numbers}
            return
        if sha256 is None:
            return
        same_bytes = [number for number in numbers if self._states[number].sha256 == sha256]
        present = {
            self._places[number]: (sha256, *self._contents[number][1:])
            for number in same_bytes or numbers[-1:]
        }
        self._last |= present
        self._present |= set(present.values())

    def identity(self, number: int) -> Identity:
        """The identity of the run of a state."""
        known = self._states[number].identity
        if known is not None:
            return known
        content, place = self._contents[number], self._places[number]
        for key in (content, place):
            if key in self._resolved:
                return self._resolved[key]
        seen = {content}
        while content not in self._present:
            later = self._became(content, place)
            if later is None or later in seen:
                break
            seen.add(later)
            content = later
        return content

    def _became(self, content: Identity, place: _Place) -> Identity | None:
        """The later state of what is nowhere now: at its own place, else where it was moved to."""
        if self._last[place] != content:
            return self._last[place]
        for other in reversed(self._places_of.get(content, ())):
            if self._last[other] != content and self._last[other] in self._present:
                return self._last[other]
        return None


def _place(number: int, state: RunState) -> _Place:
    if not state.path:
        return (number,) if state.sha256 or not state.run_id else (None, state.run_id)
    agent, task, _, repeat = state.cell
    return (os.path.abspath(state.path), state.run_id, agent, task, repeat)


def _content(number: int, state: RunState, shares_file: bool) -> Identity:
    """What is known of a run's bytes, or what stands for them where they are not known."""
    if state.sha256:
        # Runs in one file are told apart by their ids alone.
        return (state.sha256, *state.cell, *([state.run_id, state.path] if shares_file else ()))
    if state.path:
        return (None, *state.cell, state.run_id, os.path.abspath(state.path))
    return (None, state.run_id) if state.run_id else (None, number)
