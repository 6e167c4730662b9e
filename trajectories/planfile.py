"""plan.md and plan.png: the files when they are there, else the text recovered from the code that wrote it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from .layout import find_plan
from .models import Action, Plan, Turn
from .planwrites import changes_of_plan, succeeded

MAX_PLAN_BYTES = 4 * 1024 * 1024
"""What is read of a plan.md; a longer one is cut with a warning."""
_SAVES_IMAGE = re.compile(
    r"-o\s{0,3}\S{0,200}plan\.png|savefig|\.save\(|imwrite|imsave|write_image|to_file|Digraph|graphviz|\bdot\s+-T\s?png|\bmmdc\b|\bconvert\b",
    re.IGNORECASE,
)


def read_plan(folder: Path, turns: Sequence[Turn], warnings: list[str]) -> Plan:
    """The run's plan. When no file came with the run, the text that its successful writes and edits add up to."""
    path, image = find_plan(folder, "plan.md", warnings), find_plan(folder, "plan.png", warnings)
    changes = [(turn.index, change) for turn in turns for action in turn.actions for change in changes_of_plan(action)]
    turn = changes[-1][0] if changes else None
    image_turn = next(
        (t.index for t in reversed(turns) for a in t.actions if succeeded(a) and writes_plan_image(a)), None
    )
    if path is not None:
        text = _read_text(path, warnings)
        if text is not None:
            return Plan(text=text, source="file", path=path, turn=turn, image_path=image, image_turn=image_turn)
    recovered = ""
    for _, change in changes:
        recovered = change.apply(recovered)[:MAX_PLAN_BYTES]
    if recovered.strip():
        warnings.append(f"plan: no plan.md came with the run; its text was recovered from the code of turn {turn}")
        return Plan(text=recovered, source="recovered", turn=turn, image_path=image, image_turn=image_turn)
    return Plan(image_path=image, image_turn=image_turn)


def _read_text(path: Path, warnings: list[str]) -> str | None:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_PLAN_BYTES + 1)
    except OSError as error:
        warnings.append(f"plan: {path.name} cannot be read: {error.strerror}")
        return None
    if len(data) > MAX_PLAN_BYTES:
        warnings.append(f"plan: plan.md is longer than {MAX_PLAN_BYTES:,} bytes; the rest was left out")
        data = data[:MAX_PLAN_BYTES]
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        warnings.append("plan: plan.md is not UTF-8; broken characters were replaced")
        return data.decode("utf-8-sig", errors="replace")


def plan_writes(action: Action) -> Iterator[tuple[str, bool]]:
    """(text, added to what was there) for each write of a plan.md by an action that did not fail; edits are left out."""
    for change in changes_of_plan(action):
        if change.old is None:
            yield change.text, change.append or change.after_line is not None


def writes_plan_image(action: Action) -> bool:
    """Whether the action's code saves a plan.png."""
    return action.kind == "execute" and "plan.png" in action.code.lower() and bool(_SAVES_IMAGE.search(action.code))
