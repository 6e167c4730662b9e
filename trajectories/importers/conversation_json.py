"""conversation.json itself, in any of its shapes, to be exported to another format."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..reading.json_bytes import read_json, text_or_none
from ..reading.load import load_conversation
from . import Importer
from .anthropic_messages import add_assistant, add_user
from .draft import Draft
from .fields import as_object, as_objects


def read(path: Path) -> Iterator[Draft | InputError]:
    """The run of the file, with the identity that its side files add.

    Messages of Anthropic's content blocks become chat messages.
    """
    run = load_conversation(path)
    value = read_json(path)
    header = as_object(value)
    draft = Draft(
        run.id,
        "conversation",
        agent=run.agent,
        model=run.model,
        task=run.task,
        tier=run.tier,
        repeat=run.repeat,
        track=run.track,
        outcomes=dict(run.outcomes),
        task_outcome=run.task_outcome,
    )
    draft.system(header.get("system_prompt"))
    messages = value if isinstance(value, list) else header.get("messages")
    for message in as_objects(messages):
        _add(draft, message)
    yield draft


def _add(draft: Draft, message: dict[str, Any]) -> None:
    role = message.get("role")
    block_types = {text_or_none(block.get("type")) for block in as_objects(message.get("content"))}
    if role == "assistant" and "tool_use" in block_types and not message.get("tool_calls"):
        add_assistant(draft, message)
    elif role == "assistant":
        draft.chat_assistant(message, [])
    elif role == "user" and "tool_result" in block_types:
        add_user(draft, message.get("content"))
    else:
        draft.message(message)


IMPORTER = Importer(read, ())
