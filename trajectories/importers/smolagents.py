"""Memory of smolagents: the steps of an agent, alone or in the result of a run (`steps`).

An action step is a turn: what the model wrote, its calls, and what came back. The code of a
CodeAgent is a call of `python_interpreter`. A planning step is a turn without calls. What the model
was shown before each step repeats the steps. Source: smolagents 1.26.0 `memory.py`
(`get_full_steps`), `agents.py` (`RunResult.dict`), `utils.py` (`AgentError.dict`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..reading.answer_marks import kind_of_error
from ..reading.json_bytes import number, text_or_none
from ..reading.messages import content_text, is_readable_call
from . import Importer
from .draft import Call, Draft, parse_call
from .fields import as_id, as_object, as_objects, unwrap_text
from .files import read_runs
from .recognise import has_keys
from .usage import sum_tokens, usage_tokens

_EXPECTED = "expected steps of smolagents (`agent.memory.get_full_steps()`), or a result of a run"
_INTERPRETER = "python_interpreter"
_FINAL = "final_answer"


def read(path: Path) -> Iterator[Draft | InputError]:
    """Every run of the file."""
    return read_runs(path, _is_step, _draft)


def _is_step(value: Any) -> bool:
    step = as_object(value)
    is_action = "step_number" in step and not {"tool_calls", "model_output"}.isdisjoint(step)
    is_plan = "plan" in step and "model_output_message" in step
    is_task = "task" in step and "task_images" in step
    return is_action or is_plan or is_task or set(step) in ({"system_prompt"}, {"output"})


def _draft(value: Any, name: str, path: Path, location: str) -> Draft:
    header = as_object(value)
    steps = value if isinstance(value, list) else header.get("steps", header.get("messages"))
    if not isinstance(steps, list) or not any(map(_is_step, steps)):
        raise InputError(f"{location}is not a memory of smolagents", _EXPECTED, path)
    draft = Draft(as_id(header.get("id")) or name, "smolagents", agent="smolagents")
    _start(draft, steps)
    for position, step in enumerate(steps):
        if not _is_step(step):
            raise InputError(
                f"{location}step {position} has an unknown shape: "
                f"{', '.join(sorted(as_object(step)))[:80] or 'no object'}",
                _EXPECTED,
                path,
            )
        _add(draft, step)
    draft.add_outcomes(header.get("state"), "", "state")
    draft.add_totals(**sum_tokens([usage_tokens(header.get("token_usage"))]))
    draft.wall_time_s = number(as_object(header.get("timing")).get("duration"))
    if "output" in header and not draft.submitted:
        draft.origin["output"] = header["output"]
    return draft


def _start(draft: Draft, steps: list[Any]) -> None:
    """Give the system prompt: if no step has it, the first input of the model does."""
    prompts = [step["system_prompt"] for step in map(as_object, steps) if "system_prompt" in step]
    if prompts:
        draft.system(prompts[0])
        return
    for step in as_objects(steps):
        for message in as_objects(step.get("model_input_messages")):
            if message.get("role") == "system":
                draft.system(unwrap_text(message.get("content")))
                return


def _add(draft: Draft, step: dict[str, Any]) -> None:
    timing = as_object(step.get("timing"))
    draft.elapsed(timing.get("start_time"))
    ts = draft.elapsed(timing.get("end_time"))
    if "task" in step:
        draft.user(step["task"])
        draft.lost["images of the task"] += _n_images(step, "task_images")
    elif "plan" in step:
        _add_reply(draft, step, step["plan"], [], ts)
    elif "step_number" in step:
        _add_action(draft, step, ts)


def _n_images(step: dict[str, Any], key: str) -> int:
    images = step.get(key)
    return len(images) if isinstance(images, list) else 0


def _add_reply(
    draft: Draft, step: dict[str, Any], content: Any, calls: list[Call], ts: float | None
) -> None:
    message = as_object(step.get("model_output_message"))
    raw = as_object(message.get("raw"))
    draft.model = draft.model or text_or_none(raw.get("model"))
    draft.assistant(
        unwrap_text(content),
        calls,
        reasoning=text_or_none(message.get("reasoning_content")),
        ts=ts,
        tokens=usage_tokens(step.get("token_usage") or message.get("token_usage")),
    )


def _add_action(draft: Draft, step: dict[str, Any], ts: float | None) -> None:
    stated_calls = as_objects(step.get("tool_calls"))
    calls = [_call(call) for call in stated_calls if is_readable_call(call)]
    for _ in range(len(stated_calls) - len(calls)):
        draft.count_unread_call()
    error = as_object(step.get("error"))
    content = step.get("model_output")
    if content is None:
        content = as_object(step.get("model_output_message")).get("content")
    if content is None and not calls and error:  # the model itself failed
        draft.lost["steps in which the model did not reply"] += 1
        draft.add_outcomes(error, "step", "error")
        return
    _add_reply(draft, step, content, calls, ts)
    _add_results(draft, step, calls, error, ts)
    if step.get("is_final_answer") is True:
        draft.submitted = True
    draft.lost["images in tool results"] += _n_images(step, "observations_images")


def _call(call: dict[str, Any]) -> Call:
    """A call; the code of a CodeAgent is the argument itself."""
    parsed = parse_call(call)
    if parsed.name == _INTERPRETER and isinstance(parsed.arguments, str):
        parsed.arguments = {"language": "python", "code": parsed.arguments}
    return parsed


def _add_results(
    draft: Draft, step: dict[str, Any], calls: list[Call], error: dict[str, Any], ts: float | None
) -> None:
    """What came back from the calls of a step: one text, which the first call has."""
    observations, reason = step.get("observations"), content_text(error.get("message"))
    kind = kind_of_error(error)
    if not calls:
        if error:  # the reply could not be parsed, and the model is told so
            draft.user(f"Error:\n{reason}")
        return
    if len(calls) > 1:
        draft.odd["results of several calls, which stand as one"] += 1
    output = observations
    if output is None and calls[0].name == _FINAL and "action_output" in step:
        answer = step["action_output"]
        output = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    if output is None and not error:
        return
    draft.result(calls[0].id, content_text(output), stderr=reason, kind=kind, ts=ts)


IMPORTER = Importer(
    read,
    (".json", ".jsonl"),
    has_keys(
        "step_number model_output observations",
        "steps.step_number steps.model_output steps.observations",
        "messages.step_number messages.model_output messages.observations",
        "task task_images",
        "steps.task steps.task_images",
    ),
)
