"""plan.md and plan.png: the files when they are there, else the text recovered from the code that
wrote it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..models import Action, Plan, Turn
from ..turns.actions import PLAN_NAME, split
from .layout import RunFolder, find_plan

MAX_PLAN_BYTES = 4 * 1024 * 1024
"""What is read of a plan.md; a longer one is cut with a warning."""
_SAVES_IMAGE = re.compile(
    r"-o\s{0,3}\S{0,200}plan\.png|savefig|\.save\(|imwrite|imsave|write_image|to_file|Digraph|graphviz|\bdot\s+-T\s?png|\bmmdc\b|\bconvert\b",
    re.IGNORECASE,
)

_OLD_KEYS = ("old_string", "old_str", "old_text", "search")
_NEW_KEYS = ("new_string", "new_str", "new_text", "replace", "insert_text")
_REFUSED = ("error", "<tool_use_error>", "failed", "traceback", "file not found", "no such file")
_MAX_TEXT = 1_000_000


@dataclass(frozen=True)
class PlanWrite:
    """One change of plan.md. `old` is set for an edit: that text is replaced by `text`."""

    text: str
    append: bool = False
    old: str | None = None
    everywhere: bool = False
    after_line: int | None = None
    """For an insertion: the line after which `text` goes in."""

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
        if self.append:
            return before + self.text
        return self.text


def _succeeded(action: Action) -> bool:
    """Whether an action came back without failing; an answer without exit code must not begin as an
    error."""
    seen = action.observation
    if seen is None or seen.kind not in ("ok", "unknown"):
        return False
    if seen.kind == "unknown" and action.kind in ("write", "edit"):
        return not seen.stdout.lstrip()[:40].lower().startswith(_REFUSED)
    return True


def read_plan(run: RunFolder, turns: Sequence[Turn], warnings: list[str]) -> Plan:
    """The run's plan. When no file came with the run, the text that its successful writes and edits
    add up to."""
    path, image = find_plan(run, "plan.md", warnings), find_plan(run, "plan.png", warnings)
    changes = [
        (turn.index, change)
        for turn in turns
        for action in turn.actions
        for change in _changes(action)
    ]
    turn = changes[-1][0] if changes else None
    image_turn = next(
        (
            t.index
            for t in reversed(turns)
            for a in t.actions
            if _succeeded(a) and writes_plan_image(a)
        ),
        None,
    )
    if path is not None:
        text = _read_text(path, warnings)
        if text is not None:
            return Plan(
                text=text,
                source="file",
                path=path,
                turn=turn,
                image_path=image,
                image_turn=image_turn,
            )
    recovered = ""
    for _, change in changes:
        recovered = change.apply(recovered)[:MAX_PLAN_BYTES]
    if recovered.strip():
        warnings.append(
            "plan: no plan.md came with the run; its text was recovered from the code of turn"
            f" {turn}"
        )
        return Plan(
            text=recovered, source="recovered", turn=turn, image_path=image, image_turn=image_turn
        )
    return Plan(image_path=image, image_turn=image_turn)


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
    return (
        action.kind == "execute"
        and "plan.png" in action.code.lower()
        and bool(_SAVES_IMAGE.search(action.code))
    )


def _changes(action: Action) -> Iterator[PlanWrite]:
    """Every change of a plan.md by this action, in order; none when it failed or was never
    answered."""
    if not _succeeded(action):
        return
    if action.kind in ("write", "edit"):
        if action.path and PLAN_NAME.search(action.path):
            yield from _tool_changes(action)
    elif PLAN_NAME.search(action.code):
        for part in split(action):
            if part.kind == "file" and PLAN_NAME.search(part.path):
                yield PlanWrite(part.text, part.append)


def _tool_changes(action: Action) -> Iterator[PlanWrite]:
    arguments = action.arguments or {}
    command = arguments.get("command")
    if action.kind == "write" or command == "create" or isinstance(arguments.get("file_text"), str):
        yield PlanWrite(action.code)
        return
    edits = arguments.get("edits")
    for edit in edits if isinstance(edits, list) else [arguments]:
        if not isinstance(edit, dict):
            continue
        old = next((edit[key] for key in _OLD_KEYS if isinstance(edit.get(key), str)), None)
        new = next((edit[key] for key in _NEW_KEYS if isinstance(edit.get(key), str)), None)
        line = edit.get("insert_line")
        if isinstance(line, int) and new is not None and line >= 0:
            yield PlanWrite(new if new.endswith("\n") else new + "\n", after_line=line)
        elif old is not None and new is not None:
            # An empty old text is how some tools create a file.
            yield PlanWrite(new, old=old or None, everywhere=edit.get("replace_all") is True)
