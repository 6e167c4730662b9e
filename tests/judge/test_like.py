"""`--policy harness`: each listed difference (docs/harness.md) on files made for it, by the paper's
rules and by the harness's."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from dataclasses import fields
from pathlib import Path

import ambjudge.judge.scoring.scoring_rules as choices
import nibabel as nib
import numpy as np
import pytest
from ambjudge.judge.card.fields import Policy
from ambjudge.judge.card.scorecard import ScoreCard
from ambjudge.judge.card.verify import verify
from ambjudge.judge.engine import make_scorecard
from ambjudge.judge.questions.items import QuestionSet
from ambjudge.judge.scoring.scoring_rules import LIKE, Rules
from ambjudge.rubrics.load import rubric_for
from ambjudge.testing import ScriptedJudge, Step, tiny_run
from ambjudge.trajectories.reading.load import load_run

ROOT = Path(__file__).parents[2]
BOX = {"class": "rbc", "x1": 0, "y1": 0, "x2": 5, "y2": 5}
ANSWER = {
    "predicted_label": "A",
    "predicted_answer": "left",
    "raw_model_output": "left",
    "model_name": "m",
    "runtime_s": 1,
}
SMOKE = {
    "model_name": "m",
    "device": "cuda",
    "wall_s": 1,
    "raw_output_sample": "It is left.",
    "success": True,
}
RECORD = {"question_id": "q", "raw_model_output": "It is left.", "predicted_answer": "left"}
LOAD, CALL = "m = VLM.from_pretrained('/w')", "print(m.generate(x))"
EVERY = QuestionSet(ask_all=True)
ALL = {f"S{n}{letter}": 1.0 for n in (1, 2) for letter in "abcdefghijk"} | {"S3": 1.0}
BLOCKED = "BLOCKED: path /data/private is not allowed"


def mask(kind: type = np.uint8, value: float = 1) -> bytes:
    data = np.zeros((4, 4, 3), kind)
    data[1:3, 1:3, 1] = value
    return gzip.compress(nib.Nifti1Image(data, np.eye(4)).to_bytes())


def masks(name: str = "lesion.nii.gz", other: bytes | None = None) -> dict:
    return {"case_1/lesion.nii.gz": mask(), f"case_2/{name}": other or mask()}


def labels(other: bytes, **more) -> dict:
    report = {"metrics": {"macro_mean_dice": 0.5, "tissue_labels": {"1": "a", "2": "b"}}}
    outputs = {"case_1/dseg.nii.gz": mask(), "case_2/dseg.nii.gz": other}
    return {
        "track": "segmentation",
        "task": "feta-seg-task",
        "outputs": outputs,
        "report": report,
        **more,
    }


def answers(*changes: dict, raw: str = "", **more) -> dict:
    files = {
        f"case_{n}/answer.json": raw + json.dumps({**ANSWER, "question_id": f"case_{n}", **c})
        for n, c in enumerate(changes, 1)
    }
    cases = [f"case_{n}" for n in range(1, len(changes) + 1)]
    report = {"metrics": {"accuracy": 0.5, "answer_mode": "multiple_choice"}, "task_score": 0.5}
    return {
        "track": "vqa",
        "outputs": files,
        "cases": cases,
        "report": report,
        "steps": [Step(f"{LOAD}\n{CALL}")],
        **more,
    }


def beside(folder: Path, *names: str, inspected: bool = True, sent: int = 1) -> None:
    """The agent's own files in its workspace."""
    texts = {
        "smoke_forward.json": json.dumps(SMOKE),
        "answer_postprocess.py": "def postprocess(raw):\n    return raw\n",
        "s3_calibration.json": json.dumps([RECORD] * 10),
    }
    for name in names or texts:
        (folder / "outputs" / name).write_text(texts[name])
    calls = [{"tool": "inspect_image"}] * inspected + [
        {"tool": "submit_answer", "result_summary": {"status": "ok"}}
    ] * sent
    (folder / "outputs/tool_calls.jsonl").write_text("".join(f"{json.dumps(c)}\n" for c in calls))


def question(folder: Path) -> None:
    """Public inputs: a question with three options."""
    beside(folder)
    path = folder.parent / "public/case_1/question.json"
    path.parent.mkdir(parents=True)
    path.write_text(
        json.dumps({"question_id": "case_1", "options": {"A": "left", "B": "right", "C": "both"}})
    )


def nothing(folder: Path) -> None:
    """No answer, but the smoke test."""
    (folder / "outputs/agents_outputs").mkdir()
    beside(folder, "smoke_forward.json")


def link_out(folder: Path) -> None:
    path = folder / "outputs/agents_outputs/case_2/lesion.nii.gz"
    path.symlink_to(path.rename(folder.parent / "elsewhere.nii.gz"))


def other_folder(folder: Path) -> None:
    (folder / "outputs/agents_outputs").rename(folder / "outputs/agent_outputs")


SEG = {
    "track": "segmentation",
    "task": "kidney-seg-task",
    "report": {"metrics": {"lesion_dice": 0.5}, "clinical_score": 0.5},
}
ROUNDED = {
    "step_scores": {"s4": 1.0, "s5": 1.0},
    "metrics": {"macro_mean_dice": 0.0},
    "format": {
        "output_format_valid": True,
        "submission_format_valid": True,
        "completion_rate": 1.0,
    },
}
BREACH = {"metrics": {"lesion_dice": 0.0}, "isolation_breach": {"breached": True, "turn": 7}}
REPORT = "The heart is normal in size and the lungs are clear. Ergüsse: none."
SKIP = {"predicted_label": "", "predicted_answer": "", "raw_model_output": ""}
STAND_IN = {"raw_model_output": "unknown"}

CASES = {
    "D4 prefixed name": (
        {**SEG, "outputs": masks("kidney_lesion.nii.gz")},
        None,
        {"S4": (0.25, 0.5), "task": (0.0, 0.5)},
    ),
    "D5 complex voxels": (
        {**SEG, "outputs": masks(other=mask(np.complex64))},
        None,
        {"S4": (0.5, 1.0)},
    ),
    "D6 link": ({**SEG, "outputs": masks()}, link_out, {"S4": (0.25, 1.0)}),
    "D7 folder": (
        {**SEG, "outputs": masks()},
        other_folder,
        {"S4": (1.0, 0.0), "task": (0.5, 0.0)},
    ),
    "D9 label 1.2": (labels(mask(np.float32, 1.2)), None, {"S4": (0.5, 1.0)}),
    "D10 unreadable": (labels(b"no gzip"), None, {"S4": (0.5, 0.25)}),
    "D11 unknown label set": (
        labels(mask(value=8), task="cortex-seg-task", brief="Write dseg.nii.gz."),
        None,
        {"S4": (1.0, 0.5)},
    ),
    "D14 true": (
        {
            "track": "detection",
            "cases": ["case_1"],
            "outputs": {"case_1/prediction.json": json.dumps({"boxes": [{**BOX, "x1": True}]})},
        },
        None,
        {"S4": (0.5, 1.0)},
    ),
    "D15 byte-order mark": (answers({}, raw="\ufeff"), beside, {"S5": (1.0, 0.0)}),
    "D17 umlaut": (
        {
            "track": "report_generation",
            "cases": ["case_1"],
            "outputs": {"case_1/report.txt": REPORT},
        },
        None,
        {"S4": (1.0, 0.0), "S5": (1.0, 0.0)},
    ),
    "D20 label alone": (
        answers({"predicted_answer": "", "raw_model_output": ""}),
        beside,
        {"S5": (0.0, 1.0)},
    ),
    "D23 label E of three": (
        answers({"predicted_label": "E", "predicted_answer": ""}),
        question,
        {"S5": (0.5, 1.0)},
    ),
    "A1 setup by facts": (
        answers({}),
        lambda f: beside(f, "smoke_forward.json"),
        {"S2": (1.0, 1.0)},
    ),
    "A1 no smoke test": (
        answers({}),
        lambda f: beside(f, "s3_calibration.json"),
        {"S2": (1.0, 0.6667), "S3": (1.0, 0.5)},
    ),
    "A2 tool usage": (
        answers({}, {}),
        lambda f: beside(f, inspected=False),
        {"S3": (1.0, 0.8), "S4": (1.0, 0.9), "agentic": (1.0, 1.0)},
    ),
    "A5 skips": (answers(SKIP), beside, {"S1": (0.2, 1.0)}),
    "A6 stalled": ({**answers({}), "outputs": {}}, nothing, {"S1": (0.2, 1.0)}),
    "A7 some placeholders": (answers(STAND_IN, {}, {}, {}), beside, {"S3": (0.2, 1.0)}),
    "A9 nearly complete": (
        {
            **answers({}),
            "outputs": {},
            "report": {
                "metrics": {
                    "accuracy": 0.0,
                    "completion_rate": 0.995,
                    "parse_rate": 0.9,
                    "model_call_detected": True,
                }
            },
        },
        lambda f: (f / "outputs").exists(),
        {"S4": (0.9475, 0.5)},
    ),
    "A10 breach in turn 7": (
        {**SEG, "outputs": masks(), "report": BREACH},
        None,
        {"S1": (0.0, None), "S2": (0.0, 0.0), "agentic": (0.0, 0.0), "overall": (0.0, 0.0)},
    ),
    "A11 five of six": (
        {**SEG, "outputs": masks(), "tier": "pro", "without": "S1b"},
        None,
        {"S1": (0.8333, 0.83), "agentic": (0.9583, 0.9575)},
    ),
    "A11 a metric rounded to 0": (
        {**labels(mask()), "outputs": {}, "report": ROUNDED},
        lambda f: (f / "outputs").rmdir(),
        {"S5": (0.5, 1.0)},
    ),
    "A12 nothing judged": (
        {**SEG, "outputs": masks(), "without": "S"},
        None,
        {"S1": (None, None), "agentic": (1.0, 0.25)},
    ),
    "F1 load, then call": (answers({}, steps=[Step(LOAD), Step(CALL)]), beside, {"S4": (0.3, 1.0)}),
    "F2 a comment": (answers({}, steps=[Step(f"# {LOAD}\n# {CALL}")]), beside, {"S4": (0.3, 1.0)}),
    "F3 pipeline": (
        answers({}, steps=[Step("p = pipeline('vqa')\nprint(p(x))")]),
        beside,
        {"S4": (1.0, 0.3), "S2": (1.0, 0.6667)},
    ),
    "G12 blocked twice": (
        answers(
            {}, steps=[Step(f"{LOAD}\n{CALL}"), *[Step("cat /data/private/a", BLOCKED, -1)] * 2]
        ),
        beside,
        {"overall": (0.0, 75.0)},
    ),
}


def cards(tmp_path: Path, made: dict, change) -> tuple[ScoreCard, ScoreCard]:
    settings = dict(made)
    without = settings.pop("without", None)
    folder = tmp_path / "run"
    tiny_run(folder, **settings)
    (folder / "outputs").mkdir(exist_ok=True)
    if change is not None:
        change(folder)
    run = load_run(folder)
    judge = ScriptedJudge(
        {id: value for id, value in ALL.items() if without != "S"}
        | ({without: 0.0} if without else {})
    )
    public = tmp_path / "public" if (tmp_path / "public").exists() else None
    return tuple(
        make_scorecard(run, judge, policy=Policy(like=like), public=public, questions=EVERY)
        for like in ("paper", "harness")
    )


@pytest.mark.parametrize(("made", "change", "expected"), CASES.values(), ids=CASES)
def test_each_difference(tmp_path, made, change, expected):
    both = [card.to_dict() for card in cards(tmp_path, made, change)]
    for name, values in expected.items():
        found = tuple(
            card["stages"][name]["score"] if name in card["stages"] else card[name] for card in both
        )
        assert found == values, name
    assert [card["policy"]["like"] for card in both] == ["paper", "harness"]
    rubric = rubric_for(both[0]["run"]["track"], both[0]["run"]["task"])
    assert verify(ScoreCard.model_validate(both[1]), rubric) == []


def test_every_difference_has_a_row():
    """Every flag names its differences, docs/harness.md lists them, and nothing but the default is
    switched off."""
    source = Path(choices.__file__).read_text("utf-8")
    named = set(re.findall(r"\b[A-G]\d{1,2}\b", source))
    listed = set(
        re.findall(
            r"^\| ([A-G]\d{1,2})(?:, ([A-G]\d{1,2}))? \|",
            (ROOT / "docs/harness.md").read_text("utf-8"),
            re.MULTILINE,
        )
    )
    assert named <= {name for row in listed for name in row}
    assert LIKE["paper"] == Rules()
    assert all(getattr(LIKE["harness"], each.name) for each in fields(Rules))


def test_a_judge_is_shown_the_same(tmp_path):
    """Verdicts are shared between choices: what a judge is asked does not depend on them."""
    from ambjudge.judge.engine import prepare

    run = tiny_run(tmp_path, **{**SEG, "outputs": masks("kidney_lesion.nii.gz")})
    facts = [prepare(run, policy=Policy(like=like)).facts for like in ("paper", "harness")]
    assert facts[0] == facts[1]


def test_cards_of_another_choice_are_renewed(tmp_path):
    from ambjudge.judge.judges.rules import RulesJudge
    from ambjudge.judge.rejudge.staleness import plan_rejudge
    from ambjudge.judge.rejudge.update import outdated_runs
    from ambjudge.judge.session import ScoreOptions, run_session
    from ambjudge.judge.store import open_store

    run = tiny_run(tmp_path / "run", **{**SEG, "outputs": masks()})
    with open_store(tmp_path / "store.db") as store:

        def outdated(policy: Policy) -> tuple[Path, ...]:
            options = ScoreOptions(policy=policy)
            plan = plan_rejudge(store, [run.path], RulesJudge(), options.scope())
            return outdated_runs(store, plan, RulesJudge(), options)

        def score(policy: Policy) -> None:
            session = run_session(
                [run.path],
                RulesJudge(),
                ScoreOptions(policy=policy),
                lambda _: None,
                store=store,
                signals=False,
            )
            asyncio.run(session)

        for like, other in (("paper", "harness"), ("harness", "paper")):
            score(Policy(like=like))
            assert outdated(Policy(like=like)) == ()
            assert outdated(Policy(like=other)) == (run.path,)
            strict = Policy(like=like, strict_evidence=True)
            assert outdated(strict) == (run.path,)
            score(strict)
            assert outdated(strict) == ()
