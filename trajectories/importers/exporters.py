"""Exports drafts to other formats: OpenAI chat messages and Anthropic's Messages API.

A tool's result becomes plain text if only its text is known (exit code null, one stream); otherwise
it stays JSON as the harness writes it, with exit code, both streams and how the call went. Chat
messages have no place for a mark of how a call went, so that there a marked result stays JSON, too.
Who ran what is kept beside the messages, tokens and the reason of the end with each reply, as
stored responses have them: what is exported is imported equal. The rest is counted in `lost`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ...plugins import Door
from ..models import FAILED_KINDS
from ..reading.answer_marks import body_kind, stated_kind
from ..reading.json_bytes import loads
from ..reading.messages import content_text, message_text
from .draft import RESULT_KEYS, Draft
from .fields import as_object, as_objects, parse_object, unwrap_text
from .openai_chat import chat_calls

Exporter = Callable[[Draft], dict[str, Any]]
"""Returns the value to write as JSON; counts in `Draft.lost` what the format cannot hold."""


def _problem(name: str, loaded: Any) -> str:
    """The reason why a plugin's object cannot export; "" if it can."""
    return "" if callable(loaded) else "it is not a function"


EXPORTERS: Door[Exporter] = Door(
    "exporters",
    noun="format",
    built_in={"openai": f"{__name__}:to_openai", "anthropic": f"{__name__}:to_anthropic"},
    find_problem=_problem,
)
_STOP_REASONS = {"tool_calls": "tool_use", "stop": "end_turn", "length": "max_tokens"}
"""Why a reply ended, in the words of the Messages API."""
_DATA_URL = re.compile(r"data:([\w.+/-]{1,100});base64,", re.ASCII)


def to_openai(draft: Draft) -> dict[str, Any]:
    """Return `model` and chat `messages`; the first message is the system prompt."""
    _count_unheld(draft)
    messages: list[dict[str, Any]] = []
    if draft.system_prompt is not None:
        messages.append({"role": "system", "content": draft.system_prompt})
    replies = iter(draft.reply_facts())
    for message in draft.messages:
        content = message.get("content")
        if message.get("role") in ("tool", "function"):
            text, failed = plain_result(content)
            # Chat messages have no mark: only the harness's JSON keeps it.
            message = {**message, "content": text if failed is None else content}
        elif message.get("role") == "context":
            message = _shown(message)
        elif isinstance(content, list):
            message = {**message, "content": [_openai_block(block) for block in content]}
        if message.get("role") == "assistant":
            message = _chat_facts(next(replies, {})) | message
        messages.append(message)
    return {**draft.identity(), "messages": messages}


def to_anthropic(draft: Draft) -> dict[str, Any]:
    """Return `model`, `system` and `messages` of content blocks.

    Results of calls are blocks of one user message. Later system messages become user messages.
    Content that the API cannot hold is counted in `draft.lost`.
    """
    return _AnthropicWriter(draft).write()


def _count_unheld(draft: Draft) -> None:
    """Count what no chat format has a place for."""
    replies = draft.reply_facts()
    draft.lost["times of replies"] += sum("ts" in reply for reply in replies)
    totals = draft.run_totals()
    for name, label in (("input_tokens", "input tokens"), ("output_tokens", "output tokens")):
        is_sum = totals[name].value == sum(reply.get(name) or 0 for reply in replies)
        draft.lost[f"total of {label}"] += totals[name].value is not None and not is_sum
    draft.lost["cost of the run"] += totals["cost_usd"].value is not None
    draft.lost["seconds of the run"] += draft.wall_time_s is not None
    if draft.n_empty_turns == draft.turns:
        draft.odd["turns, all of them empty: imports refuse this file"] = draft.turns


def _shown(message: dict[str, Any]) -> dict[str, Any]:
    """A reply or a result of earlier history as a user message that says so."""
    text = f"[earlier {message.get('from')}]\n{content_text(message.get('content'))}"
    return {"role": "user", "content": text}


def _chat_facts(reply: dict[str, Any]) -> dict[str, Any]:
    """Tokens and the reason of the end of a reply, as stored chat completions have them."""
    counts = {
        "prompt_tokens": reply.get("input_tokens"),
        "completion_tokens": reply.get("output_tokens"),
    }
    usage: dict[str, Any] = {name: n for name, n in counts.items() if n is not None}
    if reply.get("cached_tokens"):
        usage["prompt_tokens_details"] = {"cached_tokens": reply["cached_tokens"]}
    finish = reply.get("finish_reason")
    return {**({"usage": usage} if usage else {}), **({"finish_reason": finish} if finish else {})}


def _response_facts(reply: dict[str, Any]) -> dict[str, Any]:
    """The same as stored responses of the Messages API have them; cached tokens are beside."""
    cached = reply.get("cached_tokens") or 0
    usage: dict[str, Any] = {}
    if reply.get("input_tokens") is not None:
        usage["input_tokens"] = reply["input_tokens"] - cached
    if reply.get("output_tokens") is not None:
        usage["output_tokens"] = reply["output_tokens"]
    if cached:
        usage["cache_read_input_tokens"] = cached
    finish = reply.get("finish_reason")
    finish = _STOP_REASONS.get(str(finish), finish)
    return {**({"usage": usage} if usage else {}), **({"stop_reason": finish} if finish else {})}


class _AnthropicWriter:
    """Collects the messages of a draft as content blocks."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._system: list[dict[str, Any]] = []
        self._messages: list[dict[str, Any]] = []
        self._replies = iter(draft.reply_facts())
        self._n_calls = 0
        """Number of calls so far. It names calls without an id, because the API requires ids."""
        self._open_call_ids: list[str] = []
        """Unanswered calls of the last reply; results without an id answer them in order."""

    def write(self) -> dict[str, Any]:
        """The body of a request to the API."""
        draft = self._draft
        _count_unheld(draft)
        if draft.system_prompt is not None:
            self._system.append({"type": "text", "text": draft.system_prompt})
        for message in draft.messages:
            self._add(message)
        value = draft.identity()
        if self._system:
            value["system"] = unwrap_text(self._system)
        for message in self._messages:
            if message["role"] == "user":
                message["content"] = unwrap_text(message["content"])
        value["messages"] = self._messages
        return value

    def _add(self, message: dict[str, Any]) -> None:
        role, content = message.get("role"), message.get("content")
        if role == "assistant":
            self._add_assistant(message)
        elif role in ("tool", "function"):
            self._add_result(message)
        elif role == "context":
            self._add_user_blocks(_content_blocks(_shown(message)["content"], self._draft))
        elif role not in ("system", "developer"):
            self._add_user_blocks(_content_blocks(content, self._draft))
        elif not self._messages:
            self._system += _content_blocks(content, self._draft)
        else:
            self._draft.lost["later system messages, now user messages"] += 1
            self._add_user_blocks(_content_blocks(content, self._draft))

    def _add_assistant(self, message: dict[str, Any]) -> None:
        blocks = [
            block
            for block in as_objects(message.get("reasoning_details"))
            if block.get("type") in ("thinking", "redacted_thinking")
        ]
        has_reasoning = message.get("reasoning_details") or message.get("reasoning_content")
        if has_reasoning and not blocks:
            self._draft.lost["thoughts without a signature"] += 1
        blocks += _content_blocks(message.get("content") or message_text(message), self._draft)
        self._draft.lost["names of speakers"] += bool(message.get("name"))
        self._open_call_ids = []
        for call in chat_calls(message):
            self._n_calls += 1
            call_id = call.id or f"call-{self._n_calls}"
            self._open_call_ids.append(call_id)
            blocks.append(
                {
                    "type": "tool_use",
                    "id": call_id,
                    "name": call.name,
                    "input": _arguments_object(call.arguments, self._draft),
                }
            )
        facts = _response_facts(next(self._replies, {}))
        self._messages.append({"role": "assistant", "content": blocks, **facts})

    def _add_result(self, message: dict[str, Any]) -> None:
        text, failed = plain_result(message.get("content"))
        kind = stated_kind(message)
        if failed is None and kind is not None:
            failed = kind in FAILED_KINDS
        call_id = message.get("tool_call_id")
        if not call_id:
            call_id = self._open_call_ids[0] if self._open_call_ids else None
        if call_id in self._open_call_ids:
            self._open_call_ids.remove(call_id)
        block = {"type": "tool_result", "tool_use_id": call_id, "content": text}
        if failed is not None:
            block["is_error"] = failed
        self._add_user_blocks([block])

    def _add_user_blocks(self, blocks: list[dict[str, Any]]) -> None:
        """Add to the user message with the results of the last reply, or begin a new one.

        In the API, results come before other blocks of a message.
        """
        if _ends_with_result(self._messages):
            self._messages[-1]["content"] += blocks
        elif blocks:
            self._messages.append({"role": "user", "content": blocks})


def _ends_with_result(messages: list[dict[str, Any]]) -> bool:
    if not messages or messages[-1]["role"] != "user":
        return False
    return bool(messages[-1]["content"][-1].get("type") == "tool_result")


def plain_result(content: Any) -> tuple[Any, bool | None]:
    """A tool's result as plain text if its JSON holds nothing more, else unchanged.

    The second value says whether the result is marked as an error; None if it has no mark.
    """
    body = parse_object(content)
    kind = body_kind(body) if RESULT_KEYS & set(body) else None
    failed = None if kind is None else kind in FAILED_KINDS
    if not set(RESULT_KEYS) <= set(body) <= {*RESULT_KEYS, "is_error"}:
        return content, failed
    stdout, stderr = body["stdout"], body["stderr"]
    are_texts = isinstance(stdout, str) and isinstance(stderr, str)
    # Text of stderr alone becomes plain text only with the error mark, which tells the stream.
    is_one_stream = not (stdout and stderr) and (failed or not stderr)
    if are_texts and body["exit_code"] is None and is_one_stream:
        return stdout or stderr, failed
    return content, failed


def _content_blocks(content: Any, draft: Draft) -> list[dict[str, Any]]:
    """The blocks of a message's content for Anthropic's API."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    blocks = []
    for block in as_objects(content):
        kind = block.get("type")
        image_url = as_object(block.get("image_url")).get("url")
        url = block.get("image") if kind == "image" else image_url
        if isinstance(url, str):
            blocks.append({"type": "image", "source": _image_source(url)})
        elif kind in ("input_audio", "file", "audio", "video", "data"):
            draft.lost["audio, video and file blocks"] += 1
        else:
            blocks.append(block)
    return blocks


def _image_source(url: str) -> dict[str, Any]:
    data_url = _DATA_URL.match(url)
    if data_url is None:
        return {"type": "url", "url": url}
    return {"type": "base64", "media_type": data_url[1], "data": url[data_url.end() :]}


def _openai_block(block: Any) -> Any:
    """An image block of another format as `image_url`; any other block unchanged."""
    if not isinstance(block, dict) or block.get("type") != "image":
        return block
    source = as_object(block.get("source"))
    url = block.get("image") or source.get("url")
    if isinstance(source.get("data"), str):
        url = f"data:{source.get('media_type')};base64,{source['data']}"
    return {"type": "image_url", "image_url": {"url": url}} if isinstance(url, str) else block


def _arguments_object(arguments: Any, draft: Draft) -> dict[str, Any]:
    """Arguments as the object that the API requires; others become text under `arguments`."""
    if isinstance(arguments, dict):
        return arguments
    text = content_text(arguments)
    try:
        value = loads(text) if text.strip() else {}
    except ValueError:
        value = None
    if isinstance(value, dict):
        return value
    draft.lost["arguments that are not a JSON object, kept as text"] += 1
    return {"arguments": text}
