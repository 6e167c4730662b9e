"""Odd runs of the public harness's branches: each is scored as the harness does, or its difference
is named; and what this user may not read is unknown."""

from __future__ import annotations

import gzip
import json
import math
import os
import struct
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from ambjudge.cli import run as command
from ambjudge.errors import InputError
from ambjudge.judge.card.fields import Policy
from ambjudge.judge.card.scorecard import ScoreCard
from ambjudge.judge.card.verify import verify
from ambjudge.judge.engine import make_scorecard
from ambjudge.judge.judges.reported import ReportedJudge
from ambjudge.rubrics.load import rubric_for
from ambjudge.testing import Step, tiny_run
from ambjudge.trajectories.reading.load import iter_runs, load_run

SHAPE = (4, 4, 3)
GOOD = {"output_format_valid": True, "submission_format_valid": True, "completion_rate": 1.0}
BROKEN_NAME = os.fsdecode(b"case_\xff")


def volume(shape=SHAPE, kind=np.uint8, offset: int = 0, header: bytes = b"") -> bytes:
    """A mask with one voxel set, with other bytes in its header."""
    data = np.zeros(shape, kind)
    if kind == np.uint8:
        data[1, 1, 1] = 1
    content = bytearray(nib.Nifti1Image(data, np.eye(4)).to_bytes())
    content[offset : offset + len(header)] = header
    return gzip.compress(bytes(content))


def segmentation(label_map: bool = False, other: bytes | None = None, **more) -> dict:
    name = "dseg.nii.gz" if label_map else "lesion.nii.gz"
    metric = "macro_mean_dice" if label_map else "lesion_dice"
    return {
        "track": "segmentation",
        "task": "feta-seg-task" if label_map else "kidney-seg-task",
        "outputs": {f"case_1/{name}": volume(), f"case_2/{name}": other or volume()},
        "report": {"metrics": {metric: 0.5}, "clinical_score": 0.5},
        **more,
    }


def answer(**changes) -> dict:
    """A vqa run with one answer, a question without options if `predicted_label` is odd."""
    record = {
        "question_id": "case_1",
        "predicted_label": "",
        "predicted_answer": "left",
        "raw_model_output": "left",
        "model_name": "m",
        "runtime_s": 1,
        **changes,
    }
    return {
        "track": "vqa",
        "cases": ["case_1"],
        "outputs": {"case_1/answer.json": json.dumps(record)},
        "report": {"metrics": {"accuracy": 0.5, "answer_mode": "open_ended"}, "task_score": 0.5},
        "steps": [Step("m = VLM.from_pretrained('/w')\nprint(m.generate(x))")],
    }


def own_folder(folder: Path) -> None:
    (folder / "outputs/agents_outputs").rename(folder / "outputs/agent_outputs")


def emptied(folder: Path) -> None:
    for path in (folder / "outputs/agents_outputs").rglob("*.nii.gz"):
        path.unlink()


def public(*names: str, shape=SHAPE):
    """Public inputs of two cases: a volume of another shape first, then `names`."""

    def change(folder: Path) -> None:
        for case in ("case_1", "case_2", *(n for n in names if n == BROKEN_NAME)):
            place = folder.parent / "public" / case
            place.mkdir(parents=True)
            (place / "brainmask.nii.gz").write_bytes(volume((2, 2, 2)))
            for name in names:
                if name != BROKEN_NAME:
                    (place / name).write_bytes(volume(shape))

    return change


REPORT = "The heart is normal in size and the lungs are clear. No effusion."
TEXTS = {
    "track": "report_generation",
    "cases": ["case_1"],
    "outputs": {"case_1/report.txt": REPORT},
    "report": {"clinical_score": 0.6},
}
NO_RESULTS = {**segmentation(), "report": {"format": GOOD, "step_scores": {"s4": 1.0, "s5": 1.0}}}
CALLED = {"metrics": {"completion_rate": 1.0, "parse_rate": 1.0, "accuracy": 0.5}}
PLANAR = {"brief": "The input of a case is t2w.nii.gz. Write lesion.nii.gz."}
LISTED = [Step("ls /data/public", "case_1\ncase_2\ncase_3\ncase_4", 0)]

CASES = {
    "N1 own folder": (TEXTS, own_folder, {"S4": (1.0, 1.0), "task": (0.6, 0.6)}),
    "N1 another's folder": (TEXTS, None, {"S4": (1.0, 0.0), "task": (0.6, 0.0)}),
    "N3 name no UTF-8": (segmentation(), public("ct.nii.gz", BROKEN_NAME), {"S4": (0.333, 0.333)}),
    "N5 runtime NaN": (answer(runtime_s=math.nan), None, {"S5": (0.5, 1.0)}),
    "N5 runtime infinite": (answer(runtime_s=math.inf), None, {"S5": (0.5, 1.0)}),
    "N5 below 0": (answer(runtime_s=-math.inf), None, {"S5": (0.5, 0.5)}),
    "N5 blank model": (answer(model_name=" "), None, {"S5": (0.5, 1.0)}),
    "N6 label a list": (answer(predicted_label=["A"]), None, {"S5": (0.5, 1.0)}),
    "N7 empty folder": (NO_RESULTS, emptied, {"S5": (0.0, 0.0)}),
    "N8 named in the brief": (
        segmentation(**PLANAR),
        public("t2w.nii.gz"),
        {"S4": (1.0, 1.0)},
    ),
    "N8 named, wrong shape": (
        segmentation(**PLANAR),
        public("t2w.nii.gz", shape=(9, 9, 9)),
        {"S4": (0.5, 0.5)},
    ),
    "N8 unknown": (segmentation(), public("t2w.nii.gz"), {"S4": (1.0, 1.0)}),
    "N10 no word on the call": (
        {**answer(), "outputs": {}, "report": CALLED},
        None,
        {"S4": (1.0, 1.0)},
    ),
    "N12 colours": (
        segmentation(True, volume(kind=[(c, "u1") for c in "RGB"])),
        None,
        {"S4": (0.5, 0.25)},
    ),
    "N12 no extent": (
        segmentation(True, volume(offset=40, header=struct.pack("<4h", 3, 4, 0, 3))),
        None,
        {"S4": (0.5, 0.5)},
    ),
    "N12 mark of a pair": (
        segmentation(other=volume(offset=344, header=b"ni1\0")),
        None,
        {"S4": (1.0, 1.0)},
    ),
    "N14 bare breach": (
        segmentation(report={"metrics": {"lesion_dice": 0.5}, "isolation_breach": True}),
        None,
        {"task": (0.0, 0.0), "overall": (0.0, 0.0)},
    ),
    "N15 the report before a guess": (
        segmentation(
            cases=(),
            steps=LISTED,
            report={"metrics": {"lesion_dice": 0.5}, "step_scores": {"s4": 1.0}},
        ),
        None,
        {"S4": (1.0, 1.0)},
    ),
}


@pytest.mark.parametrize(("made", "change", "expected"), CASES.values(), ids=CASES)
def test_each_row(tmp_path, made, change, expected):
    folder = tmp_path / "run"
    tiny_run(folder, **made)
    if change is not None:
        change(folder)
    inputs = tmp_path / "public" if (tmp_path / "public").exists() else None
    run = load_run(folder)
    cards = [
        make_scorecard(run, policy=Policy(like=like), public=inputs).to_dict()
        for like in ("paper", "harness")
    ]
    for name, values in expected.items():
        found = [
            card["stages"][name]["score"] if name in card["stages"] else card[name]
            for card in cards
        ]
        assert found == [pytest.approx(value, abs=1e-3) for value in values], name


STEPS = {"s1": 0.83, "s2": 0.6, "s3": 0.5, "s4": 1.0, "s5": 1.0}
WITH_STAGES = {**segmentation()["report"], "agentic_score": {"score": 0.7225, "step_scores": STEPS}}
ITEMS = {"s3_validate_score": 0.5, "s3_rationale": "a pilot", "judge_model": "opus"}
ZEROS = {"s2a_checkpoint_downloaded": 0, "s3_validate_score": 0.0, "s3_rationale": ""}
REPORTED = {
    # report, stages by the paper's rules, by the harness's, Agentic by the harness's
    "stage means": (WITH_STAGES, ("reported", 0.83), ("reported", 0.83), 0.7225),
    "a verdict on S3": (
        {**WITH_STAGES, "llm_judge": ITEMS},
        ("judge", 0.5),
        ("judge", 0.5),
        0.7225,
    ),
    "unparsed reply": (
        {**WITH_STAGES, "llm_judge": ZEROS},
        ("unscored", None),
        ("reported", 0.0),
        0.5475,
    ),
    "no judge": (segmentation()["report"], ("unscored", None), ("reported", None), 0.25),
}


@pytest.mark.parametrize(("report", "paper", "harness", "agentic"), REPORTED.values(), ids=REPORTED)
def test_the_reported_judge(tmp_path, report, paper, harness, agentic):
    run = tiny_run(tmp_path / "run", **segmentation(report=report))
    stage = "S3" if "llm_judge" in report else "S1"
    for like, expected in (("paper", paper), ("harness", harness)):
        card = make_scorecard(run, ReportedJudge(), policy=Policy(like=like))
        assert (card.stages[stage].method, card.stages[stage].score) == expected
        stored = ScoreCard.model_validate_json(card.to_json())
        assert verify(stored, rubric_for(run.track, run.task)) == []
    assert (card.agentic, card.standing) == (agentic, "read")
    assert card.judge.served_model == report.get("llm_judge", {}).get("judge_model")


def test_a_published_folder_gives_the_published_board(tmp_path, monkeypatch, capsys):
    """The reported judge is the default where reports state scores, and the board names it."""
    monkeypatch.chdir(tmp_path)
    for number, s1 in enumerate((0.5, 0.83)):
        report = {**WITH_STAGES, "agentic_score": {"step_scores": {**STEPS, "s1": s1}}}
        made = segmentation(report=report, brief=f"Do the task, for the {number}th time.")
        tiny_run(tmp_path / f"runs/{number}", **made)
    tiny_run(tmp_path / "others/a", **segmentation())
    board = ["-q", "leaderboard", "--policy", "harness", "--store", "none"]
    assert command([*board, "runs"]) == 0
    assert "Judge reported (the harness's own), 2 runs" in capsys.readouterr().out
    assert command([*board, "others"]) == 0
    assert "Judge rules, 1 run" in capsys.readouterr().out
    assert command(["-q", "score", "runs", "--policy", "harness", "--out", "cards.jsonl"]) == 0
    assert command(["-q", "score", "runs", "--policy", "harness", "--out", "again.jsonl"]) == 0
    for name in ("cards.jsonl", "again.jsonl"):
        cards = [json.loads(line) for line in Path(name).read_text("utf-8").splitlines()]
        assert [card["judge"]["name"] for card in cards] == ["reported", "reported"]
        assert [card["agentic"] for card in cards] == [0.64, 0.7225]


HIDDEN = {
    "outputs": "outputs",
    "folder of outputs": "outputs/agents_outputs",
    "a case": "outputs/agents_outputs/case_1",
    "a file": "outputs/agents_outputs/case_1/lesion.nii.gz",
}


@pytest.fixture
def nobody():
    """Be a user whom permissions bind."""
    if not hasattr(os, "seteuid"):
        pytest.skip("no users here")
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    yield
    os.seteuid(user)


@pytest.fixture
def hidden(tmp_path):
    """Hide a path below the folder, and show it again in the end."""
    paths: list[Path] = []

    def hide(path: Path) -> None:
        for folder in (tmp_path, *tmp_path.parents):
            if folder.owner() == path.owner() and folder != Path("/tmp"):
                folder.chmod(0o755)
        paths.append(path)
        path.chmod(0)

    yield hide
    for path in paths:
        path.chmod(0o755)


@pytest.mark.parametrize("place", HIDDEN.values(), ids=HIDDEN)
def test_what_may_not_be_read_is_unknown(tmp_path, hidden, place, request):
    tiny_run(tmp_path / "run", **segmentation())
    hidden(tmp_path / "run" / place)
    request.getfixturevalue("nobody")
    run = load_run(tmp_path / "run")
    card = make_scorecard(run)
    assert (card.stages["S4"].score, card.task) == (None, 0.5)
    assert any("cannot be read by this user" in warning for warning in card.warnings)


@pytest.mark.parametrize("place", ["process", "."])
def test_a_run_that_may_not_be_listed_is_an_error(tmp_path, hidden, place, request):
    for name in ("a", "b"):
        tiny_run(tmp_path / f"runs/{name}", **segmentation())
    hidden(tmp_path / "runs/a" / place)
    request.getfixturevalue("nobody")
    error, run = iter_runs(tmp_path / "runs")
    assert isinstance(error, InputError)
    assert "Permission denied" in str(error)
    assert run.id == "b"


def test_a_cut_conversation_falls_back_to_the_trace(tmp_path):
    folder = tmp_path / "run"
    tiny_run(folder, **segmentation())
    (folder / "process/conversation.json").write_text('{"agent": "tiny", "mess', "utf-8")
    with pytest.raises(InputError):
        load_run(folder)
    event = {"type": "api_call", "turn": 1, "content": "Done.", "tool_calls": []}
    (folder / "process/trace.jsonl").write_text(json.dumps(event) + "\n", "utf-8")
    (folder / "attempt_0/process").mkdir(parents=True)
    run = load_run(folder)
    assert [turn.text for turn in run.turns] == ["Done."]
    assert sum("from the trace" in text for text in run.warnings) == 1
    assert sum("attempt_0" in text for text in run.warnings) == 1
