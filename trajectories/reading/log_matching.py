"""What trace and tool log say of a run, given to the replies and calls that it belongs to.

A `turn` in these files counts replies in most branches of the harness and executions in one
(AutoMedBench/AutoMedBench, branch eval_vqa, benchmark_runner.py:1002, 1095), so a number alone
proves nothing: an entry is taken for a reply or a call only when all that both of them say agrees.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from ..models import Action, Observation, Turn
from .json_bytes import amount, count, number
from .messages import observation_of

Entry = dict[str, Any]
Place = tuple[int, int]
"""Positions of a turn and of an action in it, both from 0."""
_P = TypeVar("_P", bound=Hashable)
_END = 1000
"""Characters of a kept text that must end the full one; what stands before them may have been cut
or masked."""


class _Record(NamedTuple):
    """An entry of a log, what it is told by, and the result in full where it has one."""

    entry: Entry
    key: Hashable
    full: Observation | None = None


def attach_log_entries(
    turns: Sequence[Turn],
    replies: Sequence[Entry],
    executions: Sequence[Entry],
    calls: Sequence[Entry],
    warnings: list[str],
) -> list[Turn]:
    """Turns with times, tokens and, where the conversation cut or lost them, the full results.

    `replies` are the trace's api_call events, `executions` the conversation's code_executions or
    the trace's code_exec events, `calls` the entries of the tool log; all of them in the order in
    which they were written.
    """
    answered, spent = _answered(turns, replies), _executed(turns, executions)
    logged = dict(_in_order(turns, [_record(e, warnings) for e in calls], _call_of))
    done = []
    for position, turn in enumerate(turns):
        actions = []
        for slot, action in enumerate(turn.actions):
            at = (position, slot)
            found = logged.get(at)
            update: dict[str, Any] = {}
            if action.kind == "execute":
                seconds = spent.get(at, {}).get("exec_time_s")
                update["exec_time_s"] = amount(
                    found.entry.get("exec_time_s") if seconds is None and found else seconds
                )
            full, seen = found and found.full, action.observation
            if full is not None and (seen is None or len(full.text) > len(seen.text)):
                update["observation"] = full
            actions.append(action.model_copy(update=update) if update else action)
        event = answered.get(position, {})
        finish = event.get("finish_reason")
        done.append(
            turn.model_copy(
                update={
                    "actions": tuple(actions),
                    "time_s": number(event.get("ts")),
                    "input_tokens": count(event.get("input_tokens")),
                    "output_tokens": count(event.get("output_tokens")),
                    "finish_reason": finish if isinstance(finish, str) else turn.finish_reason,
                }
            )
        )
    return done


def _answered(turns: Sequence[Turn], replies: Sequence[Entry]) -> dict[int, Entry]:
    """Position of a turn -> the event of its reply."""

    def agrees(position: int, event: Entry) -> bool:
        turn, names, preview = (
            turns[position],
            event.get("tool_calls"),
            event.get("content_preview"),
        )
        if isinstance(names, list) and names != [action.tool for action in turn.actions]:
            return False
        return not isinstance(preview, str) or turn.text.startswith(preview)

    numbered = [
        (n - 1, e)
        for e in replies
        if (n := count(e.get("turn"))) is not None and 0 < n <= len(turns)
    ]
    return _agreeing(numbered, zip(range(len(turns)), replies, strict=False), agrees)


def _executed(turns: Sequence[Turn], executions: Sequence[Entry]) -> dict[Place, Entry]:
    """Place of an action -> the record of its execution: by its code, else by whichever numbering
    agrees."""
    with_code = [_Record(e, e["code"]) for e in executions if isinstance(e.get("code"), str)]
    bare = [e for e in executions if not isinstance(e.get("code"), str)]
    slots = [
        [(position, slot) for slot, action in enumerate(turn.actions) if action.kind == "execute"]
        for position, turn in enumerate(turns)
    ]
    numbered: list[tuple[Place, Entry]] = []
    taken: dict[int, int] = defaultdict(int)
    for entry in bare:
        n = count(entry.get("turn"))
        if n is not None and 0 < n <= len(turns) and taken[n] < len(slots[n - 1]):
            numbered.append((slots[n - 1][taken[n]], entry))
            taken[n] += 1
    ordered = zip((at for places in slots for at in places), bare, strict=False)
    by_number = _agreeing(
        numbered,
        ordered,
        lambda at, entry: _agree(_Record(entry, None), turns[at[0]].actions[at[1]]),
    )
    by_code = _in_order(
        turns, with_code, lambda action: action.code if action.kind == "execute" else None
    )
    return {**by_number, **{at: found.entry for at, found in by_code}}


def _agreeing(
    numbered: Iterable[tuple[_P, Entry]],
    ordered: Iterable[tuple[_P, Entry]],
    agrees: Callable[[_P, Entry], bool],
) -> dict[_P, Entry]:
    """The entries that agree with their places, placed by number or by order, whichever agrees more
    often."""
    by_number, by_order = (
        {p: e for p, e in pairs if agrees(p, e)} for pairs in (numbered, ordered)
    )
    return by_order if len(by_order) > len(by_number) else by_number


def _in_order(
    turns: Sequence[Turn], records: Iterable[_Record], key_of: Callable[[Action], Hashable]
) -> Iterator[tuple[Place, _Record]]:
    """Each action with the next record of its key that agrees with it."""
    waiting: dict[Hashable, deque[_Record]] = defaultdict(deque)
    for record in records:
        if record.key is not None:
            waiting[record.key].append(record)
    for position, turn in enumerate(turns):
        for slot, action in enumerate(turn.actions):
            queue = waiting.get(key_of(action))
            while queue:
                record = queue.popleft()
                if _agree(record, action):
                    yield (position, slot), record
                    break


def _record(entry: Entry, warnings: list[str]) -> _Record:
    """An entry of the tool log; without a key, so that it fits no call, when it does not tell its
    arguments."""
    arguments, result = entry.get("arguments"), entry.get("result")
    full = None
    if isinstance(result, dict) and {"exit_code", "stdout", "stderr"} & set(result):
        full = observation_of(result, warnings, f"tool log, turn {entry.get('turn')}")
    return _Record(
        entry, _call(entry.get("tool"), arguments) if isinstance(arguments, dict) else None, full
    )


def _call_of(action: Action) -> Hashable:
    return None if action.arguments is None else _call(action.tool, action.arguments)


def _call(tool: Any, arguments: Entry) -> Hashable:
    code = arguments.get("code")
    return str(tool), code if isinstance(code, str) else json.dumps(arguments, sort_keys=True)


def _agree(record: _Record, action: Action) -> bool:
    """Whether language, exit code and output, as far as both sides have them, are the same.

    The conversation keeps the ends of long outputs, so that its text ends the full one.
    """
    language, seen = record.entry.get("language"), action.observation
    if (
        isinstance(language, str)
        and action.language is not None
        and language.lower() != action.language
    ):
        return False
    if seen is None:
        return True
    if record.full is None:
        code = number(record.entry.get("exit_code"))
        return code is None or seen.exit_code is None or code == seen.exit_code
    full = record.full
    return (
        full.exit_code == seen.exit_code
        and _ends(full.stdout, seen.stdout)
        and _ends(full.stderr, seen.stderr)
    )


def _ends(full: str, kept: str) -> bool:
    return full == kept or (kept != "" and full.endswith(kept[-_END:]))
