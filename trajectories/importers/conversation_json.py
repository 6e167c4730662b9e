"""conversation.json itself, in any of its shapes, on its way to another format."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ...errors import InputError
from ..reading.json_bytes import read_json, text_or_none
from ..reading.load import load_conversation
from . import Importer
from .anthropic_messages import add_assistant, add_user
from .draft import Draft, as_object, as_objects


def read(path: Path) -> Iterator[Draft | InputError]:
    """The run of the file, its identity from its side files too; messages of content blocks become
    chat messages."""
    run = load_conversation(path)
    value = read_json(path)
    head = as_object(value)
    draft = Draft(
        run.id,
        "conversation",
        agent=run.agent,
        model=run.model,
        task=run.task,
        tier=run.tier,
        repeat=run.repeat,
    )
    draft.track, draft.outcomes, draft.task_outcome = (
        run.track,
        dict(run.outcomes),
        run.task_outcome,
    )
    draft.system(head.get("system_prompt"))
    for message in as_objects(value if isinstance(value, list) else head.get("messages")):
        kinds = {text_or_none(block.get("type")) for block in as_objects(message.get("content"))}
        if (
            message.get("role") == "assistant"
            and "tool_use" in kinds
            and not message.get("tool_calls")
        ):
            add_assistant(draft, message)
        elif message.get("role") == "user" and "tool_result" in kinds:
            add_user(draft, message.get("content"))
        elif message.get("role") == "assistant":
            draft.chat_assistant(message, [])
        else:
            draft.messages.append(message)
    yield draft


IMPORTER = Importer(read, ())
