"""The texts behind the hashes of verdict keys, readable when the files have long changed.

A text is kept as the very bytes that its hash was made of: whoever hashes them finds the key's part
again. Criteria of rubrics are not among them, as rubrics are kept whole.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol, runtime_checkable

from ...rubrics.load import criterion_bytes
from ...rubrics.model import Criterion
from ..base import Judge, JudgeWrapper

TextKind = Literal["prompt", "item"]
"""prompt: the prompt files of a judge, or the hashes of a panel's members; item: an error code, an
ad-hoc question, or whatever else is asked and is no criterion of a rubric."""


@dataclass(frozen=True)
class Text:
    """A text that verdict keys name by its hash."""

    kind: TextKind
    name: str
    body: bytes

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.body).hexdigest()

    def readable(self) -> str:
        """The text as a person reads it."""
        if self.kind == "item":
            return _readable_item(json.loads(self.body))
        parts = self.body.decode().split("\0")
        if len(parts) == 1:
            return f"prompts of each member of the panel:\n{parts[0]}"
        pairs = zip(parts[1::2], parts[2::2], strict=True)
        return "\n\n".join(f"[{name}]\n{text}" for name, text in pairs)


@runtime_checkable
class PromptedJudge(Protocol):
    """A judge that can say what its `prompt_sha256` is the hash of."""

    @property
    def prompt_bytes(self) -> bytes:
        """The bytes of `prompt_sha256`."""


def item_texts(items: Iterable[Criterion]) -> list[Text]:
    """The texts of items that are part of no rubric."""
    return [Text("item", item.id, criterion_bytes(item)) for item in items]


def prompt_texts(judge: Judge) -> Iterator[Text]:
    """The prompts of a judge, and those of a panel's members; none for a judge without prompts."""
    while isinstance(judge, JudgeWrapper):
        judge = judge.inner
    for member in getattr(judge, "judges", ()):
        yield from prompt_texts(member)
    if isinstance(judge, PromptedJudge) and judge.prompt_sha256 is not None:
        yield Text("prompt", judge.name, judge.prompt_bytes)


def _readable_item(item: dict[str, object]) -> str:
    lines = [f"{item['id']}  {item['title']}", str(item["text"])]
    if item.get("conditional"):
        lines.append(f"applies when: {item['conditional']}")
    scale = item["scale"]
    if isinstance(scale, list):
        lines += [f"{level['value']:g}: {level['text']}" for level in scale]
    return "\n".join(lines)
