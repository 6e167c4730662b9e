"""Verdict keys: the SHA-256 of everything that decided a verdict, with its parts kept so that a
diff can say what changed.

A key covers the criterion (text, scale, conditions: `rubrics.load.criterion_sha256`; never its
weight), the evidence bytes, the judge's name, its prompt files, its parameters (model, temperature,
API base, ...) and the sample index. It does not cover the run: two runs that show a judge the same
evidence are the same question.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from ...trajectories.models import Tier, TrackName
from ..base import Judge, QuestionName

KeyPart = Literal["criterion", "evidence", "prompt", "judge", "parameters", "sample"]
"""What a verdict can go stale by."""

_VERSION = "ambjudge.verdict/1"
_CODE = ("trajectories", "rubrics", "error_codes", "judge")
_DEEP, _MOST = 3, 100_000
"""Levels of folders below the public inputs, and entries in all, that are looked at for changes."""


class JudgeIdentity(BaseModel):
    """Who judges, and how: the parts of a key that are the same for all verdicts of one judge."""

    model_config = ConfigDict(frozen=True)

    judge: str
    prompt_sha256: str | None
    parameters: str
    """Canonical JSON."""


class VerdictKey(BaseModel):
    """A key and its parts. `sha256` is what the store looks up."""

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
        """The parts in which this key differs from another one, in a fixed order; empty for equal
        keys."""
        pairs: tuple[tuple[KeyPart, object, object], ...] = (
            ("criterion", self.criterion_sha256, other.criterion_sha256),
            ("evidence", self.evidence_sha256, other.evidence_sha256),
            ("prompt", self.prompt_sha256, other.prompt_sha256),
            ("judge", self.judge, other.judge),
            ("parameters", self.parameters, other.parameters),
            ("sample", self.sample, other.sample),
        )
        return tuple(part for part, mine, theirs in pairs if mine != theirs)


class KeyMaker:
    """Keys of one criterion under one judge. The evidence comes last in the hashed text, so that
    all that precedes it is hashed once: planning over thousands of stored runs is mostly this."""

    def __init__(
        self, who: JudgeIdentity, criterion_id: str, criterion_sha256: str, sample: int = 0
    ) -> None:
        self._who, self._id, self._criterion, self._sample = (
            who,
            criterion_id,
            criterion_sha256,
            sample,
        )
        head = canonical_json(
            [_VERSION, who.judge, who.prompt_sha256, who.parameters, criterion_sha256, sample]
        )
        self._prefix = hashlib.sha256(head.encode())

    def sha256(self, evidence_sha256: str) -> str:
        """The key alone."""
        return self.sha256_of(canonical_json(evidence_sha256).encode())

    def sha256_of(self, evidence: bytes) -> str:
        """The same for evidence that is canonical JSON already."""
        digest = self._prefix.copy()
        digest.update(evidence)
        return digest.hexdigest()

    def key(self, evidence_sha256: str) -> VerdictKey:
        return VerdictKey(
            criterion_id=self._id,
            criterion_sha256=self._criterion,
            evidence_sha256=evidence_sha256,
            judge=self._who.judge,
            prompt_sha256=self._who.prompt_sha256,
            parameters=self._who.parameters,
            sample=self._sample,
            sha256=self.sha256(evidence_sha256),
        )


def identity(judge: Judge) -> JudgeIdentity:
    """The judge's parts of a key. A panel's members are part of its parameters."""
    parameters: dict[str, object] = dict(judge.parameters)
    if judge.members:
        parameters["members"] = list(judge.members)
    return JudgeIdentity(
        judge=judge.name, prompt_sha256=judge.prompt_sha256, parameters=canonical_json(parameters)
    )


class EvidenceContexts:
    """What the evidence of a question depends on besides the run's files, as a hash: the judge, a
    track or tier that the user named instead of the files, the public inputs (`inputs_stamp`), and
    our code.

    The store remembers evidence hashes under (run content, this), so that unchanged runs are not
    rendered again. Any edit of the code that reads, checks or renders changes it: that costs a new
    rendering, never a call. Each is worked out once, and the public inputs are held for unchanged
    meanwhile.
    """

    def __init__(self, who: JudgeIdentity) -> None:
        self._head = [who.judge, who.prompt_sha256, who.parameters]
        self._stamp, self.of = cache(inputs_stamp), cache(self._of)

    def _of(
        self,
        question: QuestionName,
        track: TrackName | None,
        tier: Tier | None,
        public: Path | None = None,
    ) -> str:
        parts = [*self._head, question, track, tier, self._stamp(public), code_sha256()]
        return hashlib.sha256(canonical_json(parts).encode()).hexdigest()


class CardKeys:
    """Keys of scorecards: everything that decides one, as a hash, the run's verdicts apart.
    `decided_by` holds whatever is the same for all runs of a session (judge, questions, rubric,
    policy, track, tier, public inputs); our code and what a detector of another package adds to it
    count too."""

    def __init__(self, *decided_by: object) -> None:
        self._prefix = hashlib.sha256(canonical_json([*decided_by, code_sha256()]).encode())

    def of(self, path: Path, content_sha256: str) -> str:
        """The key of the card of the run at this path, as the card names it."""
        digest = self._prefix.copy()
        digest.update(f"\0{path}\0{content_sha256}".encode("utf-8", "backslashreplace"))
        return digest.hexdigest()


def inputs_stamp(public: Path | None) -> str | None:
    """The folder of public inputs: where it is, how many entries it has, their size, and when one
    was last changed.

    Looks at every entry, so keep what it says for as long as they are held for unchanged.
    """
    if public is None:
        return None
    count = size = latest = 0
    folders = [(str(public.absolute()), 0)]
    while folders and count < _MOST:
        folder, depth = folders.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    status = entry.stat()
                    count, size, latest = (
                        count + 1,
                        size + status.st_size,
                        max(latest, status.st_mtime_ns),
                    )
                    if entry.is_dir() and depth < _DEEP:
                        folders.append((entry.path, depth + 1))
        except OSError:  # what cannot be read is no input for the checks either
            continue
    return canonical_json([str(public.absolute()), latest, count, size])


@cache
def code_sha256() -> str:
    """Of the source and data files that turn a run into evidence, and of the packages that take
    part in it."""
    from ...error_codes.registry import detector_packages
    from ...plugins import stamps
    from ...tracks import TRACKS

    digest = hashlib.sha256("\n".join((*stamps(TRACKS), *detector_packages())).encode())
    root = Path(__file__).parents[2]
    for path in (root / "tracks.py", *(path for room in _CODE for path in _sources(root / room))):
        digest.update(f"\0{path.relative_to(root).as_posix()}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _sources(folder: Path) -> list[Path]:
    """Every source file of a folder and those below it, patterns kept as data included, in the
    order of their names."""
    return sorted(path for path in folder.rglob("*") if path.suffix in (".py", ".yaml"))


def canonical_json(value: Any) -> str:
    """One spelling for equal values: sorted keys, no spaces, ASCII. Raises ValueError for NaN and
    infinities."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} cannot be part of a verdict key")
