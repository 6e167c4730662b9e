"""Matches entries of the trace and the tool log with the turns and calls that they describe.

A `turn` in these files counts replies in most branches of the harness and executions in one
(AutoMedBench/AutoMedBench, branch eval_vqa, benchmark_runner.py:1002, 1095), so a number alone
proves nothing: an entry belongs to a turn or a call only if all that both of them state agrees.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from ..models import Action, Observation, Turn
from .json_bytes import amount, count, number
from .messages import observation_of

Entry = dict[str, Any]
CallPosition = tuple[int, int]
"""Positions of a turn and of an action in it, both from 0."""
_Position = TypeVar("_Position", bound=Hashable)
_COMPARED_END = 1000
"""Characters at the end of a shortened text that must end the full text; what precedes them may
have been cut or masked."""


class _LogEntry(NamedTuple):
    """An entry of a log, the key that calls are matched by, and the full result if it has one."""

    entry: Entry
    key: Hashable
    result: Observation | None = None


def attach_log_entries(
    turns: Sequence[Turn],
    *,
    replies: Sequence[Entry],
    executions: Sequence[Entry],
    calls: Sequence[Entry],
    warnings: list[str],
) -> list[Turn]:
    """Turns with times, tokens and, if the conversation cut or lost them, the full results.

    `replies` are the trace's api_call events, `executions` the conversation's code_executions or
    the trace's code_exec events, `calls` the entries of the tool log; each in the order in which
    they were written.
    """
    reply_events = _match_replies(turns, replies)
    execution_records = _match_executions(turns, executions)
    log_entries = [_tool_log_entry(call, warnings) for call in calls]
    logged_calls = dict(_match_in_order(turns, log_entries, _action_key))
    completed = []
    for position, turn in enumerate(turns):
        actions = [
            _with_log_entry(
                action,
                execution_records.get((position, slot), {}),
                logged_calls.get((position, slot)),
            )
            for slot, action in enumerate(turn.actions)
        ]
        event = reply_events.get(position, {})
        finish = event.get("finish_reason")
        update = {
            "actions": tuple(actions),
            "time_s": number(event.get("ts")),
            "input_tokens": count(event.get("input_tokens")),
            "output_tokens": count(event.get("output_tokens")),
            "finish_reason": finish if isinstance(finish, str) else turn.finish_reason,
        }
        completed.append(turn.model_copy(update=update))
    return completed


def _with_log_entry(action: Action, execution: Entry, logged: _LogEntry | None) -> Action:
    """The action with its execution time, and the logged result if that says more."""
    update: dict[str, Any] = {}
    if action.kind == "execute":
        seconds = execution.get("exec_time_s")
        if seconds is None and logged is not None:
            seconds = logged.entry.get("exec_time_s")
        update["exec_time_s"] = amount(seconds)
    if logged is not None and logged.result is not None:
        observation = action.observation
        # The conversation may hold only the end of an output, or have lost it.
        if observation is None or len(logged.result.text) > len(observation.text):
            update["observation"] = logged.result
    return action.model_copy(update=update) if update else action


def _match_replies(turns: Sequence[Turn], replies: Sequence[Entry]) -> dict[int, Entry]:
    """The event of each turn's reply, by the turn's position."""

    def agrees(position: int, event: Entry) -> bool:
        turn = turns[position]
        tools, preview = event.get("tool_calls"), event.get("content_preview")
        if isinstance(tools, list) and tools != [action.tool for action in turn.actions]:
            return False
        return not isinstance(preview, str) or turn.text.startswith(preview)

    by_number = []
    for event in replies:
        turn_number = count(event.get("turn"))
        if turn_number is not None and 0 < turn_number <= len(turns):
            by_number.append((turn_number - 1, event))
    in_order = zip(range(len(turns)), replies, strict=False)
    return _better_numbering(by_number, in_order, agrees)


def _match_executions(
    turns: Sequence[Turn], executions: Sequence[Entry]
) -> dict[CallPosition, Entry]:
    """The record of each execution: by its code, else by whichever numbering agrees."""
    with_code = []
    without_code = []
    for execution in executions:
        if isinstance(execution.get("code"), str):
            with_code.append(_LogEntry(execution, execution["code"]))
        else:
            without_code.append(execution)

    def agrees(position: CallPosition, execution: Entry) -> bool:
        turn, slot = position
        return _agrees(_LogEntry(execution, None), turns[turn].actions[slot])

    def executed_code(action: Action) -> str | None:
        return action.code if action.kind == "execute" else None

    positions = [_execution_positions(index, turn) for index, turn in enumerate(turns)]
    by_number = _positions_by_number(positions, without_code)
    all_positions = (position for in_turn in positions for position in in_turn)
    in_order = zip(all_positions, without_code, strict=False)
    matches = _better_numbering(by_number, in_order, agrees)
    # A record with its code says more than any number.
    for position, log_entry in _match_in_order(turns, with_code, executed_code):
        matches[position] = log_entry.entry
    return matches


def _execution_positions(index: int, turn: Turn) -> list[CallPosition]:
    return [(index, slot) for slot, action in enumerate(turn.actions) if action.kind == "execute"]


def _positions_by_number(
    positions: Sequence[Sequence[CallPosition]], executions: Iterable[Entry]
) -> list[tuple[CallPosition, Entry]]:
    """Executions with the calls of the turn that they number, one after the other."""
    pairs: list[tuple[CallPosition, Entry]] = []
    used: dict[int, int] = defaultdict(int)
    for execution in executions:
        turn_number = count(execution.get("turn"))
        if turn_number is None or not 0 < turn_number <= len(positions):
            continue
        in_turn = positions[turn_number - 1]
        if used[turn_number] < len(in_turn):
            pairs.append((in_turn[used[turn_number]], execution))
            used[turn_number] += 1
    return pairs


def _better_numbering(
    by_number: Iterable[tuple[_Position, Entry]],
    in_order: Iterable[tuple[_Position, Entry]],
    agrees: Callable[[_Position, Entry], bool],
) -> dict[_Position, Entry]:
    """The agreeing entries, placed by number or by order, whichever agrees more often."""
    numbered = {position: entry for position, entry in by_number if agrees(position, entry)}
    ordered = {position: entry for position, entry in in_order if agrees(position, entry)}
    return ordered if len(ordered) > len(numbered) else numbered


def _match_in_order(
    turns: Sequence[Turn],
    log_entries: Iterable[_LogEntry],
    action_key: Callable[[Action], Hashable],
) -> Iterator[tuple[CallPosition, _LogEntry]]:
    """Each action with the next log entry of its key that agrees with it."""
    queues: dict[Hashable, deque[_LogEntry]] = defaultdict(deque)
    for log_entry in log_entries:
        if log_entry.key is not None:
            queues[log_entry.key].append(log_entry)
    for position, turn in enumerate(turns):
        for slot, action in enumerate(turn.actions):
            queue = queues.get(action_key(action))
            # Entries that disagree belong to calls that the conversation lost.
            while queue:
                log_entry = queue.popleft()
                if _agrees(log_entry, action):
                    yield (position, slot), log_entry
                    break


def _tool_log_entry(entry: Entry, warnings: list[str]) -> _LogEntry:
    """An entry of the tool log; without arguments it has no key and matches no call."""
    arguments, result = entry.get("arguments"), entry.get("result")
    observation = None
    if isinstance(result, dict) and {"exit_code", "stdout", "stderr"} & set(result):
        observation = observation_of(result, warnings, f"tool log, turn {entry.get('turn')}")
    key = _call_key(entry.get("tool"), arguments) if isinstance(arguments, dict) else None
    return _LogEntry(entry, key, observation)


def _action_key(action: Action) -> Hashable:
    return None if action.arguments is None else _call_key(action.tool, action.arguments)


def _call_key(tool: Any, arguments: Mapping[str, Any]) -> Hashable:
    """The tool with its code, else with all its arguments."""
    code = arguments.get("code")
    if isinstance(code, str):
        return str(tool), code
    return str(tool), json.dumps(arguments, sort_keys=True)


def _agrees(log_entry: _LogEntry, action: Action) -> bool:
    """Whether language, exit code and output agree, as far as both sides state them.

    The conversation keeps the ends of long outputs, so its text ends the full one.
    """
    language, observation = log_entry.entry.get("language"), action.observation
    if isinstance(language, str) and action.language not in (None, language.lower()):
        return False
    if observation is None:
        return True
    result = log_entry.result
    if result is None:
        code = number(log_entry.entry.get("exit_code"))
        return code is None or observation.exit_code is None or code == observation.exit_code
    return (
        result.exit_code == observation.exit_code
        and _is_shortened(observation.stdout, result.stdout)
        and _is_shortened(observation.stderr, result.stderr)
    )


def _is_shortened(text: str, full: str) -> bool:
    """Whether `text` is the full text, or its end."""
    return text == full or (text != "" and full.endswith(text[-_COMPARED_END:]))
