"""The files of provider batches: JSON Lines of requests, written up to a size, and of answers, read
with suspicion.

An answer counts only when exactly one line bears its id, the line is whole, and its status is 200;
what a line says is then read as any live answer is. Everything else is a failure of that request,
never an answer. Ours: litellm writes and reads no batch files; the body of a line and the
completion in an answer are its work (`api.transport`).
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from ...rubrics.model import Rubric
from ..judges.api.transport import CallFailed, Completion, completion_from_body, redact
from ..questions.replies import object_without_duplicates
from .ledger import BatchRequest

MOST_LINES = 50_000
MOST_BYTES = 100_000_000
"""OpenAI's limits on one batch; smaller ones can be given."""
MOST_ANSWER = 1_000_000
"""Bytes of one line of an output file; longer ones are no answer."""
_REFUSED = ("content_filter", "content_policy_violation")


def request_id(keys: Iterable[str]) -> str:
    """The id of a request: a hash of the verdict keys that it is to fill. 40 hexadecimal digits."""
    return hashlib.sha256("\n".join(sorted(keys)).encode()).hexdigest()[:40]


def to_line(custom_id: str, body: Mapping[str, Any]) -> bytes:
    """One line of an input file."""
    line = {"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions", "body": body}
    return json.dumps(line, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


@dataclass
class Draft:
    """An input file in the making, with what it stands for."""

    file: Path
    requests: list[BatchRequest] = field(default_factory=list)
    rubrics: dict[str, Rubric] = field(default_factory=dict)
    worst_usd: float | None = 0.0
    lines: int = 0
    size: int = 0

    def add(
        self, request: BatchRequest, rubric: Rubric, lines: Sequence[bytes], worst_usd: float | None
    ) -> None:
        with self.file.open("ab") as stream:
            stream.writelines(lines)
        self.requests.append(request)
        self.rubrics[rubric.sha256] = rubric
        self.lines += len(lines)
        self.size += sum(map(len, lines))
        self.worst_usd = (
            None if worst_usd is None or self.worst_usd is None else self.worst_usd + worst_usd
        )


class Answers(ExitStack):
    """The answers of a batch, found by id in downloaded files that need not fit in memory."""

    def __init__(self) -> None:
        super().__init__()
        self._files: list[BinaryIO] = []
        self._places: dict[str, list[tuple[int, int, int, bytes]]] = {}
        self.unreadable = 0
        """Lines that are no JSON object with an id."""

    def new_file(self) -> BinaryIO:
        """A place for one more file of answers; `index` it when it is written."""
        file = self.enter_context(tempfile.TemporaryFile())
        self._files.append(file)
        return file

    def index(self, file: BinaryIO) -> None:
        number = self._files.index(file)
        file.seek(0)
        for offset, length, line in _long_lines(file):
            if not line.strip():
                continue
            data = _object(line) if length <= MOST_ANSWER else None
            name = data.get("custom_id") if data is not None else None
            if not isinstance(name, str):
                self.unreadable += 1
                continue
            place = (number, offset, length, hashlib.sha256(line.strip()).digest())
            self._places.setdefault(name, []).append(place)

    def ids(self) -> set[str]:
        return set(self._places)

    def get(self, custom_id: str, missing: str) -> Completion | CallFailed:
        """The answer to one line of the input; `missing` says why there may be none."""
        places = self._places.get(custom_id, [])
        if not places:
            return CallFailed("provider", missing)
        if len({digest for *_, digest in places}) > 1:
            return _failed(
                f"the batch's output answers this request {len(places)} times, differently"
            )
        number, offset, length, _ = places[0]
        self._files[number].seek(offset)
        return _answer(_object(self._files[number].read(length)) or {})


def _long_lines(file: BinaryIO) -> Iterator[tuple[int, int, bytes]]:
    """(offset, length, content) of every line; of longer lines than an answer may have only the
    beginning is read."""
    while True:
        offset = file.tell()
        line = file.readline(MOST_ANSWER + 2)
        if not line:
            return
        while not line.endswith(b"\n") and (rest := file.readline(MOST_ANSWER)):
            if rest.endswith(b"\n"):
                break
        yield offset, file.tell() - offset, line


def _object(line: bytes) -> dict[str, Any] | None:
    """A line as an object; None for anything else, also for one that has a key twice."""
    try:
        data = json.loads(line.decode("utf-8"), object_pairs_hook=object_without_duplicates)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def _answer(line: dict[str, Any]) -> Completion | CallFailed:
    response, error = line.get("response"), line.get("error")
    status = response.get("status_code") if isinstance(response, dict) else None
    body = response.get("body") if isinstance(response, dict) else None
    if type(status) is not int or status != 200 or error:
        inner = body.get("error") if isinstance(body, dict) else None
        said = next((e for e in (error, inner) if isinstance(e, dict)), {})
        code, message = str(said.get("code") or ""), str(said.get("message") or "")
        kind = "policy" if code in _REFUSED else "provider"
        text = redact(
            f"in the batch ({status if type(status) is int else 'no status'}): {code} {message}"
        )
        return _failed(text, kind == "policy", calls=int(status is not None))
    try:
        return completion_from_body(body)
    except CallFailed as failed:
        failed.calls = 1
        return failed


def _failed(message: str, refused: bool = False, calls: int = 1) -> CallFailed:
    failed = CallFailed("policy" if refused else "provider", message)
    failed.calls = calls
    return failed
