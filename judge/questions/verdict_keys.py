"""Verdict keys: the SHA-256 of everything that decided a verdict.

A key keeps its parts, so that a diff can say what changed. It covers the criterion (text, scale,
conditions: `rubrics.load.criterion_sha256`; never its weight), the evidence bytes, the judge's
name, its prompt files, its parameters (model, temperature, API base, ...) and the sample's number.
It does not cover the run: two runs that show a judge the same evidence are the same question.

Beside them the module has the keys of what rests on verdicts or precedes them: of scorecards
(`CardKeys`) and of remembered evidence hashes (`EvidenceContexts`).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from ...rubrics.load import criterion_sha256
from ...rubrics.model import Criterion
from ...trajectories.models import Tier, TrackName
from ...trajectories.reading.remote import RemotePath
from ..base import Judge, QuestionName

KeyPart = Literal["criterion", "evidence", "prompt", "judge", "parameters", "sample"]
"""The parts of a key; a verdict goes stale when one of them changes."""

BASIS = "basis"
"""Stands for the rubric in the key of what scores rest on beside it (`basis.ScoreBasis`)."""
_FORMAT = "ambjudge.verdict/1"
_CODE_ROOMS = ("trajectories", "rubrics", "error_codes", "judge")
_MAX_DEPTH, _MAX_ENTRIES = 3, 100_000
"""Levels of folders below the public inputs, and entries in all, that are checked for changes."""


class JudgeIdentity(BaseModel):
    """The parts of a key that are the same for all verdicts of one judge."""

    model_config = ConfigDict(frozen=True)

    judge: str
    prompt_sha256: str | None
    parameters: str
    """Canonical JSON."""


class VerdictKey(BaseModel):
    """A key and its parts; the store looks up `sha256`."""

    model_config = ConfigDict(frozen=True)

    criterion_id: str
    criterion_sha256: str
    evidence_sha256: str
    judge: str
    prompt_sha256: str | None
    parameters: str
    """Canonical JSON."""
    sample: int
    sha256: str

    def changed_from(self, other: VerdictKey) -> tuple[KeyPart, ...]:
        """The parts in which this key differs from another, in a fixed order."""
        pairs: tuple[tuple[KeyPart, object, object], ...] = (
            ("criterion", self.criterion_sha256, other.criterion_sha256),
            ("evidence", self.evidence_sha256, other.evidence_sha256),
            ("prompt", self.prompt_sha256, other.prompt_sha256),
            ("judge", self.judge, other.judge),
            ("parameters", self.parameters, other.parameters),
            ("sample", self.sample, other.sample),
        )
        return tuple(part for part, value, other_value in pairs if value != other_value)


class KeyMaker:
    """Makes the keys of one criterion under one judge.

    The evidence comes last in the hashed text, so that everything before it is hashed once:
    planning over thousands of stored runs consists mostly of this.
    """

    def __init__(
        self, judge: JudgeIdentity, criterion_id: str, criterion_sha256: str, sample: int = 0
    ) -> None:
        self._judge = judge
        self._criterion_id, self._criterion_sha256 = criterion_id, criterion_sha256
        self._sample = sample
        head = [
            _FORMAT,
            judge.judge,
            judge.prompt_sha256,
            judge.parameters,
            criterion_sha256,
            sample,
        ]
        self._head_hash = hashlib.sha256(canonical_json(head).encode())

    def sha256(self, evidence_sha256: str) -> str:
        """The hash of a key alone."""
        return self.sha256_of_json(canonical_json(evidence_sha256).encode())

    def sha256_of_json(self, evidence: bytes) -> str:
        """The hash of a key, for an evidence hash that is canonical JSON already."""
        key_hash = self._head_hash.copy()
        key_hash.update(evidence)
        return key_hash.hexdigest()

    def key(self, evidence_sha256: str) -> VerdictKey:
        """A key with its parts."""
        return VerdictKey(
            criterion_id=self._criterion_id,
            criterion_sha256=self._criterion_sha256,
            evidence_sha256=evidence_sha256,
            judge=self._judge.judge,
            prompt_sha256=self._judge.prompt_sha256,
            parameters=self._judge.parameters,
            sample=self._sample,
            sha256=self.sha256(evidence_sha256),
        )


@lru_cache(maxsize=4_096)
def key_maker(judge: JudgeIdentity, criterion: Criterion, sample: int = 0) -> KeyMaker:
    """Makes the keys of a criterion's verdicts by this judge."""
    return KeyMaker(judge, criterion.id, criterion_sha256(criterion), sample)


def identity(judge: Judge) -> JudgeIdentity:
    """The judge's parts of a key. A panel's members are part of its parameters."""
    parameters: dict[str, object] = dict(judge.parameters)
    if judge.members:
        parameters["members"] = list(judge.members)
    return JudgeIdentity(
        judge=judge.name, prompt_sha256=judge.prompt_sha256, parameters=canonical_json(parameters)
    )


class EvidenceContexts:
    """Hashes of what the evidence of a question depends on besides the run's files.

    That is the judge, a track or tier that the user named instead of the files, the public inputs
    (`inputs_stamp`), and our code. The store remembers evidence hashes under (run content,
    context), so that unchanged runs are not rendered again. Any edit of the code that reads, checks
    or renders changes the context: that costs a new rendering, never a call.

    Each context is computed once; the public inputs are assumed not to change meanwhile.
    """

    def __init__(self, judge: JudgeIdentity) -> None:
        self._judge_parts = [judge.judge, judge.prompt_sha256, judge.parameters]
        self._inputs_stamp = cache(inputs_stamp)
        self.context = cache(self._compute)

    def _compute(
        self,
        question: QuestionName,
        track: TrackName | None,
        tier: Tier | None,
        public: Path | None = None,
    ) -> str:
        inputs = self._inputs_stamp(public)
        parts = [*self._judge_parts, question, track, tier, inputs, code_sha256()]
        return hashlib.sha256(canonical_json(parts).encode()).hexdigest()


class CardKeys:
    """Keys of scorecards: the hash of everything that decides one, except the run's verdicts.

    `decided_by` is whatever is the same for all runs of a session (judge, questions, policy, track,
    tier, public inputs). Our code, and what detectors of other packages add to it,
    count too.
    """

    def __init__(self, *decided_by: object) -> None:
        self._prefix_hash = hashlib.sha256(canonical_json([*decided_by, code_sha256()]).encode())

    def key(self, path: Path, content_sha256: str, rubric_sha256: str) -> str:
        """The key of the scorecard of the run at this path, wherever the command was started."""
        key_hash = self._prefix_hash.copy()
        location = path if isinstance(path, RemotePath) else os.path.abspath(path)
        parts = f"\0{location}\0{content_sha256}\0{rubric_sha256}"
        key_hash.update(parts.encode("utf-8", "backslashreplace"))
        return key_hash.hexdigest()


def inputs_stamp(public: Path | None) -> str | None:
    """The state of the public inputs: folder, number and size of entries, time of the last change.

    Every entry is looked at, so cache the result for as long as they are assumed not to change.
    """
    if public is None:
        return None
    count = size = latest_ns = 0
    folders = [(str(public.absolute()), 0)]
    while folders and count < _MAX_ENTRIES:
        folder, depth = folders.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    status = entry.stat()
                    count += 1
                    size += status.st_size
                    latest_ns = max(latest_ns, status.st_mtime_ns)
                    if entry.is_dir() and depth < _MAX_DEPTH:
                        folders.append((entry.path, depth + 1))
        except OSError:  # What cannot be read is no input of the checks either.
            continue
    return canonical_json([str(public.absolute()), latest_ns, count, size])


@cache
def code_sha256() -> str:
    """Hash of the source and data files that turn a run into evidence, those of plugins too."""
    from ...error_codes.registry import detector_packages
    from ...plugins import stamps
    from ...tracks import TRACKS

    digest = hashlib.sha256("\n".join((*stamps(TRACKS), *detector_packages())).encode())
    root = Path(__file__).parents[2]
    paths = [root / "tracks.py"]
    for room in _CODE_ROOMS:
        paths += _source_files(root / room)
    for path in paths:
        digest.update(f"\0{path.relative_to(root).as_posix()}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _source_files(folder: Path) -> list[Path]:
    """Every source file below a folder, data in YAML included, in the order of their names."""
    return sorted(path for path in folder.rglob("*") if path.suffix in (".py", ".yaml"))


def canonical_json(value: Any) -> str:
    """One spelling for equal values: sorted keys, no spaces, ASCII.

    Raises ValueError for NaN and infinities.
    """
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), allow_nan=False, default=_json_value
    )


def _json_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} cannot be part of a verdict key")
