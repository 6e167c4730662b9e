"""ATIF trajectories (Agent Trajectory Interchange Format), as Harbor writes them for every agent.

A step of the agent is a turn. The results in its observation answer its calls by
`source_call_id`, else in order. Terminus types what its reply holds and gets one screen as the
result: that is one call, whether the trajectory lists the keystrokes or has them in the reply only.
A trajectory that was cut when the agent's context was full goes on in the files that it names.
Which files of a trial are one run, and its results, is known to `harbor_trial`. Source: Harbor
docs/rfcs/0001-trajectory-format.md (ATIF v1.0 to v1.8), `harbor/models/trajectories`, tests/golden.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import InputError
from ..models import AnswerKind
from ..reading.answer_marks import stated_kind
from ..reading.json_bytes import amount, read_bytes, read_json, text_or_none
from ..reading.layout import file_in
from ..reading.messages import content_text
from . import Importer
from .draft import Call, Draft, parse_call
from .fields import as_id, as_object, as_objects, first_of
from .files import source_name
from .harbor_trial import Trial, add_trial, trial_of, without_transcript
from .recognise import has_keys
from .terminal_bench import keystrokes
from .usage import usage_tokens

_EXPECTED = "expected an object with `schema_version` and `steps` of `source` and `message`"
_SOURCES = ("agent", "user", "system")
_NAMED_FILE = re.compile(r'"(?:continued_trajectory_ref|trajectory_path)"\s*:\s*"([^"\\]{1,400})"')
_MAX_CONTINUATIONS = 100
"""Files that a trajectory goes on in."""
_TOTALS = {
    "input_tokens": "total_prompt_tokens",
    "output_tokens": "total_completion_tokens",
    "cost_usd": "total_cost_usd",
}
"""Totals of a draft as `final_metrics` names them."""


class _Document(NamedTuple):
    """One trajectory, and the file in which it stands."""

    data: dict[str, Any]
    path: Path
    n_copied: int = 0
    """First steps that repeat the trajectory before it: it resumes that session."""

    @property
    def steps(self) -> list[dict[str, Any]]:
        return as_objects(self.data.get("steps"))


class _OtherAgent(NamedTuple):
    """A trajectory that is part of another one."""

    name: str
    data: dict[str, Any]
    path: Path


def read(path: Path) -> Iterator[Draft | InputError]:
    """The run of the file, or of the trial that it begins, and those of other agents within it.

    None for a file that another one names, and for the further files of a trial.
    """
    trial = trial_of(path)
    if trial is not None and trial.result_file == path:
        yield from _missing_transcript(trial, path)
        return
    named = _named_files(path.parent, path.parent.stat().st_mtime_ns)
    if path.name.removesuffix(".gz") in named:
        return
    trajectories = () if trial is None else trial.trajectories
    if trial is not None and path == trial.user_trajectory:
        if not trajectories:  # the agent has a log of its own
            yield from _simulated_user(trial, path)
        return
    if trial is None or path not in trajectories:
        trajectories = (path,)
    if path == trajectories[0]:
        yield from _runs(list(_documents(trajectories)), source_name(path), None)
        if trial is not None and trial.user_trajectory is not None:
            yield from _simulated_user(trial, trial.user_trajectory)


def _simulated_user(trial: Trial, path: Path) -> Iterator[Draft | InputError]:
    """What the simulated user of a trial did: a part of the run."""
    main = trial.name or trial.folder.name
    yield from _part(f"{main}-user", as_object(read_json(path)), path, main)


def _missing_transcript(trial: Trial, path: Path) -> Iterator[InputError]:
    """The error of a trial that left nothing of what its agent did."""
    exception = without_transcript(trial)
    if exception is not None:
        name = (trial.name or trial.folder.name)[:80]
        yield InputError(
            f"trial {name!r} left no transcript ({exception[:80]})",
            "there is nothing to judge",
            path,
        )


def _documents(trajectories: tuple[Path, ...]) -> Iterator[_Document]:
    """The trajectories of the steps of a trial, in order."""
    before: list[dict[str, Any]] = []
    for path in trajectories:
        data = as_object(read_json(path))
        steps = as_objects(data.get("steps"))
        yield _Document(data, path, _n_copied(steps, before))
        before = steps


def _n_copied(steps: list[dict[str, Any]], before: list[dict[str, Any]]) -> int:
    """The number of first steps that repeat an earlier trajectory; 0 unless the agent acts there.

    Trajectories that begin with the same prompts are different sessions.
    """
    n = 0
    for step, earlier in zip(steps, before, strict=False):
        if any(step.get(name) != earlier.get(name) for name in ("source", "message", "timestamp")):
            break
        n += 1
    return n if any(step.get("source") == "agent" for step in steps[:n]) else 0


def _runs(
    documents: list[_Document], name: str, part_of: str | None
) -> Iterator[Draft | InputError]:
    """The run of a trajectory, or of those of several steps, and of those within it."""
    first = documents[0]
    for document in documents:
        if not any(step.get("source") in _SOURCES for step in document.steps):
            raise InputError("is not an ATIF trajectory", _EXPECTED, document.path)
    agent = as_object(first.data.get("agent"))
    draft = Draft(
        as_id(first.data.get("session_id")) or name,
        "atif",
        part_of=part_of,
        agent=text_or_none(agent.get("name")),
        model=text_or_none(agent.get("model_name")),
        has_tools=bool(agent.get("tool_definitions")),
    )
    draft.origin["schema_version"] = first.data.get("schema_version")
    if agent.get("tool_definitions"):
        draft.lost["list of tool definitions"] += 1
    side_steps: dict[str, list[dict[str, Any]]] = {}
    parts: list[_Document] = []
    totals: list[dict[str, float | None]] = []
    for document in documents:
        if document is not first:
            draft.files_beside += (document.path,)
        session = [document, *_continuations(draft, document)]
        for part in session:
            _add_steps(draft, part, side_steps)
        if document.n_copied and totals:
            totals.pop()  # this session's totals hold those of the one that it resumes
        totals.append(_session_totals(draft, session))
        parts += session
    draft.add_totals(**_sum_totals(totals, side_steps))
    if part_of is None:
        add_trial(draft, first.path)
    others = [*_side_agents(draft, side_steps, first), *_sub_agents(draft, parts)]
    yield draft
    for other in others:
        yield from _part(other.name, other.data, other.path, draft.name)


def _add_steps(
    draft: Draft, document: _Document, side_steps: dict[str, list[dict[str, Any]]]
) -> None:
    """Add the steps of this run's agent; those of its sub-agents go to `side_steps`.

    Harbor keeps the sub-agents of Claude Code among the steps of its session.
    """
    for step in document.steps[document.n_copied :]:
        extra = as_object(step.get("extra"))
        if extra.get("is_sidechain") is True:
            side_steps.setdefault(as_id(extra.get("agent_id")) or "1", []).append(step)
        else:
            _add_step(draft, step)


def _session_totals(draft: Draft, session: list[_Document]) -> dict[str, float | None]:
    """The totals of a session; those of its continuations go on from part to part."""
    totals: dict[str, float | None] = {}
    for part in session:
        metrics = as_object(part.data.get("final_metrics"))
        draft.add_outcomes(metrics.get("extra"), "final_metrics.extra")
        for name, key in _TOTALS.items():
            stated = amount(metrics.get(key))
            totals[name] = max(stated or 0, totals.get(name) or 0) if stated else totals.get(name)
    return totals


def _sum_totals(
    sessions: list[dict[str, float | None]], side_steps: dict[str, list[dict[str, Any]]]
) -> dict[str, float]:
    """The totals of this agent, without those of sub-agents whose steps stand among its own.

    A total counts only if every session states it.
    """
    sums: dict[str, float] = {}
    steps = [step for group in side_steps.values() for step in group]
    for name in _TOTALS:
        stated = [totals.get(name) for totals in sessions]
        numbers = [n for n in stated if n is not None]
        if len(numbers) == len(stated):
            sums[name] = max(0.0, sum(numbers) - sum(_step_amount(step, name) for step in steps))
    return sums


def _step_amount(step: dict[str, Any], name: str) -> float:
    metrics = as_object(step.get("metrics"))
    if name == "cost_usd":
        return amount(metrics.get("cost_usd")) or 0.0
    tokens = usage_tokens(metrics)
    counted = None if tokens is None else {"input_tokens": tokens.input}.get(name, tokens.output)
    return counted or 0


def _side_agents(
    draft: Draft, side_steps: dict[str, list[dict[str, Any]]], first: _Document
) -> Iterator[_OtherAgent]:
    """The sub-agents whose steps stand among those of the run."""
    for agent_id, steps in side_steps.items():
        own = [{**step, "extra": {**step["extra"], "is_sidechain": False}} for step in steps]
        if any(step.get("source") == "agent" for step in own):
            data = {"agent": first.data.get("agent"), "steps": own}
            yield _OtherAgent(f"{draft.name}-agent-{agent_id}", data, first.path)
        else:
            draft.lost["messages of sub-agents that never replied"] += len(steps)


def _sub_agents(draft: Draft, parts: list[_Document]) -> Iterator[_OtherAgent]:
    """The sub-agents in the trajectories, then those in files beside them."""
    position = 0
    embedded: set[str | None] = set()
    for part in parts:
        for data in as_objects(part.data.get("subagent_trajectories")):
            position += 1
            embedded.add(as_id(data.get("trajectory_id")))
            yield _OtherAgent(_sub_agent_name(draft, data, position), data, part.path)
    references = [(part.path, reference) for part in parts for reference in _references(part)]
    for path, reference in references:
        position += 1
        file = _beside(path, reference.get("trajectory_path"))
        if file is None:
            is_embedded = as_id(reference.get("trajectory_id")) in embedded - {None}
            draft.lost["trajectories of sub-agents"] += not is_embedded
        elif file not in draft.files_beside:
            draft.files_beside += (file,)
            data = as_object(read_json(file))
            yield _OtherAgent(_sub_agent_name(draft, data, position), data, file)


def _sub_agent_name(draft: Draft, data: dict[str, Any], position: int) -> str:
    return as_id(data.get("trajectory_id")) or f"{draft.name}-agent-{position}"


def _part(
    name: str, data: dict[str, Any], path: Path, part_of: str
) -> Iterator[Draft | InputError]:
    """The run of another agent."""
    try:
        yield from _runs([_Document({**data, "session_id": name}, path)], name, part_of)
    except InputError as error:
        yield error


def _references(document: _Document) -> list[dict[str, Any]]:
    """The sub-agents that the results of a trajectory refer to."""
    references: list[dict[str, Any]] = []
    for step in document.steps[document.n_copied :]:
        for result in _results(step):
            value = result.get("subagent_trajectory_ref")
            references += as_objects(value if isinstance(value, list) else [value])
    return references


def _beside(path: Path, name: Any) -> Path | None:
    """The file of this name beside a trajectory; None without one or outside the folder."""
    if not text_or_none(name):
        return None
    file = file_in(path.parent, Path(name).name)
    return None if file == path else file


@lru_cache(maxsize=4)
def _named_files(folder: Path, _modified: int) -> frozenset[str]:
    """The files of a folder that other ones name as their continuation or as a sub-agent's."""
    names: dict[str, set[str]] = {}
    for file in sorted(folder.glob("*.json*")):
        try:
            text = read_bytes(file).decode("utf-8", "replace")
        except InputError:
            continue
        own = file.name.removesuffix(".gz")
        names[own] = {Path(name).name for name in _NAMED_FILE.findall(text)} - {own}
    named = set().union(*names.values())
    # Files that only name each other begin runs all the same.
    reached = [name for name in names if name not in named]
    parts: set[str] = set()
    while reached:
        for name in names.get(reached.pop(), ()):
            if name not in parts:
                parts.add(name)
                reached.append(name)
    return frozenset(parts)


def _continuations(draft: Draft, document: _Document) -> Iterator[_Document]:
    """The trajectories of the files that a trajectory goes on in; they lie beside it.

    The context that they copy is in the run already.
    """
    data, path = document.data, document.path
    names_read = {path.name}
    while name := text_or_none(data.get("continued_trajectory_ref")):
        file = _beside(path, name)
        if file is None or file.name in names_read or len(names_read) > _MAX_CONTINUATIONS:
            draft.lost["continuations"] += 1
            return
        draft.files_beside += (file,)
        names_read.add(file.name)
        data = as_object(read_json(file))
        steps = as_objects(data.get("steps"))
        new = [step for step in steps if step.get("is_copied_context") is not True]
        yield _Document({**data, "steps": new}, file)


def _add_step(draft: Draft, step: dict[str, Any]) -> None:
    source, message = step.get("source"), step.get("message")
    ts = draft.elapsed(step.get("timestamp"))
    if step.get("is_copied_context") is True and source == "agent":
        draft.context("assistant", message, len(as_objects(step.get("tool_calls"))))
        return
    calls: list[Call] = []
    if source == "agent":
        calls = _calls(step)
        metrics = as_object(step.get("metrics"))
        draft.model = draft.model or text_or_none(step.get("model_name"))
        draft.assistant(
            message,
            calls,
            reasoning=text_or_none(step.get("reasoning_content")),
            ts=ts,
            tokens=usage_tokens(metrics),
            cost_usd=metrics.get("cost_usd"),
        )
    elif source == "system":
        draft.system(message)
    elif source == "user":
        draft.user(message, ts=ts)
    else:
        draft.lost["steps without a known source"] += 1
        return
    for result in _results(step):
        _add_result(draft, result, step, bool(calls), ts)


def _add_result(
    draft: Draft, result: dict[str, Any], step: dict[str, Any], has_calls: bool, ts: float | None
) -> None:
    content = result.get("content")
    if content is None and not result.get("source_call_id"):
        return
    if not has_calls:
        draft.user(content)
        return
    extra = {**_step_extra(step), **as_object(result.get("extra"))}
    # What Harbor's converter of Claude Code kept of the session's own record.
    tool_use_result = as_object(as_object(extra.get("tool_result_metadata")).get("tool_use_result"))
    is_interrupted = tool_use_result.get("interrupted") is True
    kind: AnswerKind | None = "cancelled" if is_interrupted else None
    draft.result(
        as_id(result.get("source_call_id")),
        content,
        exit_code=first_of({**tool_use_result, **extra}, "exit_code", "exitCode"),
        kind=kind or stated_kind(result) or stated_kind(extra),
    )


def _results(step: dict[str, Any]) -> list[dict[str, Any]]:
    return as_objects(as_object(step.get("observation")).get("results"))


def _step_extra(step: dict[str, Any]) -> dict[str, Any]:
    """What a converter noted of a step, which counts for its only result."""
    return as_object(step.get("extra")) if len(_results(step)) == 1 else {}


def _calls(step: dict[str, Any]) -> list[Call]:
    """The calls of a step; keystrokes that one screen answers are one call."""
    calls = [parse_call(call) for call in as_objects(step.get("tool_calls"))]
    results = _results(step)
    if len(results) != 1 or results[0].get("source_call_id") or results[0].get("content") is None:
        return calls
    if not calls:
        keys = keystrokes(content_text(step.get("message")))
        call_id = f"step-{as_id(step.get('step_id'))}"
        return [Call("terminal", {"keystrokes": keys}, call_id)] if keys else []
    typed = [as_object(call.arguments).get("keystrokes") for call in calls]
    if len(calls) > 1 and all(isinstance(keys, str) for keys in typed):
        return [Call(calls[0].name, {"keystrokes": "".join(map(str, typed))}, calls[0].id)]
    return calls


IMPORTER = Importer(
    read,
    (".json",),
    has_keys(
        "schema_version steps.source",
        "steps.step_id steps.source",
        "trial_name task_name trial_uri agent_info",
    ),
)
