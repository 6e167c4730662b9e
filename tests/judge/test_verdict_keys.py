"""Verdict keys: everything that decides a verdict is in, and nothing else."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from ambjudge.judge.base import Request
from ambjudge.judge.questions.verdict_keys import (
    EvidenceContexts,
    KeyMaker,
    _source_files,
    canonical_json,
    code_sha256,
    identity,
)
from ambjudge.rubrics.load import criterion_sha256, load_rubric
from ambjudge.rubrics.model import Level
from hypothesis import given
from hypothesis import strategies as st

RUBRIC = load_rubric("segmentation")
CRITERION = RUBRIC.criteria("S3")[0]
REQUEST = Request(None, None, RUBRIC, "S3", (CRITERION,))


@dataclass
class SomeJudge:
    name: str = "m"
    prompt_sha256: str | None = "p"
    parameters: dict = field(default_factory=lambda: {"temperature": 0.0, "api_base": None})
    members: tuple[str, ...] = ()
    evidence: str = "e"

    def evidence_sha256(self, request: Request) -> str:
        return self.evidence


def key_of(judge, request, criterion):
    judge_identity = identity(judge)
    return KeyMaker(judge_identity, criterion.id, criterion_sha256(criterion), request.sample).key(
        judge.evidence_sha256(request)
    )


BASE = key_of(SomeJudge(), REQUEST, CRITERION)


@pytest.mark.parametrize(
    ("judge", "request_", "criterion", "parts"),
    [
        pytest.param(SomeJudge(), REQUEST, CRITERION, (), id="same"),
        pytest.param(
            SomeJudge(parameters={"api_base": None, "temperature": 0.0}),
            REQUEST,
            CRITERION,
            (),
            id="order",
        ),
        pytest.param(
            SomeJudge(), REQUEST, CRITERION.model_copy(update={"weight": 9.0}), (), id="weight"
        ),
        pytest.param(
            SomeJudge(),
            REQUEST,
            CRITERION.model_copy(update={"requires": ("S3",)}),
            (),
            id="requires",
        ),
        pytest.param(
            SomeJudge(),
            REQUEST,
            CRITERION.model_copy(update={"credit": ("lite",)}),
            (),
            id="credit",
        ),
        pytest.param(
            SomeJudge(),
            REQUEST,
            CRITERION.model_copy(update={"text": "x"}),
            ("criterion",),
            id="text",
        ),
        pytest.param(
            SomeJudge(),
            REQUEST,
            CRITERION.model_copy(
                update={"scale": (Level(value=1, text="y"), Level(value=0, text="n"))}
            ),
            ("criterion",),
            id="scale",
        ),
        pytest.param(SomeJudge(evidence="f"), REQUEST, CRITERION, ("evidence",), id="evidence"),
        pytest.param(SomeJudge(prompt_sha256="q"), REQUEST, CRITERION, ("prompt",), id="prompt"),
        pytest.param(
            SomeJudge(prompt_sha256=None), REQUEST, CRITERION, ("prompt",), id="no-prompt"
        ),
        pytest.param(SomeJudge(name="n"), REQUEST, CRITERION, ("judge",), id="judge"),
        pytest.param(
            SomeJudge(parameters={"temperature": 0.5, "api_base": None}),
            REQUEST,
            CRITERION,
            ("parameters",),
            id="temperature",
        ),
        pytest.param(
            SomeJudge(parameters={"temperature": 0.0, "api_base": "u"}),
            REQUEST,
            CRITERION,
            ("parameters",),
            id="api-base",
        ),
        pytest.param(
            SomeJudge(members=("a", "b")), REQUEST, CRITERION, ("parameters",), id="members"
        ),
        pytest.param(
            SomeJudge(),
            Request(None, None, RUBRIC, "S3", (CRITERION,), 1),
            CRITERION,
            ("sample",),
            id="sample",
        ),
    ],
)
def test_a_key_changes_with_what_decides_and_says_so(judge, request_, criterion, parts):
    key = key_of(judge, request_, criterion)
    assert key.changed_from(BASE) == parts
    assert (key.sha256 == BASE.sha256) == (not parts)


def test_the_key_is_the_hash_of_its_parts_as_canonical_json():
    parts = [
        "ambjudge.verdict/1",
        "m",
        "p",
        '{"api_base":null,"temperature":0.0}',
        criterion_sha256(CRITERION),
        0,
    ]
    text = json.dumps(parts, separators=(",", ":")) + json.dumps("e")
    assert BASE.sha256 == hashlib.sha256(text.encode()).hexdigest()


@given(st.lists(st.text(), min_size=4, max_size=4), st.lists(st.text(), min_size=4, max_size=4))
def test_no_two_sets_of_parts_share_a_key(a, b):
    def key(parts):
        judge = SomeJudge(name=parts[0], prompt_sha256=parts[1], parameters={"x": parts[2]})
        return KeyMaker(identity(judge), "S3", "c").sha256(parts[3])

    assert (key(a) == key(b)) == (a == b)


def test_every_source_file_of_a_folder_and_those_below_it_counts_as_code(tmp_path):
    (tmp_path / "in" / "deeper").mkdir(parents=True)
    for name in ("b.py", "in/a.py", "in/deeper/c.py", "in/notes.md"):
        (tmp_path / name).write_text("")
    names = [path.relative_to(tmp_path).as_posix() for path in _source_files(tmp_path)]
    assert names == ["b.py", "in/a.py", "in/deeper/c.py"]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"a": float("nan")}, object()])
def test_what_has_no_canonical_form_is_refused(value):
    with pytest.raises((ValueError, TypeError)):
        canonical_json(value)


def test_the_packing_context_follows_the_judge_the_scopes_and_what_the_user_named():
    judge_identity = identity(SomeJudge())
    base = EvidenceContexts(judge_identity).context("S3", "segmentation", "lite")
    assert base == EvidenceContexts(judge_identity).context("S3", "segmentation", "lite")
    others = {
        EvidenceContexts(judge_identity).context("S2", "segmentation", "lite"),
        EvidenceContexts(judge_identity).context("S3", None, "lite"),
        EvidenceContexts(judge_identity).context("S3", "segmentation", "pro"),
        EvidenceContexts(identity(SomeJudge(name="n"))).context("S3", "segmentation", "lite"),
        EvidenceContexts(identity(SomeJudge(parameters={"budget": 1}))).context(
            "S3", "segmentation", "lite"
        ),
        EvidenceContexts(judge_identity).context("diagnosis", "segmentation", "lite"),
    }
    assert len(others | {base}) == 7


def test_the_context_follows_every_file_of_the_public_inputs(tmp_path):
    judge_identity, contexts = identity(SomeJudge()), []

    def context() -> str:
        return EvidenceContexts(judge_identity).context(
            "S3", "segmentation", "lite", tmp_path / "public"
        )

    contexts.append(context())
    volume = tmp_path / "public" / "kidney-seg-task" / "case_1" / "ct.nii.gz"
    volume.parent.mkdir(parents=True)
    contexts.append(context())
    volume.write_bytes(b"volume")
    contexts.append(context())
    status = volume.stat()
    assert context() == contexts[-1]
    volume.write_bytes(b"another volume")
    os.utime(volume, ns=(status.st_atime_ns, status.st_mtime_ns))
    contexts.append(context())
    volume.write_bytes(b"Another volume")
    contexts.append(context())
    (volume.parent / "round").symlink_to(tmp_path / "public")  # a circle ends
    contexts.append(context())
    contexts.append(EvidenceContexts(judge_identity).context("S3", "segmentation", "lite"))
    assert len(set(contexts)) == len(contexts)


def test_an_edited_pattern_is_an_edit_of_the_code(monkeypatch):
    """Patterns are data files: what a run shows by them must not stand when they change."""
    before, read_bytes = code_sha256(), Path.read_bytes

    def edited(path: Path) -> bytes:
        return read_bytes(path) + b"\n" * (path.name == "failures.yaml")

    monkeypatch.setattr(Path, "read_bytes", edited)
    assert code_sha256.__wrapped__() != before
