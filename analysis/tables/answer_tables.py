"""Answers of `ambjudge ask` as tables: written, read back, and as a column of the run frame.

- `answer_rows`, `schema_of`: one row a run, for CSV and Parquet
- `read_answers(file)`: run_id, sha256, answer, of one question
- `with_answers(frame, answers, name)`: the run frame with the answers as one more column

An answer is Boolean (yes or no), a number, or text (an option, a sentence, JSON). It is null if
the judge could not tell or its reply failed.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl

from ...errors import InputError
from ...trajectories.reading.json_bytes import read_jsonl
from ...trajectories.reading.table_errors import table_errors
from .spreadsheets import from_csv

if TYPE_CHECKING:
    from ...judge.ad_hoc import RunAnswer

_TEXT, _REAL, _WHOLE = pl.String, pl.Float64, pl.Int64
_KINDS: dict[str, Any] = {
    "yes_no": pl.Boolean,
    "number": _REAL,
    "choice": _TEXT,
    "text": _TEXT,
    "json": _TEXT,
}
_FITS: dict[str, tuple[type, ...]] = {
    "yes_no": (bool,),
    "number": (int, float),
    "choice": (str,),
    "text": (str,),
    "json": (object,),
}
_BEFORE: dict[str, Any] = {
    "run_id": _TEXT,
    "path": _TEXT,
    "sha256": _TEXT,
    "agent": _TEXT,
    "model": _TEXT,
    "task": _TEXT,
    "track": _TEXT,
    "tier": _TEXT,
    "repeat": _WHOLE,
    "question": _TEXT,
    "kind": _TEXT,
    "judge": _TEXT,
    "status": _TEXT,
    "reason": _TEXT,
    "detail": _TEXT,
}
_AFTER: dict[str, Any] = {
    "turns": pl.List(_WHOLE),
    "quotes": _WHOLE,
    "quotes_verified": _WHOLE,
    "quotes_moved": _WHOLE,
    "quote": _TEXT,
    "rationale": _TEXT,
    "votes": _TEXT,
}
_SCHEMA = "ambjudge.answer/1"
_HINT = "give a file that `ambjudge ask --out` wrote"
_Key = TypeVar("_Key", bound=Hashable)


def schema_of(kind: str) -> dict[str, Any]:
    """Columns of a table of answers of this kind: yes_no, choice, number, text or json.

    `turns` are those of the quotes, 0 being plan and brief; `quote` is the first one that was
    found; `votes` is JSON.
    """
    return {**_BEFORE, "answer": _KINDS[kind], **_AFTER}


def answer_rows(answers: Iterable[RunAnswer]) -> Iterator[tuple[Any, ...]]:
    """One row for each run, with the columns of `schema_of`."""
    for answer in answers:
        run, checks = answer.run, [quote.check for quote in answer.quotes]
        verified = [quote.quote for quote in answer.quotes if quote.check != "not_found"]
        votes = [vote.model_dump(mode="json") for vote in answer.votes]
        yield (
            run.id,
            run.path,
            run.sha256,
            run.agent,
            run.model,
            run.task,
            run.track,
            run.tier,
            run.repeat,
            answer.question,
            answer.kind,
            answer.judge.name,
            answer.status,
            answer.reason,
            answer.detail,
            _cell(answer.answer, answer.kind),
            list(answer.turns),
            len(checks),
            checks.count("verified"),
            checks.count("moved"),
            verified[0] if verified else None,
            answer.rationale,
            json.dumps(votes, ensure_ascii=False) if votes else None,
        )


def _cell(answer: Any, kind: str) -> Any:
    """An answer as a cell of a column of its kind."""
    if answer is None or kind in ("yes_no", "choice", "text"):
        return answer
    if kind == "number":
        return float(answer)
    return json.dumps(answer, ensure_ascii=False, sort_keys=True)


def read_answers(path: str | Path) -> pl.DataFrame:
    """Read a .jsonl, .csv or .parquet file of `ambjudge ask`: one row for each run.

    Columns: run_id, sha256 (of the conversation; null: any version of that run) and answer.
    InputError for another file, for answers to several questions or of several judges, and for two
    different answers about one run.
    """
    path = Path(path)
    rows = list(_lines(path) if path.suffix in (".jsonl", ".ndjson", ".json") else _table(path))
    if not rows:
        raise InputError("holds no answers", _HINT, path)
    questions = sorted(
        {(str(row["question"]), str(row["judge"]), str(row["kind"])) for row in rows}
    )
    if len(questions) > 1:
        listed = "; ".join(f"{text!r} by {judge} ({kind})" for text, judge, kind in questions[:3])
        raise InputError(
            f"holds answers to {len(questions)} questions or of several judges: {listed}",
            "give one file for each",
            path,
        )
    answers: dict[tuple[str, str | None], Any] = {}
    for row in rows:
        run = row["run_id"], row["sha256"]
        if answers.setdefault(run, row["answer"]) != row["answer"]:
            raise InputError(
                f"holds two answers about run {run[0]!r}", "give one file for each", path
            )
    kind = questions[0][2]
    table = [(*run, answer) for run, answer in answers.items()]
    schema = {"run_id": _TEXT, "sha256": _TEXT, "answer": _KINDS[kind]}
    return pl.DataFrame(table, schema=schema, orient="row")


def with_answers(frame: pl.DataFrame, answers: pl.DataFrame, name: str) -> pl.DataFrame:
    """Add a column of answers (`read_answers`) to a run frame.

    A run is looked up by its id and the hash of its conversation, then by the hash alone, then
    among answers without a hash by its id; a run without a hash by its id. Runs without an answer
    are null. InputError for the name of an existing column, and if no run has an answer.
    """
    if not name or name in frame.columns:
        raise InputError(
            f"the column name {name!r} is empty or taken",
            "choose another name",
        )
    lookup = _AnswerLookup(answers)
    column = [lookup.find(id, sha) for id, sha in frame.select("run_id", "sha256").iter_rows()]
    if all(answer is _NO_ANSWER for answer in column):
        raise InputError(
            f"none of the {answers.height} answers for {name!r} is about these runs",
            "ask about the same runs",
        )
    values = [None if answer is _NO_ANSWER else answer for answer in column]
    return frame.with_columns(pl.Series(name, values, dtype=answers.schema["answer"]))


_NO_ANSWER = object()


class _AnswerLookup:
    """Answers by id and hash; by one of them alone where that is unambiguous."""

    def __init__(self, answers: pl.DataFrame) -> None:
        rows = list(answers.select("run_id", "sha256", "answer").iter_rows())
        self._by_both = {(id, sha): answer for id, sha, answer in rows}
        self._by_hash = _unambiguous((sha, answer) for _, sha, answer in rows if sha is not None)
        self._by_id = _unambiguous((id, answer) for id, _, answer in rows)
        self._without_hash = _unambiguous((id, answer) for id, sha, answer in rows if sha is None)

    def find(self, id: str, sha: str | None) -> Any:
        """The answer about a run, _NO_ANSWER if there is none."""
        if sha is None:
            return self._by_id.get(id, _NO_ANSWER)
        if (id, sha) in self._by_both:
            return self._by_both[id, sha]
        if sha in self._by_hash:
            return self._by_hash[sha]
        return self._without_hash.get(id, _NO_ANSWER)


def _unambiguous(pairs: Iterable[tuple[_Key, Any]]) -> dict[_Key, Any]:
    """Key -> answer; keys with different answers are left out."""
    answers: dict[_Key, Any] = {}
    conflicting = set()
    for key, answer in pairs:
        if answers.setdefault(key, answer) != answer:
            conflicting.add(key)
    return {key: answer for key, answer in answers.items() if key not in conflicting}


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """The answers of a JSON Lines file."""
    for number, line in read_jsonl(path):
        if isinstance(line, InputError):
            raise line
        run, judge = line.get("run"), line.get("judge")
        is_answer = line.get("schema") == _SCHEMA
        if not is_answer or not isinstance(run, dict) or not isinstance(judge, dict):
            raise InputError(f"line {number} is not an answer (schema {_SCHEMA})", _HINT, path)
        keys = {"run_id": run.get("id"), "sha256": run.get("sha256"), "judge": judge.get("name")}
        yield _checked({**line, **keys}, number, path)


def _table(path: Path) -> Iterator[dict[str, Any]]:
    """The answers of a Parquet or CSV file."""
    columns = ["run_id", "sha256", "question", "kind", "judge", "status", "answer"]
    is_parquet = path.suffix == ".parquet"
    with table_errors(path, "not a readable table of answers", _HINT):
        if is_parquet:
            table = pl.read_parquet(path, columns=columns)
        else:
            table = from_csv(pl.read_csv(path, columns=columns, infer_schema=False))
    for number, row in enumerate(table.iter_rows(named=True), 1):
        # Parquet keeps types, but holds JSON as text.
        if not is_parquet or row["kind"] == "json":
            row["answer"] = _parse_cell(row["answer"], row["kind"])
        yield _checked(row, number, path)


def _parse_cell(text: str | None, kind: Any) -> Any:
    """A text cell as a value of its kind; `_checked` refuses a text that is no such value."""
    if text is None or kind not in ("yes_no", "number", "json"):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _checked(row: dict[str, Any], number: int, path: Path) -> dict[str, Any]:
    """The row with its answer as a cell of its kind; InputError if it cannot be one."""
    kind, answer, sha = row.get("kind"), row.get("answer"), row.get("sha256")
    has_texts = all(isinstance(row.get(key), str) for key in ("run_id", "question", "judge"))
    if kind not in _KINDS or not has_texts or not isinstance(sha, str | None):
        message = f"record {number} is not an answer: run, question, kind or judge is missing"
        raise InputError(message, _HINT, path)
    if row.get("status") != "scored":
        answer = None
    elif not isinstance(answer, _FITS[kind]) or (kind == "number" and isinstance(answer, bool)):
        message = f"record {number}: the answer is not {kind.replace('_', '/')}"
        raise InputError(message, _HINT, path)
    return {**row, "sha256": sha or None, "answer": _cell(answer, kind)}
