"""What a run says, to compare it with the same run exported and imported again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ambjudge.trajectories.importers import IMPORTERS
from ambjudge.trajectories.importers.draft import Draft
from ambjudge.trajectories.importers.exporters import EXPORTERS
from ambjudge.trajectories.importers.saving import save_file, save_run
from ambjudge.trajectories.models import Run, Turn
from ambjudge.trajectories.reading.load import load_run

NOT_IN_ANTHROPIC = ("speaker", "reasoning")
"""What the Messages API has no place for; `import --to` names it."""


def come_back(run: Run, format: str, folder: Path) -> Run:
    """The run, exported to a format and imported again."""
    (draft,) = IMPORTERS.get("conversation").read(run.path)
    assert isinstance(draft, Draft)
    file = save_file(EXPORTERS.get(format)(draft), folder / f"{run.id}.json", force=True)
    (back,) = IMPORTERS.get(format).read(file)
    assert isinstance(back, Draft)
    return load_run(save_run(back, folder / "back" / run.id, file, force=True))


def differences(run: Run, back: Run, format: str) -> Iterator[str]:
    """Where a run that came back differs from the one that went out, in what the format holds."""
    for name in ("brief", "agent", "model", "task", "tier", "track", "repeat", "part_of"):
        if getattr(run, name) != getattr(back, name):
            yield f"{name}: {_both(getattr(run, name), getattr(back, name))}"
    if len(run.turns) != len(back.turns):
        yield f"turns: {len(run.turns)}, back {len(back.turns)}"
        return
    for turn, again in zip(run.turns, back.turns, strict=True):
        facts, facts_again = _turn_facts(turn), _turn_facts(again)
        for name, value in facts.items():
            is_held = format != "anthropic" or name not in NOT_IN_ANTHROPIC
            if is_held and value != facts_again[name]:
                yield f"turn {turn.index}, {name}: {_both(value, facts_again[name])}"


def _turn_facts(turn: Turn) -> dict[str, Any]:
    facts = turn.model_dump(include={"text", "speaker", "reasoning", "replies", "finish_reason"})
    facts["tokens"] = (turn.input_tokens, turn.output_tokens)
    for position, action in enumerate(turn.actions):
        facts[f"call {position}"] = (action.tool, action.kind, action.arguments, action.code)
        observation = action.observation
        facts[f"answer {position}"] = None if observation is None else observation.model_dump()
    facts["calls"] = len(turn.actions)
    return facts


def _both(value: Any, again: Any) -> str:
    return f"{value!r:.300}, back {again!r:.300}"
