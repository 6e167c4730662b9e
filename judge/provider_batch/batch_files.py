"""The files of provider batches: JSON Lines of requests and of answers.

An answer counts only if exactly one line has its id, the line is complete, and its status is 200;
what the line says is then read like any live answer. Everything else is a failure of that request,
never an answer. The files are our own work, as litellm writes and reads none; the body of a request
and the completion in an answer are made by it (`api.transport`).
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from ...rubrics.model import Rubric
from ..judges.api.answers import Completion, NotACompletion, completion_of, counts_of, error_in
from ..judges.api.transport import CallFailed, redact
from ..questions.replies import object_without_duplicates
from .ledger import BatchRequest

MAX_FILE_LINES = 50_000
MAX_FILE_BYTES = 100_000_000
"""OpenAI's limits on one batch; users may choose smaller ones."""
MAX_ANSWER_BYTES = 1_000_000
"""Bytes of one line of an output file; a longer line is no answer."""
_REFUSAL_CODES = ("content_filter", "content_policy_violation")


def request_id(keys: Iterable[str]) -> str:
    """The id of a request: a hash of the keys of its verdicts, 40 hexadecimal digits."""
    return hashlib.sha256("\n".join(sorted(keys)).encode()).hexdigest()[:40]


def to_line(custom_id: str, body: Mapping[str, Any]) -> bytes:
    """One line of an input file."""
    line = {"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions", "body": body}
    return json.dumps(line, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


@dataclass
class DraftFile:
    """An input file that is being written, with the requests in it."""

    file: Path
    requests: list[BatchRequest] = field(default_factory=list)
    rubrics: dict[str, Rubric] = field(default_factory=dict)
    """By hash."""
    max_cost_usd: float | None = 0.0
    """None if a request's is unknown."""
    size: int = 0
    """Bytes."""

    def add(
        self,
        request: BatchRequest,
        rubric: Rubric,
        line: bytes,
        max_cost_usd: float | None,
    ) -> None:
        """Write the line of a request."""
        with self.file.open("ab") as stream:
            stream.write(line)
        self.requests.append(request)
        self.rubrics[rubric.sha256] = rubric
        self.size += len(line)
        if max_cost_usd is None or self.max_cost_usd is None:
            self.max_cost_usd = None
        else:
            self.max_cost_usd += max_cost_usd


class _LinePlace(NamedTuple):
    """Where a line is in the downloaded files."""

    file: int
    offset: int
    length: int
    sha256: bytes


class Answers(ExitStack):
    """The answers of a batch, found by id in downloaded files that need not fit in memory."""

    def __init__(self) -> None:
        super().__init__()
        self._files: list[BinaryIO] = []
        self._places: dict[str, list[_LinePlace]] = {}
        self.unreadable = 0
        """Lines that are not a JSON object with an id."""

    def new_file(self) -> BinaryIO:
        """A temporary file for answers; call `index` once it is written."""
        file = self.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 (closed with this object)
        self._files.append(file)
        return file

    def index(self, file: BinaryIO) -> None:
        """Note where each id's line is."""
        number = self._files.index(file)
        file.seek(0)
        for offset, length, line in _lines(file):
            if not line.strip():
                continue
            data = _parse_object(line) if length <= MAX_ANSWER_BYTES else None
            custom_id = data.get("custom_id") if data is not None else None
            if not isinstance(custom_id, str):
                self.unreadable += 1
                continue
            sha256 = hashlib.sha256(line.strip()).digest()
            place = _LinePlace(number, offset, length, sha256)
            self._places.setdefault(custom_id, []).append(place)

    def ids(self) -> set[str]:
        """The ids of all lines."""
        return set(self._places)

    def get(self, custom_id: str, reason_if_missing: str) -> Completion | CallFailed:
        """The answer to one line of the input file."""
        places = self._places.get(custom_id, [])
        if not places:
            return CallFailed("provider", reason_if_missing)
        if len({place.sha256 for place in places}) > 1:
            return _failed_call(
                f"the batch's output answers this request {len(places)} times, differently"
            )
        place = places[0]
        file = self._files[place.file]
        file.seek(place.offset)
        return _read_answer(_parse_object(file.read(place.length)) or {})


def _lines(file: BinaryIO) -> Iterator[tuple[int, int, bytes]]:
    """(offset, length, content) of every line.

    Of a line longer than an answer may be, the content is only its beginning.
    """
    while True:
        offset = file.tell()
        line = file.readline(MAX_ANSWER_BYTES + 2)
        if not line:
            return
        if not line.endswith(b"\n"):
            _skip_to_next_line(file)
        yield offset, file.tell() - offset, line


def _skip_to_next_line(file: BinaryIO) -> None:
    part = file.readline(MAX_ANSWER_BYTES)
    while part and not part.endswith(b"\n"):
        part = file.readline(MAX_ANSWER_BYTES)


def _parse_object(line: bytes) -> dict[str, Any] | None:
    """A line as a JSON object; None for anything else, and for an object with a key twice."""
    try:
        data = json.loads(line.decode("utf-8"), object_pairs_hook=object_without_duplicates)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def _read_answer(line: dict[str, Any]) -> Completion | CallFailed:
    response, error = line.get("response"), line.get("error")
    status = response.get("status_code") if isinstance(response, dict) else None
    body = response.get("body") if isinstance(response, dict) else None
    # A boolean is an int in Python, but no status.
    if type(status) is not int or status != 200 or error or error_in(body) is not None:
        return _failed_line(status, error, body)
    try:
        return completion_of(body)
    except NotACompletion as problem:
        failed = _failed_call(str(problem))
        failed.counts = counts_of(body)
        return failed


def _failed_line(status: Any, error: Any, body: Any) -> CallFailed:
    """The failure that a line reports: its own error, or the one in the answer's body."""
    if not isinstance(error, dict):
        error = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict):
        error = {}
    code, message = str(error.get("code") or ""), str(error.get("message") or "")
    shown_status = status if type(status) is int else "no status"
    return _failed_call(
        redact(f"in the batch ({shown_status}): {code} {message}"),
        refused=code in _REFUSAL_CODES,
        calls=int(status is not None),
    )


def _failed_call(message: str, refused: bool = False, calls: int = 1) -> CallFailed:
    failed = CallFailed("policy" if refused else "provider", message)
    failed.calls = calls
    return failed
