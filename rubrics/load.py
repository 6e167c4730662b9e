"""Rubrics from YAML: read, validated with line numbers, hashed by meaning.

- `load_rubric(id_or_path)`: a built-in rubric by its id, or any file
- `rubric_for(track, task, given)`: the one that judges a run: the given one, else the built-in one
  that fits
- `validate_file(path)`: every problem of a file; `file_notes(path)`: what is valid and may yet not be
  meant
- `criterion_sha256`, `rubric_sha256`: what verdicts and scorecards are keyed by
"""

from __future__ import annotations

import hashlib
import json
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..errors import RubricError
from ..plugins import warn
from ..tracks import TRACKS
from ..trajectories.models import TIERS, TrackName
from .document import Document, error_at, read_document
from .model import EVIDENCE_SCOPES, Criterion, Rubric
from .validate import Problem, did_you_mean, find_notes, find_problems

_FOLDER = Path(__file__).parent
_FALLBACK = "workflow"
_STARTER = _FOLDER / "starter.txt"
BINARY: tuple[dict[str, Any], ...] = (
    {"value": 1.0, "text": "Yes, and evidence shows it."},
    {"value": 0.0, "text": "No, or nothing shows it."},
)
"""What `scale: binary` stands for."""


@lru_cache(maxsize=1)
def _files() -> dict[str, tuple[Path, bool]]:
    """Rubric id -> its file and whether it is ours: those of this folder, then those that tracks of
    packages bring."""
    found = {path.stem: (path, True) for path in sorted(_FOLDER.glob("*.yaml"))}
    for path in (
        Path(rubric) for track in TRACKS for rubric in track.rubrics if isinstance(rubric, Path)
    ):
        if path.stem in found:
            warn(
                f"rubric {path} left out: one with the id {path.stem} is there already (rename the"
                " file and its id)"
            )
        else:
            found[path.stem] = path, False
    return found


def builtin_ids() -> tuple[str, ...]:
    """Ids of the rubrics that come with the package and with tracks of other packages."""
    return tuple(_files())


def load_rubric(id_or_path: Rubric | str | Path) -> Rubric:
    """The built-in rubric with this id, else the rubric of this file (a `Path`, or a text with `/`
    or a suffix); one that is loaded already as it is.

    Raises RubricError naming file, line, column and what was expected; of several problems the
    first.
    """
    if isinstance(id_or_path, Rubric):
        return id_or_path
    if isinstance(id_or_path, str) and not _looks_like_path(id_or_path):
        if id_or_path not in builtin_ids():
            known = builtin_ids()
            hint = (
                did_you_mean(id_or_path[:80], known)
                or f"one of {', '.join(known)}, or a .yaml file"
            )
            raise RubricError(f"no rubric {id_or_path[:80]!r}", hint)
        return _builtin(id_or_path)
    path = Path(id_or_path)
    document = read_document(path)
    problems = find_problems(document)
    if problems:
        first, more = problems[0], len(problems) - 1
        hint = first.hint + (f"; {more} more: ambjudge rubric validate {path}" if more else "")
        raise error_at(path, (first.line, first.column), first.message, hint)
    return build_rubric(document)


def rubric_for(
    track: TrackName | None, task: str | None = None, given: Rubric | None = None
) -> Rubric:
    """The rubric of a track, or its variant whose `tasks` words begin a part of the task's name.

    Tracks without one get `workflow`, the rubric derived from the shared workflow. `given` is taken
    instead, but for runs whose track is known to be another than its own: an edited rubric of one
    track must not judge the others.
    """
    if given is not None and (given.track is None or track is None or given.track == track):
        return given
    known = TRACKS.find(track)
    rubrics = (
        [_builtin(r.stem if isinstance(r, Path) else r) for r in known.rubrics]
        if known is not None
        else []
    )
    parts = f"-{task.lower().replace('_', '-')}" if task else ""
    for variant in rubrics[1:]:
        if any(f"-{word}" in parts for word in variant.tasks):
            return variant
    return rubrics[0] if rubrics else _builtin(_FALLBACK)


def validate_file(path: str | Path) -> list[Problem]:
    """Every problem of a rubric file in order of lines; an unreadable file is one problem."""
    try:
        return find_problems(read_document(Path(path)))
    except RubricError as error:
        return [Problem.of(error)]


def file_notes(path: str | Path) -> list[Problem]:
    """What may not be meant in a file that has no problem."""
    return find_notes(read_document(Path(path)))


def build_rubric(document: Document) -> Rubric:
    """A rubric from a valid document: shorthands expanded, items in canonical order, hash set."""
    data = expand(document.value)
    rubric = Rubric.model_validate(data)
    return rubric.model_copy(update={"sha256": rubric_sha256(rubric)})


def expand(data: dict[str, Any]) -> dict[str, Any]:
    """The document with its shorthands written out and what has no order in meaning brought into
    one order.

    Line breaks inside texts are layout, so every run of white space becomes one space.
    """
    result = {**data, "tasks": sorted(data.get("tasks", ())), "stages": {}}
    for key in ("title", "source", "preamble"):
        if key in data:
            result[key] = _flat(data[key])
    told = {"preamble": result["preamble"]} if "preamble" in data else {}
    for name in sorted(data["stages"]):
        stage = data["stages"][name]
        items = [_criterion(item) | told for item in stage.get("criteria", ())]
        result["stages"][name] = {**stage, "criteria": sorted(items, key=_id)}
    return result


def _criterion(data: dict[str, Any]) -> dict[str, Any]:
    result = dict(data)
    for key in ("title", "text", "source", "conditional"):
        if result.get(key) is not None:
            result[key] = _flat(result[key])
    scale = BINARY if result["scale"] == "binary" else result["scale"]
    levels = [{"value": level["value"], "text": _flat(level["text"])} for level in scale]
    result["scale"] = sorted(levels, key=lambda level: -level["value"])
    result["requires"] = sorted(result.get("requires", ()))
    for key, order in (("credit", TIERS), ("tiers", TIERS), ("evidence", EVIDENCE_SCOPES)):
        if result.get(key) is not None:
            result[key] = sorted(set(result[key]), key=order.index)
    return result


def _flat(text: str) -> str:
    return " ".join(text.split())


def _id(criterion: dict[str, Any]) -> str:
    return str(criterion["id"])


@lru_cache(maxsize=64)
def _builtin(rubric_id: str) -> Rubric:
    path, ours = _files()[rubric_id]
    # Ours are validated by the tests: the JSON Schema costs more than all the rest of loading.
    return build_rubric(read_document(path)) if ours else load_rubric(path)


def _looks_like_path(text: str) -> bool:
    return any(sign in text for sign in "/\\.")


def _hash(value: Any) -> str:
    text = json.dumps(
        value, sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False
    )
    return hashlib.sha256(text.encode()).hexdigest()


def rubric_sha256(rubric: Rubric) -> str:
    """Hash of a rubric's meaning: the same for any layout, comments, order of keys or of criteria."""
    data = _without_unset(rubric.model_dump(mode="json", exclude={"sha256"}))
    for stage in data["stages"].values():
        stage["criteria"] = sorted(map(_without_unset, stage["criteria"]), key=_id)
    return _hash(data)


def _without_unset(data: dict[str, Any]) -> dict[str, Any]:
    """Leave out `preamble` and `meaning` at their defaults: older hashes were made without them."""
    defaults = {"preamble": None, "meaning": 1}
    return {
        key: value for key, value in data.items() if key not in defaults or value != defaults[key]
    }


@lru_cache(maxsize=4096)
def criterion_sha256(criterion: Criterion) -> str:
    """Hash of everything in a criterion that decides a verdict: id, title, text, scale, condition,
    evidence scopes, and the preamble told before it.

    Not weight, requires, credit, tiers, source: they decide how verdicts are combined, so editing
    them makes none stale. Not `meaning` either: a judge never sees it, and an edit that changes
    the meaning changes the text. The title counts, because a judge may be shown it as a heading:
    reusing a verdict on words that the judge never saw would be wrong, while a needless call is
    only a few cents.
    """
    fields = {"id", "title", "text", "scale", "conditional", "evidence", "preamble"}
    kept = _without_unset(criterion.model_dump(mode="json", include=fields))
    kept["scale"] = sorted(kept["scale"], key=lambda level: -float(level["value"]))
    kept["evidence"] = sorted(kept["evidence"])
    return _hash(kept)


def starter_rubric(rubric_id: str | None = None) -> str:
    """A rubric to begin one's own with, as commented YAML that is valid at once: a copy of the one
    with this id, under an id of its own, or one of two criteria for runs of any kind."""
    if rubric_id is None:
        return _STARTER.read_text(encoding="utf-8")
    if rubric_id not in builtin_ids():
        load_rubric(rubric_id)  # says what is wrong with the id, or that it is a file
        raise RubricError(
            f"{rubric_id[:80]!r} is no id",
            f"copy the file, or give one of {', '.join(builtin_ids())}",
        )
    text = _files()[rubric_id][0].read_text(encoding="utf-8")
    return re.sub(rf"^id: *{rubric_id}\b", f"id: my-{rubric_id}", text, count=1, flags=re.MULTILINE)


def dump_rubric(rubric: Rubric) -> str:
    """The rubric as YAML that `load_rubric` reads back to an equal one; comments are not part of a
    rubric."""
    import yaml

    data = rubric.model_dump(mode="json", exclude={"sha256"}, exclude_defaults=True)
    for stage in data["stages"].values():
        for criterion in stage.get("criteria", ()):
            criterion.pop("preamble", None)
            if criterion["scale"] == list(BINARY):
                criterion["scale"] = "binary"
    return str(yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=110))
