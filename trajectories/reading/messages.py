"""Converts messages to turns, and matches tool calls with their results.

Reads OpenAI chat messages and Anthropic content blocks. One assistant message is one turn. The
shape is read leniently (odd parts become warnings), the meaning strictly: an exit code that is not
an integer is unknown, and a call without a result stays unanswered.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..models import FAILED_KINDS, Action, ActionKind, AnswerKind, Observation, Turn
from .answer_marks import body_kind, stated_kind
from .json_bytes import loads, number

_TOOL_NAMES: dict[ActionKind, str] = {
    "execute": (
        "execute_code bash shell sh python ipython run exec execute run_command terminal"
        " execute_bash run_python execute_python jupyter local_shell code_interpreter"
        " container.exec run_ipython execute_ipython_cell run_shell_command python_interpreter"
    ),
    "write": "write write_file create_file create save_file notebookwrite",
    "edit": (
        "edit multiedit edit_file str_replace str_replace_editor str_replace_based_edit_tool"
        " apply_patch patch notebookedit insert replace"
    ),
    "read": "read read_file cat view open open_file view_image bashoutput notebookread"
    " read_many_files",
    "search": "ls glob grep search find list_dir list_files codebase_search search_files"
    " list_directory search_file_content grep_search",
    "todo": "todowrite todoread todo update_plan todo_write think plan write_todos",
    "web": "webfetch websearch web_search browse fetch browser web_fetch google_web_search",
    "submit": "submit_results submit finish complete attempt_completion",
}
_REPLY_ROLES = ("assistant", "ai", "model")
_RESULT_ROLES = ("tool", "function")
_TEXT_ROLES = ("user", "human", "system", "developer")
_KINDS = {name: kind for kind, names in _TOOL_NAMES.items() for name in names.split()}
MAX_TEXT = 1_000_000
"""Characters kept of a program or an output, half from each end: no judge is shown as many."""
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
    """The text of a message's content: a string, null, or a list of blocks.

    Images are named, not shown.
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        texts = (_block_text(block) for block in content)
        return "\n".join(text for text in texts if text)
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
    for key in ("text", "refusal", "transcript"):
        if isinstance(block.get(key), str):
            return str(block[key])
    if isinstance(kind, str) and ("image" in kind or kind == "media"):
        return "[image]"
    return ""


def message_text(message: dict[str, Any]) -> str:
    """The text of a message: its content, else the refusal or the spoken words beside it."""
    text = content_text(message.get("content"))
    if text:
        return text
    audio = message.get("audio")
    spoken = audio.get("transcript") if isinstance(audio, dict) else None
    texts = (item for item in (message.get("refusal"), spoken) if isinstance(item, str))
    return "\n".join(texts)


def message_reasoning(message: dict[str, Any]) -> str:
    """The reasoning of an assistant message, from its fields and blocks, without repetitions."""
    parts: list[str] = []
    for key in ("reasoning", "reasoning_content"):
        if isinstance(message.get(key), str):
            parts.append(message[key])
    details = message.get("reasoning_details")
    blocks = [
        *(details if isinstance(details, list) else []),
        *_blocks(message, "thinking", "reasoning"),
    ]
    for block in blocks:
        text = _thought(block)
        if text and text not in parts:
            parts.append(text)
    return "\n".join(parts)


def _thought(block: Any) -> str | None:
    if isinstance(block, dict):
        for key in ("text", "reasoning", "summary", "thinking", "content"):
            if isinstance(block.get(key), str):
                return str(block[key])
    return None


def _blocks(message: dict[str, Any], *kinds: str) -> list[dict[str, Any]]:
    """The content blocks of these types."""
    content = message.get("content")
    if not isinstance(content, list):
        return []
    return [block for block in content if isinstance(block, dict) and block.get("type") in kinds]


def _first_text(arguments: dict[str, Any], keys: Iterable[str]) -> str | None:
    """The first of these arguments that is text, or a command as a list of words."""
    for key in keys:
        value = arguments.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
            # A command as argv: ["bash", "-lc", "script"] means the script.
            if len(value) == 3 and value[1] in ("-c", "-lc"):
                return str(value[-1])
            return " ".join(value)
    return None


def tool_kind(name: Any) -> ActionKind:
    """What a tool of this name does; `other` for unknown names."""
    return _KINDS.get(name.lower(), "other") if isinstance(name, str) else "other"


def make_action(name: str, raw_arguments: Any, call_id: str | None) -> Action:
    """An action from a tool's name and arguments: an object, or a JSON string.

    Text that is not a JSON object is kept as `code`, with `arguments` None.
    """
    arguments, broken_text = _parse_arguments(raw_arguments)
    kind = tool_kind(name)
    if arguments is None:
        return Action(id=call_id, tool=name, kind=kind, code=broken_text)
    batch = _batch_action(name, arguments, call_id)
    if batch is not None:
        return batch
    code, language = _code_and_language(name, kind, arguments)
    # A tool of an unknown name that is given code executes it.
    if kind == "other" and code:
        kind = "execute"
    return Action(
        id=call_id,
        tool=name,
        kind=kind,
        language=language.lower() if language else None,
        code=code,
        path=_first_text(arguments, _PATH_KEYS),
        arguments=arguments,
    )


def _parse_arguments(raw: Any) -> tuple[dict[str, Any] | None, str]:
    """The arguments as an object, else None and the text that is not one."""
    if raw is None:
        return {}, ""
    if isinstance(raw, dict):
        return raw, ""
    if not isinstance(raw, str):
        return None, ""
    # Some agents write no arguments at all for a tool without parameters.
    try:
        parsed = loads(raw) if raw.strip() else {}
    except ValueError:
        return None, raw
    return (parsed, "") if isinstance(parsed, dict) else (None, raw)


def _batch_action(name: str, arguments: dict[str, Any], call_id: str | None) -> Action | None:
    """A call that holds several: the kind of the first, the code of all; None for other calls."""
    calls = arguments.get("invocations")
    if not isinstance(calls, list):
        return None
    parts = [
        make_action(str(call.get("tool_name", "")), call.get("input"), None)
        for call in calls
        if isinstance(call, dict)
    ]
    if not parts:
        return None
    paths = [part.path for part in parts if part.path]
    return Action(
        id=call_id,
        tool=name,
        kind=parts[0].kind,
        language=parts[0].language,
        code="\n".join(part.code for part in parts if part.code),
        path=paths[0] if paths else None,
        arguments=arguments,
    )


def _code_and_language(
    name: str, kind: ActionKind, arguments: dict[str, Any]
) -> tuple[str, str | None]:
    """The code that a call executes or writes, and its language if known."""
    stated = arguments.get("language")
    language = stated if isinstance(stated, str) else None
    if kind in ("execute", "other"):
        if not language:
            language = _LANGUAGES.get(name.lower())
        if not language and not {"command", "cmd", "keystrokes"}.isdisjoint(arguments):
            language = "bash"
        return _first_text(arguments, _CODE_KEYS) or "", language
    edits = arguments.get("edits")
    if kind == "edit" and isinstance(edits, list):
        texts = (_first_text(edit, _WRITTEN_KEYS) for edit in edits if isinstance(edit, dict))
        return "\n".join(text for text in texts if text), language
    if kind in ("write", "edit"):
        text = _first_text(arguments, _WRITTEN_KEYS) or _first_text(arguments, _CODE_KEYS)
        return text or "", language
    return "", language


def make_observation(
    content: Any, warnings: list[str], location: str, mark: AnswerKind | None = None
) -> tuple[Observation, dict[str, Any] | None]:
    """An observation from a tool message's content, and that content if it is a JSON object.

    `mark` is how the call went by the message around it. `location` names the message in warnings.
    """
    text = content_text(content)
    body = _json_object(text)
    if body is not None and {"exit_code", "stdout", "stderr"} & set(body):
        return observation_of(body, warnings, location, mark), body
    text = _without_middle(text, warnings, location)
    kind = _observation_kind(None, text, "", mark)
    if mark in FAILED_KINDS:  # the text is the error, as in imported runs
        return Observation(exit_code=None, stderr=text, kind=kind), body
    return Observation(exit_code=None, stdout=text, kind=kind), body


def _json_object(text: str) -> dict[str, Any] | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def observation_of(
    body: dict[str, Any], warnings: list[str], location: str, mark: AnswerKind | None = None
) -> Observation:
    """An observation from a result of the harness: {"exit_code", "stdout", "stderr"}."""
    stdout, stderr = content_text(body.get("stdout")), content_text(body.get("stderr"))
    # Some branches state the reason beside the streams, others repeat it in stderr.
    error = body.get("error") or body.get("violation")
    if isinstance(error, str) and error not in stderr:
        stderr = f"{stderr}\n{error}" if stderr else error
    stdout = _without_middle(stdout, warnings, location)
    stderr = _without_middle(stderr, warnings, location)
    code = exit_code(body.get("exit_code"), warnings, location)
    return Observation(
        exit_code=code,
        stdout=stdout,
        stderr=stderr,
        kind=_observation_kind(code, stdout, stderr, body_kind(body) or mark),
    )


def _without_middle(text: str, warnings: list[str], location: str) -> str:
    excess = len(text) - MAX_TEXT
    if excess <= 0:
        return text
    warnings.append(f"{location}: a text of {len(text):,} characters; its middle is left out")
    # The mark is part of the record that a judge is shown: its wording must not change.
    mark = f"[{excess:,} characters left out]"
    return f"{text[: MAX_TEXT // 2]}\n{mark}\n{text[-MAX_TEXT // 2 :]}"


def _bounded(action: Action, warnings: list[str], location: str) -> Action:
    """The action with the middle of excessively long code left out, in its arguments too."""
    code = _without_middle(action.code, warnings, location)
    if code is action.code:
        return action
    arguments = action.arguments
    if arguments:
        arguments = {
            name: _without_middle(value, [], location) if isinstance(value, str) else value
            for name, value in arguments.items()
        }
    return action.model_copy(update={"code": code, "arguments": arguments})


def exit_code(value: Any, warnings: list[str], location: str) -> int | None:
    """An integer exit code, or None; anything but an integer or null adds a warning."""
    if value is None:
        return None
    code = None if isinstance(value, bool) else number(value)
    if code is None or code != int(code) or abs(code) > 2**31:
        warnings.append(
            f"{location}: exit code {str(value)[:40]!r} is not an integer; taken as unknown"
        )
        return None
    return int(code)


def _observation_kind(
    code: int | None, stdout: str, stderr: str, mark: AnswerKind | None
) -> AnswerKind:
    """How the action went, by its exit code, else by the mark that its source gave it.

    The harness writes -1 for a timeout and for a blocked call. Its message tells them apart; it is
    in stderr unless that is empty.
    """
    if code == 0:
        return "ok"
    if mark in ("timeout", "blocked", "cancelled"):  # says more than a code
        return mark
    if code is not None and code != -1:
        return "failed"
    if mark is not None and (code is None or mark == "failed"):
        return mark
    head = (stderr if stderr.strip() else stdout).lstrip()[:2000]
    if head.startswith("TIMEOUT"):
        return "timeout" if code == -1 else "unknown"
    if "SANDBOX VIOLATION" in head or (code == -1 and "BLOCKED" in head):
        return "blocked"
    return "timeout" if code == -1 else "unknown"


@dataclass
class _OpenTurn:
    """A turn that may still get results and replies."""

    index: int
    text: str
    reasoning: str
    speaker: str | None
    finish_reason: str | None
    actions: list[Action]
    replies: list[str] = field(default_factory=list)

    def close(self) -> Turn:
        """The turn with what it has got so far."""
        return Turn(
            index=self.index,
            text=self.text,
            reasoning=self.reasoning,
            speaker=self.speaker,
            actions=tuple(self.actions),
            replies=tuple(self.replies),
            finish_reason=self.finish_reason,
        )


_Call = tuple[_OpenTurn, int]
"""A turn and the position of a call in it, from 0."""


class TurnBuilder:
    """Collects messages in order; `turns()` is the result, `brief` what came before the first."""

    def __init__(self, warnings: list[str]) -> None:
        self.warnings = warnings
        self.brief: list[str] = []
        self.has_system_prompt = False
        """Whether a system prompt was among the messages."""
        self.submit_result: dict[str, Any] | None = None
        """The last JSON object that answered a submission."""
        self._turns: list[_OpenTurn] = []
        self._calls: dict[str | None, list[_Call]] = {}
        """Calls by id, those of the last turn at the end, its first call last; a call is removed
        when it is looked at."""
        self._first_open = 0
        """In the last turn, no call before this position is open."""

    def add(self, position: int, message: Any) -> None:
        """Add one message; if it is not one, a warning names its 0-based position in the list."""
        if not isinstance(message, dict):
            self.warnings.append(
                f"messages[{position}] is {type(message).__name__}, not an object; left out"
            )
            return
        role = message.get("role") or message.get("type")
        if role in _REPLY_ROLES:
            self._add_turn(position, message)
        elif role in _RESULT_ROLES:
            call_id = message.get("tool_call_id")
            self._add_result(position, call_id, message.get("content"), stated_kind(message))
        elif role == "context":
            text = content_text(message.get("content"))
            if text:
                self._add_text(f"[earlier {message.get('from')}]\n{text}")
        elif role in _TEXT_ROLES:
            for block in _blocks(message, "tool_result"):
                call_id = block.get("tool_use_id")
                self._add_result(position, call_id, block.get("content"), stated_kind(block))
            text = content_text(message.get("content"))
            if text:
                if role in ("system", "developer"):
                    self.has_system_prompt = True
                self._add_text(text)
        else:
            self.warnings.append(
                f"messages[{position}] has the unknown role {str(role)[:40]!r}; left out"
            )

    def turns(self) -> list[Turn]:
        """The turns of all messages so far."""
        return [turn.close() for turn in self._turns]

    def _add_text(self, text: str) -> None:
        """Add a message to the agent: to the brief before the first turn, else to the last turn."""
        target = self._turns[-1].replies if self._turns else self.brief
        target.append(text)

    def _add_turn(self, position: int, message: dict[str, Any]) -> None:
        speaker, finish = message.get("name"), message.get("finish_reason")
        actions = [
            _bounded(action, self.warnings, f"messages[{position}]")
            for action in self._actions(position, message)
        ]
        turn = _OpenTurn(
            index=len(self._turns) + 1,
            text=message_text(message),
            reasoning=message_reasoning(message),
            speaker=speaker if isinstance(speaker, str) else None,
            finish_reason=finish if isinstance(finish, str) else None,
            actions=actions,
        )
        self._turns.append(turn)
        self._first_open = 0
        # Calls are taken from the end: the first call of a turn must come last.
        for slot in reversed(range(len(actions))):
            self._calls.setdefault(actions[slot].id, []).append((turn, slot))

    def _actions(self, position: int, message: dict[str, Any]) -> list[Action]:
        """The calls of an assistant message, in chat shape and as content blocks."""
        calls = message.get("tool_calls")
        if calls is not None and not isinstance(calls, list):
            self.warnings.append(f"messages[{position}].tool_calls is not a list; left out")
            calls = None
        calls = list(calls or [])
        if isinstance(message.get("function_call"), dict):  # before OpenAI had `tool_calls`
            calls.append({"function": message["function_call"]})
        actions = []
        for call in calls:
            function = _function(call)
            if function is None:
                self.warnings.append(
                    f"messages[{position}]: a tool call without a function; left out"
                )
                continue
            name = str(function.get("name") or "unknown")
            actions.append(make_action(name, function.get("arguments"), _call_id(call.get("id"))))
        for block in _blocks(message, "tool_use"):
            name = str(block.get("name") or "unknown")
            actions.append(make_action(name, block.get("input"), _call_id(block.get("id"))))
        return actions

    def _add_result(
        self, position: int, call_id: Any, content: Any, mark: AnswerKind | None
    ) -> None:
        call = self._take_open_call(_call_id(call_id))
        if call is None:
            self.warnings.append(
                f"messages[{position}] answers no open tool call; its text is kept with the turn"
                " before it"
            )
            self._add_text(content_text(content))
            return
        turn, slot = call
        observation, body = make_observation(content, self.warnings, f"turn {turn.index}", mark)
        action = turn.actions[slot]
        turn.actions[slot] = action.model_copy(update={"observation": observation})
        if action.kind == "submit" and body is not None:
            self.submit_result = body

    def _take_open_call(self, call_id: str | None) -> _Call | None:
        """The open call that a result answers.

        With an id, the last call of this id, else the last turn's first call without one. Without
        an id, the last turn's first open call. Every call is looked at once, however many results
        answer none, so that time stays linear.
        """
        if call_id is not None:
            call = self._take_by_id(call_id)
            if call is not None:
                return call
        if not self._turns:
            return None
        last = self._turns[-1]
        if call_id is not None:
            return self._take_by_id(None, within=last)
        while self._first_open < len(last.actions):
            if last.actions[self._first_open].observation is None:
                return last, self._first_open
            self._first_open += 1
        return None

    def _take_by_id(self, call_id: str | None, within: _OpenTurn | None = None) -> _Call | None:
        calls = self._calls.get(call_id, [])
        while calls and (within is None or calls[-1][0] is within):
            turn, slot = calls.pop()
            if turn.actions[slot].observation is None:
                return turn, slot
        return None


def has_role(message: Any) -> bool:
    """Whether a value is a message: it has a `role`, or one in its `type`."""
    if not isinstance(message, dict):
        return False
    roles = (*_REPLY_ROLES, *_RESULT_ROLES, *_TEXT_ROLES)
    return "role" in message or message.get("type") in roles


def is_readable_call(call: Any) -> bool:
    """Whether a tool call of a chat message has a shape that is read."""
    return _function(call) is not None


def _function(call: Any) -> dict[str, Any] | None:
    """The function of a tool call, or the call itself if it has the function's fields.

    Inspect's calls have the name in `function`; LangChain's have `name` and `args`.
    """
    if not isinstance(call, dict):
        return None
    function = call.get("function")
    if isinstance(function, dict):
        return dict(function)
    name = function if isinstance(function, str) else call.get("name")
    if not isinstance(name, str):
        return None
    arguments = (call.get(key) for key in ("arguments", "args", "input"))
    return {"name": name, "arguments": next((a for a in arguments if a is not None), None)}


def _call_id(value: Any) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and value else None
