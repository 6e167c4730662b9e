"""Reads plan.md and plan.png; without a plan.md, recovers the text from the code that wrote it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..models import Action, Plan, Turn
from ..turns.actions import PLAN_NAME, split
from .layout import RunFolder, find_plan

MAX_PLAN_BYTES = 4 * 1024 * 1024
"""Bytes read of a plan.md; a longer one is cut, with a warning."""
_MAX_TEXT = 1_000_000
"""Characters that one edit may add."""
_SAVES_IMAGE = re.compile(
    r"-o\s{0,3}\S{0,200}plan\.png|savefig|\.save\(|imwrite|imsave|write_image|to_file|Digraph"
    r"|graphviz|\bdot\s+-T\s?png|\bmmdc\b|\bconvert\b",
    re.IGNORECASE,
)
_OLD_KEYS = ("old_string", "old_str", "old_text", "search")
_NEW_KEYS = ("new_string", "new_str", "new_text", "replace", "insert_text")
_REFUSED = ("error", "<tool_use_error>", "failed", "traceback", "file not found", "no such file")


@dataclass(frozen=True)
class PlanWrite:
    """One change of plan.md. With `old`, it is an edit: `text` replaces that text."""

    text: str
    append: bool = False
    old: str | None = None
    everywhere: bool = False
    """For an edit: whether every occurrence is replaced, not only the first."""
    after_line: int | None = None
    """For an insertion: the line after which `text` is inserted."""

    def apply(self, before: str) -> str:
        """The plan after this change; an edit whose old text is not there changes nothing."""
        if self.old is not None:
            times = before.count(self.old) if self.everywhere else 1
            if not self.old or times * len(self.text) > _MAX_TEXT:
                return before
            return before.replace(self.old, self.text, times)
        if self.after_line is not None:
            lines = before.splitlines(keepends=True)
            return "".join([*lines[: self.after_line], self.text, *lines[self.after_line :]])
        return before + self.text if self.append else self.text


def read_plan(run: RunFolder, turns: Sequence[Turn], warnings: list[str]) -> Plan:
    """The run's plan: its file, else the text that its successful writes and edits add up to."""
    path, image = find_plan(run, "plan.md", warnings), find_plan(run, "plan.png", warnings)
    writes = [
        (turn.index, write)
        for turn in turns
        for action in turn.actions
        for write in _plan_writes(action)
    ]
    last_turn = writes[-1][0] if writes else None
    image_turn = _last_image_turn(turns)
    text = None if path is None else _read_text(path, warnings)
    if text is not None:
        return Plan(
            text=text,
            source="file",
            path=path,
            turn=last_turn,
            image_path=image,
            image_turn=image_turn,
        )
    recovered = ""
    for _, write in writes:
        # Appending again and again must not fill the memory.
        recovered = write.apply(recovered)[:MAX_PLAN_BYTES]
    if not recovered.strip():
        return Plan(image_path=image, image_turn=image_turn)
    warnings.append(
        "plan: no plan.md came with the run; its text was recovered from the code of turn"
        f" {last_turn}"
    )
    return Plan(
        text=recovered, source="recovered", turn=last_turn, image_path=image, image_turn=image_turn
    )


def _last_image_turn(turns: Sequence[Turn]) -> int | None:
    for turn in reversed(turns):
        if any(_succeeded(action) and writes_plan_image(action) for action in turn.actions):
            return turn.index
    return None


def _succeeded(action: Action) -> bool:
    """Whether an action was answered and did not fail.

    Without an exit code, the answer to a write or edit must not begin like an error.
    """
    observation = action.observation
    if observation is None or observation.kind not in ("ok", "unknown"):
        return False
    if observation.kind == "unknown" and action.kind in ("write", "edit"):
        return not observation.stdout.lstrip()[:40].lower().startswith(_REFUSED)
    return True


def _read_text(path: Path, warnings: list[str]) -> str | None:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_PLAN_BYTES + 1)
    except OSError as error:
        warnings.append(f"plan: {path.name} cannot be read: {error.strerror}")
        return None
    if len(data) > MAX_PLAN_BYTES:
        warnings.append(
            f"plan: plan.md is longer than {MAX_PLAN_BYTES:,} bytes; the rest was left out"
        )
        data = data[:MAX_PLAN_BYTES]
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        warnings.append("plan: plan.md is not UTF-8; broken characters were replaced")
        return data.decode("utf-8-sig", errors="replace")


def writes_plan_image(action: Action) -> bool:
    """Whether the action's code saves a plan.png."""
    if action.kind != "execute" or "plan.png" not in action.code.lower():
        return False
    return _SAVES_IMAGE.search(action.code) is not None


def _plan_writes(action: Action) -> Iterator[PlanWrite]:
    """Every change of a plan.md by this action, in order; none unless it succeeded."""
    if not _succeeded(action):
        return
    if action.kind in ("write", "edit"):
        if action.path and PLAN_NAME.search(action.path):
            yield from _tool_writes(action)
    elif PLAN_NAME.search(action.code):
        for part in split(action):
            if part.kind == "file" and PLAN_NAME.search(part.path):
                yield PlanWrite(part.text, part.append)


def _tool_writes(action: Action) -> Iterator[PlanWrite]:
    """The changes made by a tool that writes or edits files."""
    arguments = action.arguments or {}
    creates = arguments.get("command") == "create" or isinstance(arguments.get("file_text"), str)
    if action.kind == "write" or creates:
        yield PlanWrite(action.code)
        return
    edits = arguments.get("edits")
    for edit in edits if isinstance(edits, list) else [arguments]:
        if not isinstance(edit, dict):
            continue
        old, new = _first_string(edit, _OLD_KEYS), _first_string(edit, _NEW_KEYS)
        line = edit.get("insert_line")
        if isinstance(line, int) and new is not None and line >= 0:
            yield PlanWrite(new if new.endswith("\n") else new + "\n", after_line=line)
        elif old is not None and new is not None:
            # Some tools create a file by replacing an empty text.
            yield PlanWrite(new, old=old or None, everywhere=edit.get("replace_all") is True)


def _first_string(edit: dict[str, Any], keys: Sequence[str]) -> str | None:
    for key in keys:
        if isinstance(edit.get(key), str):
            return str(edit[key])
    return None
