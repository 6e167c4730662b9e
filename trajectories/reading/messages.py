"""Messages to turns: OpenAI chat shape and Anthropic content blocks, with tool calls matched to
their results.

One assistant message is one turn. Shape is read leniently (odd parts become warnings), meaning
strictly: an exit code that is not an integer is unknown, and a call without a result stays
unanswered.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Literal

from ..models import Action, ActionKind, Observation, Turn
from .json_bytes import loads, number

_KINDS: dict[str, ActionKind] = {
    **dict.fromkeys(
        (
            "execute_code",
            "bash",
            "shell",
            "sh",
            "python",
            "ipython",
            "run",
            "exec",
            "execute",
            "run_command",
            "terminal",
            "execute_bash",
            "run_python",
            "execute_python",
            "jupyter",
            "local_shell",
            "code_interpreter",
            "container.exec",
            "run_ipython",
            "execute_ipython_cell",
        ),
        "execute",
    ),
    **dict.fromkeys(
        ("write", "write_file", "create_file", "create", "save_file", "notebookwrite"), "write"
    ),
    **dict.fromkeys(
        (
            "edit",
            "multiedit",
            "edit_file",
            "str_replace",
            "str_replace_editor",
            "str_replace_based_edit_tool",
            "apply_patch",
            "patch",
            "notebookedit",
            "insert",
            "replace",
        ),
        "edit",
    ),
    **dict.fromkeys(
        (
            "read",
            "read_file",
            "cat",
            "view",
            "open",
            "open_file",
            "view_image",
            "bashoutput",
            "notebookread",
        ),
        "read",
    ),
    **dict.fromkeys(
        (
            "ls",
            "glob",
            "grep",
            "search",
            "find",
            "list_dir",
            "list_files",
            "codebase_search",
            "search_files",
        ),
        "search",
    ),
    **dict.fromkeys(
        ("todowrite", "todoread", "todo", "update_plan", "todo_write", "think", "plan"), "todo"
    ),
    **dict.fromkeys(("webfetch", "websearch", "web_search", "browse", "fetch", "browser"), "web"),
    **dict.fromkeys(
        ("submit_results", "submit", "finish", "complete", "attempt_completion"), "submit"
    ),
}
MAX_TEXT = 1_000_000
"""Characters of a program or an output of which the two ends are kept: no reader is shown as much.
"""
_CODE_KEYS = ("code", "command", "cmd", "script", "source", "keystrokes")
_WRITTEN_KEYS = (
    "content",
    "file_text",
    "contents",
    "new_string",
    "new_str",
    "patch",
    "input",
    "code_edit",
    "text",
    "replacement_text",
)
_PATH_KEYS = ("file_path", "path", "filename", "notebook_path", "file", "target_file")
_LANGUAGES = {
    "bash": "bash",
    "shell": "bash",
    "sh": "bash",
    "terminal": "bash",
    "python": "python",
    "ipython": "python",
    "run_ipython": "python",
    "execute_ipython_cell": "python",
    "execute_bash": "bash",
}


def content_text(content: Any) -> str:
    """The text of a message's content: a string, null, or a list of blocks (images are named, not
    shown)."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(part for part in (_block_text(block) for block in content) if part)
    if isinstance(content, dict):
        return _block_text(content)
    return json.dumps(content, ensure_ascii=False)


def _block_text(block: Any) -> str:
    if isinstance(block, str):
        return block
    if not isinstance(block, dict):
        return ""
    kind = block.get("type")
    if kind in ("tool_use", "tool_result", "thinking", "redacted_thinking", "reasoning"):
        return ""
    if isinstance(block.get("text"), str):
        return str(block["text"])
    if isinstance(kind, str) and ("image" in kind or kind == "media"):
        return "[image]"
    return ""


def _reasoning(message: dict[str, Any]) -> str:
    parts: list[str] = []
    for key in ("reasoning", "reasoning_content"):
        if isinstance(message.get(key), str):
            parts.append(message[key])
    details = message.get("reasoning_details")
    blocks = [
        *(details if isinstance(details, list) else []),
        *(_blocks(message, "thinking", "reasoning")),
    ]
    for block in blocks:
        if isinstance(block, dict):
            found = next(
                (
                    block[k]
                    for k in ("text", "summary", "thinking", "content")
                    if isinstance(block.get(k), str)
                ),
                None,
            )
            if found and found not in parts:
                parts.append(found)
    return "\n".join(parts)


def _blocks(message: dict[str, Any], *kinds: str) -> list[dict[str, Any]]:
    content = message.get("content")
    if not isinstance(content, list):
        return []
    return [block for block in content if isinstance(block, dict) and block.get("type") in kinds]


def _first_text(arguments: dict[str, Any], keys: Iterable[str]) -> str | None:
    for key in keys:
        value = arguments.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
            # argv form: ["bash", "-lc", "script"] means the script.
            return value[-1] if len(value) == 3 and value[1] in ("-c", "-lc") else " ".join(value)
    return None


def tool_kind(name: Any) -> ActionKind:
    """What a tool of this name does; `other` for names that are not known."""
    return _KINDS.get(name.lower(), "other") if isinstance(name, str) else "other"


def make_action(name: str, raw: Any, call_id: str | None) -> Action:
    """An action from a tool name and its arguments (a JSON string, an object, or broken text kept
    as code)."""
    arguments: dict[str, Any] | None
    broken = ""
    if isinstance(raw, dict):
        arguments = raw
    elif isinstance(raw, str):
        try:
            parsed = loads(raw) if raw.strip() else {}
        except ValueError:
            parsed, broken = None, raw
        arguments = parsed if isinstance(parsed, dict) else None
        if arguments is None and not broken:
            broken = raw
    else:
        arguments = {} if raw is None else None
    kind = tool_kind(name)
    if arguments is None:
        return Action(id=call_id, tool=name, kind=kind, code=broken)
    calls = arguments.get("invocations")
    if isinstance(calls, list) and calls:
        # A batch of calls in one: its kind is that of its first call, its code all of theirs.
        parts = [
            make_action(str(c.get("tool_name", "")), c.get("input"), None)
            for c in calls
            if isinstance(c, dict)
        ]
        if parts:
            code = "\n".join(p.code for p in parts if p.code)
            return Action(
                id=call_id,
                tool=name,
                kind=parts[0].kind,
                language=parts[0].language,
                code=code,
                path=next((p.path for p in parts if p.path), None),
                arguments=arguments,
            )
    path = _first_text(arguments, _PATH_KEYS)
    language = arguments.get("language") if isinstance(arguments.get("language"), str) else None
    if kind == "edit" and isinstance(arguments.get("edits"), list):
        edits = [e for e in arguments["edits"] if isinstance(e, dict)]
        code = "\n".join(filter(None, (_first_text(e, _WRITTEN_KEYS) for e in edits)))
    elif kind in ("write", "edit"):
        code = _first_text(arguments, _WRITTEN_KEYS) or _first_text(arguments, _CODE_KEYS) or ""
    elif kind in ("execute", "other"):
        code = _first_text(arguments, _CODE_KEYS) or ""
        language = language or (
            _LANGUAGES.get(name.lower())
            or ("bash" if {"command", "cmd", "keystrokes"} & arguments.keys() else None)
        )
        if kind == "other" and code:
            kind = "execute"
    else:
        code = ""
    return Action(
        id=call_id,
        tool=name,
        kind=kind,
        language=language.lower() if language else None,
        code=code,
        path=path,
        arguments=arguments,
    )


def make_observation(
    content: Any, warnings: list[str], where: str
) -> tuple[Observation, dict[str, Any] | None]:
    """An observation from a tool message's content, and the content as an object when it is a JSON
    object."""
    text = content_text(content)
    body: dict[str, Any] | None = None
    if text.lstrip().startswith("{"):
        try:
            parsed = loads(text)
        except ValueError:
            parsed = None
        if isinstance(parsed, dict):
            body = parsed
    if body is None or not ({"exit_code", "stdout", "stderr"} & set(body)):
        text = _shortened(text, warnings, where)
        return Observation(exit_code=None, stdout=text, kind=_kind_of(None, text, "")), body
    return observation_of(body, warnings, where), body


def observation_of(body: dict[str, Any], warnings: list[str], where: str) -> Observation:
    """An observation from a result of the harness: {"exit_code", "stdout", "stderr"}."""
    stdout, stderr = (content_text(body.get(key)) for key in ("stdout", "stderr"))
    extra = body.get("error") or body.get("violation")
    if isinstance(extra, str) and extra not in stderr:
        stderr = f"{stderr}\n{extra}" if stderr else extra
    stdout, stderr = (_shortened(text, warnings, where) for text in (stdout, stderr))
    code = exit_code(body.get("exit_code"), warnings, where)
    return Observation(
        exit_code=code, stdout=stdout, stderr=stderr, kind=_kind_of(code, stdout, stderr)
    )


def _shortened(text: str, warnings: list[str], where: str) -> str:
    left = len(text) - MAX_TEXT
    if left <= 0:
        return text
    warnings.append(f"{where}: a text of {len(text):,} characters; its middle is left out")
    return f"{text[: MAX_TEXT // 2]}\n[{left:,} characters left out]\n{text[-MAX_TEXT // 2 :]}"


def _bounded(action: Action, warnings: list[str], where: str) -> Action:
    code = _shortened(action.code, warnings, where)
    if code is action.code:
        return action
    arguments = action.arguments and {
        name: _shortened(value, [], where) if isinstance(value, str) else value
        for name, value in action.arguments.items()
    }
    return action.model_copy(update={"code": code, "arguments": arguments})


def exit_code(value: Any, warnings: list[str], where: str) -> int | None:
    """An integer exit code, or None with a warning for anything else that is not null."""
    if value is None:
        return None
    found = None if isinstance(value, bool) else number(value)
    if found is None or found != int(found) or abs(found) > 2**31:
        warnings.append(
            f"{where}: exit code {str(value)[:40]!r} is not an integer; taken as unknown"
        )
        return None
    return int(found)


def _kind_of(
    code: int | None, stdout: str, stderr: str
) -> Literal["ok", "failed", "timeout", "blocked", "unknown"]:
    """Harness rule: -1 is a timeout or a block, told apart by its own words, which stand in stderr
    when there is one."""
    if code == 0:
        return "ok"
    if code is not None and code != -1:
        return "failed"
    head = (stderr if stderr.strip() else stdout).lstrip()[:2000]
    if head.startswith("TIMEOUT"):
        return "timeout" if code == -1 else "unknown"
    if "SANDBOX VIOLATION" in head or (code == -1 and "BLOCKED" in head):
        return "blocked"
    return "timeout" if code == -1 else "unknown"


class TurnBuilder:
    """Collects messages in order; `brief` is what came before the first turn, `turns()` the result."""

    def __init__(self, warnings: list[str]) -> None:
        self.warnings = warnings
        self.brief: list[str] = []
        self.has_system_prompt = False
        """Whether a system prompt was among the messages."""
        self.submit_result: dict[str, Any] | None = None
        self._turns: list[dict[str, Any]] = []
        self._open: dict[str | None, list[tuple[dict[str, Any], int]]] = {}
        """Places of calls by id, the first of the last turn at the end; one is taken away when it
        is looked at."""
        self._slot = 0
        """Of the last turn: no call before it is open."""

    def add(self, position: int, message: Any) -> None:
        """Take one message; what is no message becomes a warning that names its position (0-based
        in the list)."""
        if not isinstance(message, dict):
            self.warnings.append(
                f"messages[{position}] is {type(message).__name__}, not an object; left out"
            )
            return
        role = message.get("role") or message.get("type")
        if role in ("assistant", "ai", "model"):
            self._assistant(position, message)
        elif role in ("tool", "function"):
            self._answer(position, message.get("tool_call_id"), message.get("content"))
        elif role in ("user", "human", "system", "developer"):
            for block in _blocks(message, "tool_result"):
                self._answer(position, block.get("tool_use_id"), block.get("content"))
            text = content_text(message.get("content"))
            if text:
                self.has_system_prompt = self.has_system_prompt or role in ("system", "developer")
                (self._turns[-1]["replies"] if self._turns else self.brief).append(text)
        else:
            self.warnings.append(
                f"messages[{position}] has the unknown role {str(role)[:40]!r}; left out"
            )

    def _assistant(self, position: int, message: dict[str, Any]) -> None:
        actions: list[Action] = []
        calls = message.get("tool_calls")
        if calls is not None and not isinstance(calls, list):
            self.warnings.append(f"messages[{position}].tool_calls is no list; left out")
            calls = []
        legacy = message.get("function_call")
        for call in [*(calls or []), *([{"function": legacy}] if isinstance(legacy, dict) else [])]:
            function = call.get("function") if isinstance(call, dict) else None
            if not isinstance(function, dict):
                function = call if isinstance(call, dict) and "name" in call else None
            if function is None:
                self.warnings.append(
                    f"messages[{position}]: a tool call without a function; left out"
                )
                continue
            name = function.get("name")
            actions.append(
                make_action(
                    str(name) if name else "unknown", function.get("arguments"), _id(call.get("id"))
                )
            )
        for block in _blocks(message, "tool_use"):
            actions.append(
                make_action(
                    str(block.get("name") or "unknown"), block.get("input"), _id(block.get("id"))
                )
            )
        actions = [_bounded(action, self.warnings, f"messages[{position}]") for action in actions]
        speaker = message.get("name")
        self._turns.append(
            {
                "index": len(self._turns) + 1,
                "text": content_text(message.get("content")),
                "reasoning": _reasoning(message),
                "speaker": speaker if isinstance(speaker, str) else None,
                "actions": actions,
                "replies": [],
                "finish_reason": (
                    message.get("finish_reason")
                    if isinstance(message.get("finish_reason"), str)
                    else None
                ),
            }
        )
        self._slot = 0
        for slot in reversed(range(len(actions))):
            self._open.setdefault(actions[slot].id, []).append((self._turns[-1], slot))

    def _answer(self, position: int, call_id: Any, content: Any) -> None:
        place = self._waiting(_id(call_id))
        if place is None:
            self.warnings.append(
                f"messages[{position}] answers no open tool call; its text is kept with the turn"
                " before it"
            )
            text = content_text(content)
            (self._turns[-1]["replies"] if self._turns else self.brief).append(text)
            return
        turn, slot = place
        observation, body = make_observation(content, self.warnings, f"turn {turn['index']}")
        action: Action = turn["actions"][slot]
        turn["actions"][slot] = action.model_copy(update={"observation": observation})
        if action.kind == "submit" and body is not None:
            self.submit_result = body

    def _waiting(self, call_id: str | None) -> tuple[dict[str, Any], int] | None:
        """The open call with this id, searched from the last turn back; without an id the last
        turn's first open call.

        Every place is looked at once, however many answers answer nothing.
        """
        if call_id is not None and (place := self._open_one(call_id)) is not None:
            return place
        if not self._turns:
            return None
        last = self._turns[-1]
        if call_id is not None:
            return self._open_one(None, last)
        while self._slot < len(last["actions"]):
            if last["actions"][self._slot].observation is None:
                return last, self._slot
            self._slot += 1
        return None

    def _open_one(
        self, call_id: str | None, only: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], int] | None:
        waiting = self._open.get(call_id, [])
        while waiting and (only is None or waiting[-1][0] is only):
            turn, slot = waiting.pop()
            if turn["actions"][slot].observation is None:
                return turn, slot
        return None

    def turns(self) -> list[Turn]:
        return [
            Turn(**{**t, "actions": tuple(t["actions"]), "replies": tuple(t["replies"])})
            for t in self._turns
        ]


def _id(value: Any) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and value else None
