"""What a call of an agent's tool writes, edits or says, by the shape of its arguments.

Harnesses name their tools as they like. What a call is shows in its arguments: two texts of which
one replaces the other, a patch, a file with its text, a message to the user.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..models import Action, Run, Turn

_OLD_KEYS = ("old_string", "old_str", "old_text", "old_code", "search", "find", "old")
_NEW_KEYS = ("new_string", "new_str", "new_text", "new_code", "replace", "replacement", "new")
_WRITTEN_KEYS = (
    "content",
    "contents",
    "file_text",
    "text",
    "new_content",
    "code",
    "data",
    "source",
)
_INSERTED_KEYS = ("insert_text", "new_str", "new_string", "text", "content")
_LINE_KEYS = ("insert_line", "line", "line_number", "after_line")
_PATCH_KEYS = ("patch", "diff", "input", "unified_diff", "patch_text")
_PATH_KEYS = ("file_path", "path", "filename", "notebook_path", "file", "target_file", "filepath")
_MESSAGE_KEYS = (
    "message",
    "text",
    "answer",
    "final_answer",
    "result",
    "response",
    "summary",
    "final_thought",
    "output",
    "content",
    "submission",
    "reason",
    "question",
    "thought",
)
_MESSAGE_TOOL = re.compile(
    r"(?i)(?:^|_|\b)(?:finish|finished|final|final_?answer|answer|submit|submission|done|complete"
    r"|completion|message|respond|response|reply|say|send_message|message_user|notify_user|ask_user"
    r"|talk|end|terminate|exit|conclude|report|transfer_to_human)(?:$|_|\b)"
)
_PATCH = re.compile(
    r"(?m)^(?:\*\*\* (?:Begin Patch|(?:Add|Update|Delete) File: )|--- \S|diff --git |@@ |\+\+\+ \S"
    r"|[AMD] \S{1,300}$|<{5,9} ?SEARCH\b)"
)
_EDIT_LISTS = ("edits", "changes", "replacements")
_FEW = 8
"""Arguments of a call that says something; more are a form that a text is only part of."""


@dataclass(frozen=True)
class FileEdit:
    """One change of a file: `old` became `new`; `old` is None for a file or lines that are new."""

    path: str
    old: str | None
    new: str
    used: tuple[str, ...]
    """Names of the arguments that it was read from."""
    is_patch: bool = False
    """`new` is a patch that shows old and new lines itself."""


def file_edits(action: Action) -> tuple[FileEdit, ...]:
    """The changes that a call makes to files; none for a call of another kind."""
    arguments = action.arguments or {}
    if action.kind in ("execute", "read", "search") and not _first(arguments, _OLD_KEYS)[0]:
        return ()
    path_key, path = _first(arguments, _PATH_KEYS)
    path = path or action.path or ""
    path_keys = (path_key,) if path_key else ()
    for key in _EDIT_LISTS:
        edits = arguments.get(key)
        if isinstance(edits, list) and edits:
            read = [_replacement(edit, path) for edit in edits if isinstance(edit, Mapping)]
            if read and all(edit is not None for edit in read):
                return tuple(
                    FileEdit(edit.path, edit.old, edit.new, (key, *path_keys))
                    for edit in read
                    if edit is not None
                )
    replacement = _replacement(arguments, path)
    if replacement is not None:
        return (replacement,)
    for key in _PATCH_KEYS:
        text = arguments.get(key)
        if isinstance(text, str) and _PATCH.search(text[:4_000]):
            return (FileEdit(path, None, text, (key, *path_keys), is_patch=True),)
    if action.arguments is None and action.kind == "edit" and _PATCH.search(action.code[:4_000]):
        return (FileEdit(path, None, action.code, (), is_patch=True),)
    return _written(action, path, path_keys)


def _replacement(arguments: Mapping[str, Any], path: str) -> FileEdit | None:
    """One text that replaces another."""
    old_key, old = _first(arguments, _OLD_KEYS)
    new_key, new = _first(arguments, _NEW_KEYS)
    if not old_key or not new_key:
        return None
    own_key, own_path = _first(arguments, _PATH_KEYS)
    used = (old_key, new_key, *((own_key,) if own_key else ()))
    return FileEdit(own_path or path, old, new, used)


def _written(action: Action, path: str, path_keys: tuple[str, ...]) -> tuple[FileEdit, ...]:
    """A file with its text, or lines that are inserted into one."""
    arguments = action.arguments or {}
    if not path or action.kind not in ("write", "edit", "other"):
        return ()
    line_key = next((key for key in _LINE_KEYS if isinstance(arguments.get(key), int)), "")
    keys = _INSERTED_KEYS if line_key else _WRITTEN_KEYS
    key, text = _first(arguments, keys)
    if not key:
        return ()
    return (FileEdit(path, None, text, (key, *path_keys)),)


def message_of(action: Action) -> tuple[str, str] | None:
    """The argument by which a call says something to the user, and its text.

    None for a call that executes code, touches a file, or says nothing.
    """
    arguments = action.arguments or {}
    if action.kind not in ("submit", "other") or action.path or len(arguments) > _FEW:
        return None
    if action.kind == "other" and not _MESSAGE_TOOL.search(_words(action.tool)):
        return None
    key, text = _first(arguments, _MESSAGE_KEYS)
    if key and text.strip():
        return key, text
    texts = [(name, value) for name, value in arguments.items() if isinstance(value, str)]
    if len(texts) == 1 and texts[0][1].strip():
        return texts[0]
    return None


def _words(tool: str) -> str:
    """A tool's name with underscores between its words: `finalAnswer` as final_Answer."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", tool).replace("-", "_").replace(".", "_")


def closing_turn(run: Run) -> int | None:
    """The turn of the message with which the agent ended the run; None if it was cut off."""
    if not run.turns or run.status.ended not in ("submitted", "stopped"):
        return None
    last = run.turns[-1]
    return last.index if any(_closing_texts(last)) else None


def _closing_texts(turn: Turn) -> Iterator[str]:
    yield turn.text.strip()
    for action in turn.actions:
        message = message_of(action)
        yield message[1] if message is not None else ""
        # A submission without words closes the run too.
        yield action.tool if action.kind == "submit" else ""


def _first(arguments: Mapping[str, Any], keys: tuple[str, ...]) -> tuple[str, str]:
    """The first of these arguments that is text, as (name, text); both "" if none is."""
    for key in keys:
        value = arguments.get(key)
        if isinstance(value, str):
            return key, value
    return "", ""
