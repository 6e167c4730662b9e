"""Answers of `ambjudge ask` as tables: rows for files, such files read back, and answers as a
column of the run frame.

- `answer_rows`, `schema_of`: one row a run, for CSV and Parquet
- `read_answers(file)`: run_id, sha256, answer, of one question
- `with_answers(frame, answers, name)`: the run frame with the answers as one more column

An answer is Boolean (yes or no), a number, or text (an option, a sentence, JSON). What has no
answer, be it that the judge could not tell or that its reply failed, is null.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping
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
_K = TypeVar("_K", bound=Hashable)


def schema_of(kind: str) -> dict[str, Any]:
    """Columns of a table of answers of this kind (yes_no, choice, number, text, json). `turns` are
    those that the quotes stand in, 0 being plan and brief; `quote` is the first one that was found;
    `votes` is JSON."""
    return {**_BEFORE, "answer": _KINDS[kind], **_AFTER}


def answer_rows(answers: Iterable[RunAnswer]) -> Iterator[tuple[Any, ...]]:
    """One row a run, as `schema_of` says."""
    for one in answers:
        run, checks = one.run, [quote.check for quote in one.quotes]
        found = next((quote.quote for quote in one.quotes if quote.check != "not_found"), None)
        votes = [vote.model_dump(mode="json") for vote in one.votes]
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
            one.question,
            one.kind,
            one.judge.name,
            one.status,
            one.reason,
            one.detail,
            _cell(one.answer, one.kind),
            list(one.turns),
            len(checks),
            checks.count("verified"),
            checks.count("moved"),
            found,
            one.rationale,
            json.dumps(votes, ensure_ascii=False) if votes else None,
        )


def _cell(answer: Any, kind: str) -> Any:
    if answer is None or kind in ("yes_no", "choice", "text"):
        return answer
    return (
        float(answer)
        if kind == "number"
        else json.dumps(answer, ensure_ascii=False, sort_keys=True)
    )


def read_answers(path: str | Path) -> pl.DataFrame:
    """run_id, sha256 (of the conversation; null: any version of that run) and answer, one row a
    run, from a .jsonl, .csv or .parquet file of `ambjudge ask`.

    InputError for a file that is none, that holds answers to several questions or of several
    judges, or two different answers of one run.
    """
    path = Path(path)
    rows = list(_lines(path) if path.suffix in (".jsonl", ".ndjson", ".json") else _table(path))
    if not rows:
        raise InputError("holds no answers", _HINT, path)
    asked = sorted({(str(row["question"]), str(row["judge"]), str(row["kind"])) for row in rows})
    if len(asked) > 1:
        told = "; ".join(f"{question!r} by {judge} ({kind})" for question, judge, kind in asked[:3])
        raise InputError(
            f"holds answers to {len(asked)} questions or of several judges: {told}",
            "one file each",
            path,
        )
    said: dict[tuple[str, str | None], Any] = {}
    for row in rows:
        run = row["run_id"], row["sha256"]
        if said.setdefault(run, row["answer"]) != row["answer"]:
            raise InputError(f"holds two answers of run {run[0]!r}", "one file each", path)
    table = [(*run, answer) for run, answer in said.items()]
    return pl.DataFrame(
        table,
        schema={"run_id": _TEXT, "sha256": _TEXT, "answer": _KINDS[asked[0][2]]},
        orient="row",
    )


def with_answers(frame: pl.DataFrame, answers: pl.DataFrame, name: str) -> pl.DataFrame:
    """The run frame (run_id, sha256, ...) with a column of answers (`read_answers`).

    A run is found by the hash of its conversation, with its id where one conversation has several
    answers; only where a hash is missing by its id alone. Runs without an answer are null.
    InputError for a name that the frame has already, or when no run has an answer.
    """
    if not name or name in frame.columns:
        raise InputError(
            f"a column cannot be called {name!r}",
            "it is empty or there is one already; choose another name",
        )
    rows = [((id, sha), answer) for id, sha, answer in answers.iter_rows()]
    exact = dict(rows)
    by_hash = _agreed((sha, answer) for (_, sha), answer in rows if sha is not None)
    by_id = _agreed((id, answer) for (id, _), answer in rows)
    loose = _agreed((id, answer) for (id, sha), answer in rows if sha is None)
    found, matched = [], 0
    for id, sha in frame.select("run_id", "sha256").iter_rows():
        where: tuple[tuple[Mapping[Any, Any], Any], ...] = (
            (exact, (id, sha)),
            (by_hash, sha),
            (loose, id),
        )
        if sha is None:
            where = ((by_id, id),)
        known = next((table[key] for table, key in where if key in table), _NONE)
        matched += known is not _NONE
        found.append(None if known is _NONE else known)
    if not matched:
        raise InputError(
            f"none of the {answers.height} answers for {name!r} is of these runs",
            "ask about the same runs",
        )
    return frame.with_columns(pl.Series(name, found, dtype=answers.schema["answer"]))


_NONE = object()


def _agreed(pairs: Iterable[tuple[_K, Any]]) -> dict[_K, Any]:
    """One answer a key; keys with different ones are left out."""
    found: dict[_K, Any] = {}
    torn = {key for key, answer in pairs if found.setdefault(key, answer) != answer}
    return {key: answer for key, answer in found.items() if key not in torn}


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for number, line in read_jsonl(path):
        if isinstance(line, InputError):
            raise line
        run, judge = line.get("run"), line.get("judge")
        if (
            line.get("schema") != _SCHEMA
            or not isinstance(run, dict)
            or not isinstance(judge, dict)
        ):
            raise InputError(f"line {number} is no answer (schema {_SCHEMA})", _HINT, path)
        yield _checked(
            {
                **line,
                "run_id": run.get("id"),
                "sha256": run.get("sha256"),
                "judge": judge.get("name"),
            },
            number,
            path,
        )


def _table(path: Path) -> Iterator[dict[str, Any]]:
    needed = ("run_id", "sha256", "question", "kind", "judge", "status", "answer")
    with table_errors(path, "no readable table of answers", _HINT):
        if path.suffix == ".parquet":
            table = pl.read_parquet(path, columns=list(needed))
        else:
            table = from_csv(pl.read_csv(path, columns=list(needed), infer_schema=False))
    for number, row in enumerate(table.iter_rows(named=True), 1):
        if path.suffix != ".parquet":
            row["answer"] = _typed(row["answer"], row["kind"])
        elif row["kind"] == "json" and row["answer"] is not None:
            row["answer"] = _typed(row["answer"], "json")
        yield _checked(row, number, path)


def _typed(text: str | None, kind: Any) -> Any:
    """A cell of CSV as what it was; what is none of its kind stays text, and `_checked` complains."""
    if text is None or kind not in ("yes_no", "number", "json"):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _checked(row: dict[str, Any], number: int, path: Path) -> dict[str, Any]:
    """The row with its answer as a cell of its kind; InputError for what cannot be one."""
    kind, answer, texts = (
        row.get("kind"),
        row.get("answer"),
        [row.get(k) for k in ("run_id", "question", "judge")],
    )
    sha = row.get("sha256")
    if (
        kind not in _KINDS
        or not all(isinstance(text, str) for text in texts)
        or not isinstance(sha, str | None)
    ):
        raise InputError(
            f"record {number} is no answer: run, question, kind or judge is missing", _HINT, path
        )
    fits: tuple[type, ...] = _FITS[kind]
    if row.get("status") != "scored":
        answer = None
    elif not isinstance(answer, fits) or (kind == "number" and isinstance(answer, bool)):
        raise InputError(f"record {number}: the answer is no {kind.replace('_', '/')}", _HINT, path)
    return {**row, "sha256": sha or None, "answer": _cell(answer, kind)}
