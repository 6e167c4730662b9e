"""Loads rubrics from YAML: read, validated with line numbers, hashed by meaning.

- `load_rubric(id_or_path)`: a built-in rubric by its id, or any file.
- `rubric_for(track, task, preferred)`: the rubric that judges a run.
- `validate_file(path)`: every problem of a file; `file_notes(path)`: what may be unintended.
- `criterion_sha256`, `rubric_sha256`: the keys of verdicts and scorecards.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
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

RubricNames = Rubric | str | Path | Iterable[Rubric | str | Path] | None
"""Rubrics as a user names them: by id, file or folder of files; one, several or none."""
_FOLDER = Path(__file__).parent
_FALLBACK = "workflow"
"""Id of the rubric for tracks that have none, derived from the shared workflow."""
_STARTER = _FOLDER / "starter.txt"
BINARY: tuple[dict[str, Any], ...] = (
    {"value": 1.0, "text": "Yes, and evidence shows it."},
    {"value": 0.0, "text": "No, or nothing shows it."},
)
"""What `scale: binary` stands for."""


@lru_cache(maxsize=1)
def _rubric_files() -> dict[str, tuple[Path, bool]]:
    """The file of each rubric by id, and whether it ships with ambjudge.

    Tracks of other packages add theirs; one with the id of another rubric is left out.
    """
    files = {path.stem: (path, True) for path in sorted(_FOLDER.glob("*.yaml"))}
    for track in TRACKS:
        for rubric in track.rubrics:
            if not isinstance(rubric, Path):
                continue
            if rubric.stem in files:
                warn(
                    f"rubric {rubric} left out: another one has the id {rubric.stem} (rename the"
                    " file and its id)"
                )
            else:
                files[rubric.stem] = rubric, False
    return files


def builtin_ids() -> tuple[str, ...]:
    """Ids of the rubrics that come with the package and with tracks of other packages."""
    return tuple(_rubric_files())


def load_rubric(id_or_path: Rubric | str | Path) -> Rubric:
    """The built-in rubric with this id, or the rubric of a file.

    A file is a `Path`, or text with `/` or a suffix. A loaded rubric is returned as it is. Raises
    RubricError with file, line, column and what was expected; of several problems, the first.
    """
    if isinstance(id_or_path, Rubric):
        return id_or_path
    if isinstance(id_or_path, str) and not _looks_like_path(id_or_path):
        _check_id(id_or_path)
        return _load_builtin(id_or_path)
    path = Path(id_or_path)
    document = read_document(path)
    problems = find_problems(document)
    if problems:
        first = problems[0]
        hint = first.hint
        if len(problems) > 1:
            hint += f"; {len(problems) - 1} more: ambjudge rubric validate {path}"
        raise error_at(path, (first.line, first.column), first.message, hint)
    return build_rubric(document)


def _looks_like_path(text: str) -> bool:
    return any(character in text for character in "/\\.")


def _check_id(rubric_id: str) -> None:
    ids = builtin_ids()
    if rubric_id not in ids:
        suggestion = did_you_mean(rubric_id[:80], ids)
        hint = suggestion or f"one of {', '.join(ids)}, or a .yaml file"
        raise RubricError(f"unknown rubric {rubric_id[:80]!r}", hint)


@lru_cache(maxsize=64)
def _load_builtin(rubric_id: str) -> Rubric:
    path, is_shipped = _rubric_files()[rubric_id]
    # Tests validate the shipped ones: the JSON Schema costs more than all the rest of loading.
    return build_rubric(read_document(path)) if is_shipped else load_rubric(path)


def rubric_for(
    track: TrackName | None, task: str | None = None, preferred: Iterable[Rubric] = ()
) -> Rubric:
    """The rubric of a track, or its variant whose `tasks` words begin a part of the task's name.

    Tracks without a rubric get `workflow`, the rubric derived from the shared workflow. Of the
    `preferred` ones, the first that is for this track, or for any, is returned instead: an edited
    rubric of one track judges neither runs of another one nor runs whose track is unknown.
    """
    rubrics = [rubric for rubric in preferred if rubric.track in (None, track)]
    if not rubrics:
        definition = TRACKS.find(track)
        rubrics = [] if definition is None else [_load_track_rubric(r) for r in definition.rubrics]
    task_parts = f"-{task.lower().replace('_', '-')}" if task else ""
    for variant in rubrics[1:]:
        if any(f"-{word}" in task_parts for word in variant.tasks):
            return variant
    return rubrics[0] if rubrics else _load_builtin(_FALLBACK)


def _load_track_rubric(rubric: str | Path) -> Rubric:
    return _load_builtin(rubric.stem if isinstance(rubric, Path) else rubric)


def load_rubrics(names: RubricNames) -> tuple[Rubric, ...]:
    """The rubrics of these names: ids, files, folders of files, or Rubrics; none for None.

    RubricError for two rubrics that judge the same runs.
    """
    if names is None:
        return ()
    if isinstance(names, Rubric | str | Path):
        names = [names]
    rubrics: dict[tuple[TrackName | None, tuple[str, ...]], Rubric] = {}
    for name in names:
        for rubric in _load_one_or_folder(name):
            runs = (rubric.track, rubric.tasks)
            if runs in rubrics and rubrics[runs].sha256 != rubric.sha256:
                raise RubricError(
                    f"rubrics {rubrics[runs].id} {rubrics[runs].version} and {rubric.id}"
                    f" {rubric.version} are both for track {rubric.track or 'any'}",
                    "name one of them",
                )
            rubrics[runs] = rubric
    return tuple(rubrics.values())


def _load_one_or_folder(name: Rubric | str | Path) -> list[Rubric]:
    """The rubric of a name, or those of the YAML files in a folder."""
    if isinstance(name, Rubric) or not Path(name).is_dir():
        return [load_rubric(name)]
    files = sorted(path for path in Path(name).iterdir() if path.suffix in (".yaml", ".yml"))
    if not files:
        raise RubricError("holds no rubric", "give a folder of .yaml files", Path(name))
    return [load_rubric(file) for file in files]


def validate_file(path: str | Path) -> list[Problem]:
    """Every problem of a rubric file in order of lines; an unreadable file is one problem."""
    try:
        return find_problems(read_document(Path(path)))
    except RubricError as error:
        return [Problem.from_error(error)]


def file_notes(path: str | Path) -> list[Problem]:
    """What may be unintended in a file without problems."""
    return find_notes(read_document(Path(path)))


def build_rubric(document: Document) -> Rubric:
    """The rubric of a valid document: shorthands expanded, items in canonical order, hash set."""
    rubric = Rubric.model_validate(_canonical(document.value))
    return rubric.model_copy(update={"sha256": rubric_sha256(rubric)})


def _canonical(data: dict[str, Any]) -> dict[str, Any]:
    """The document with its shorthands expanded, and everything without a meaningful order sorted.

    Line breaks inside texts are layout, so every run of white space becomes one space.
    """
    result = {**data, "tasks": sorted(data.get("tasks", ())), "stages": {}}
    for key in ("title", "source", "preamble"):
        if key in data:
            result[key] = _one_line(data[key])
    preamble = {"preamble": result["preamble"]} if "preamble" in data else {}
    for name in sorted(data["stages"]):
        stage = data["stages"][name]
        criteria = [_canonical_criterion(item) | preamble for item in stage.get("criteria", ())]
        result["stages"][name] = {**stage, "criteria": sorted(criteria, key=_criterion_id)}
    return result


def _canonical_criterion(data: dict[str, Any]) -> dict[str, Any]:
    result = dict(data)
    for key in ("title", "text", "source", "conditional"):
        if result.get(key) is not None:
            result[key] = _one_line(result[key])
    scale = BINARY if result["scale"] == "binary" else result["scale"]
    levels = [{"value": level["value"], "text": _one_line(level["text"])} for level in scale]
    result["scale"] = sorted(levels, key=lambda level: -level["value"])
    result["requires"] = sorted(result.get("requires", ()))
    for key, order in (("credit", TIERS), ("tiers", TIERS), ("evidence", EVIDENCE_SCOPES)):
        if result.get(key) is not None:
            result[key] = sorted(set(result[key]), key=order.index)
    return result


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _criterion_id(criterion: dict[str, Any]) -> str:
    return str(criterion["id"])


def rubric_sha256(rubric: Rubric) -> str:
    """Hash of a rubric's meaning; layout, comments and the order of criteria do not count."""
    data = _without_unset(rubric.model_dump(mode="json", exclude={"sha256"}))
    for stage in data["stages"].values():
        stage["criteria"] = sorted(map(_without_unset, stage["criteria"]), key=_criterion_id)
    return _hash(data)


@lru_cache(maxsize=4096)
def criterion_sha256(criterion: Criterion) -> str:
    """Hash of everything in a criterion that decides a verdict.

    Its id, title, text, scale, condition and evidence scopes, and the preamble told before it. Not
    weight, requires, credit, tiers, source: they decide how verdicts are combined, so editing them
    makes none stale. Not `meaning` either: a judge never sees it, and an edit that changes the
    meaning changes the text. The title counts, because a judge may be shown it as a heading:
    reusing a verdict on words that the judge never saw would be wrong, while a needless call costs
    only a few cents.
    """
    return hashlib.sha256(criterion_bytes(criterion)).hexdigest()


def criterion_bytes(criterion: Criterion) -> bytes:
    """What `criterion_sha256` is the hash of: JSON with sorted keys."""
    fields = {"id", "title", "text", "scale", "conditional", "evidence", "preamble"}
    data = _without_unset(criterion.model_dump(mode="json", include=fields))
    data["scale"] = sorted(data["scale"], key=lambda level: -float(level["value"]))
    data["evidence"] = sorted(data["evidence"])
    return _canonical_bytes(data)


def _without_unset(data: dict[str, Any]) -> dict[str, Any]:
    """Leave out `preamble` and `meaning` at their defaults: older hashes were made without them."""
    defaults = {"preamble": None, "meaning": 1}
    return {
        key: value for key, value in data.items() if key not in defaults or value != defaults[key]
    }


def _hash(value: Any) -> str:
    return hashlib.sha256(_canonical_bytes(value)).hexdigest()


def _canonical_bytes(value: Any) -> bytes:
    text = json.dumps(
        value, sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False
    )
    return text.encode()


def starter_rubric(rubric_id: str | None = None) -> str:
    """A valid rubric to start from, as commented YAML.

    A copy of the rubric with this id under another id or, without an id, a rubric of two criteria
    for runs of any kind. Raises RubricError for an unknown id.
    """
    if rubric_id is None:
        return _STARTER.read_text(encoding="utf-8")
    if rubric_id not in builtin_ids():
        load_rubric(rubric_id)  # raises an error, unless it is a file
        raise RubricError(
            f"{rubric_id[:80]!r} is not an id",
            f"copy the file, or give one of {', '.join(builtin_ids())}",
        )
    path, _ = _rubric_files()[rubric_id]
    text = path.read_text(encoding="utf-8")
    return re.sub(rf"^id: *{rubric_id}\b", f"id: my-{rubric_id}", text, count=1, flags=re.MULTILINE)


def dump_rubric(rubric: Rubric) -> str:
    """The rubric as YAML that `load_rubric` reads back to an equal one; comments are lost."""
    import yaml

    data = rubric.model_dump(mode="json", exclude={"sha256"}, exclude_defaults=True)
    for stage in data["stages"].values():
        for criterion in stage.get("criteria", ()):
            criterion.pop("preamble", None)
            if criterion["scale"] == list(BINARY):
                criterion["scale"] = "binary"
    return str(yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=110))
