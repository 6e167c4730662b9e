"""Scores of random submissions: ours beside those of the public harness's own functions.

    HARNESS_CHECKOUT=DIR python benchmarks/harness.py [--n 300] [--formulas 0] [--seed 1] [--track NAME]

DIR holds the branches of AutoMedBench/AutoMedBench, each unpacked under its name (`eval_seg/eval_seg/aggregate.py`, ...);
their modules are imported at run time and nothing of them is kept here. Each submission has a few cases, each right or
spoiled in one way, random verdicts, and now and then a breach. We see it three ways: files with public inputs and a report
without step scores; files and the report; the report alone. `--formulas` submissions a track and tier have right files and
are seen once, as a report alone.

With `--like harness` every stage, Agentic, Task and Overall must be the harness's to the last digit it prints. By default
S4, S5, Task and the limit of S1 must be, but for submissions spoiled in a way that docs/harness.md lists: these bear its
name and are counted apart. Any other difference is printed and makes the exit code 1. Submissions on which the harness
raises are left out.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import importlib
import io
import json
import os
import random
import re
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType, ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import nibabel as nib
import numpy as np
from ambjudge.judge.base import JUDGED, Reply
from ambjudge.judge.engine import assemble, prepare
from ambjudge.judge.scorecard import CriterionResult, Policy
from ambjudge.judge.scoring import split_criteria
from ambjudge.rubrics.load import rubric_for
from ambjudge.rubrics.model import Rubric
from ambjudge.trajectories.harness_report import parse_report
from ambjudge.trajectories.load import load_run
from ambjudge.trajectories.models import Run
from PIL import Image

SHAPE = (5, 6, 4)
MEDAL = {"tier": 0, "name": "none"}
Spoil = Callable[[Path], None]


@contextmanager
def branch(checkout: Path, name: str) -> Iterator[Callable[[str], ModuleType]]:
    """An importer of one branch's modules, which share their names with the other branches'."""
    folder, before = str(checkout / name / name), set(sys.modules)
    sys.path.insert(0, folder)
    try:
        yield importlib.import_module
    finally:
        sys.path.remove(folder)
        for module in set(sys.modules) - before:
            if str(getattr(sys.modules[module], "__file__", None) or "").startswith(folder):
                del sys.modules[module]


@dataclass
class Submission:
    """Where one submission and its inputs lie."""

    root: Path
    cases: list[str]
    tier: Any = "lite"
    judged: Any = None
    breach: int = 0
    """Turn of the second blocked execution; 0: none."""
    quality: float = 0.5
    many: bool = False
    """Label maps."""
    open_answers: bool = False
    told: set[str] = field(default_factory=set)
    """How it is spoiled."""

    @property
    def outputs(self) -> Path:
        return self.root / "run/outputs/agents_outputs"

    @property
    def public(self) -> Path:
        return self.root / "public"

    @property
    def private(self) -> Path:
        return self.root / "private"

    def put(self, place: Path, case: str, name: str) -> Path:
        path = place / case / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


def _nifti(path: Path, data: Any) -> None:
    nib.save(nib.Nifti1Image(data, np.eye(4)), path)


def _mask(kind: Any = np.uint8) -> Any:
    data = np.zeros(SHAPE, kind)
    data[1:4, 2:5, 1:3] = 1
    return data


def _json(**changes: Any) -> Spoil:
    """Change fields of the object in a file, or of its first box."""

    def spoil(path: Path) -> None:
        value = json.loads(path.read_text())
        target = value["boxes"][0] if "boxes" in value else value
        target.update(changes)
        for key in [key for key, new in changes.items() if new is ...]:
            del target[key]
        path.write_text(json.dumps(value))

    return spoil


def _organ(write: Callable[[Path], None]) -> Spoil:
    return lambda path: write(path.with_name("organ.nii.gz"))


def _copied(path: Path) -> None:
    beside = path.parent.with_name(f"{path.parent.name}_copy") / path.name
    beside.parent.mkdir(exist_ok=True)
    beside.write_bytes(path.read_bytes())


def _linked(path: Path) -> None:
    away = path.parents[4] / f"away_{path.parent.name}"
    path.symlink_to(path.rename(away))


ANY: dict[str, Spoil] = {
    "missing": Path.unlink, "misnamed": lambda p: p.rename(p.with_name("result" + p.suffix)) and None, "copied": _copied,
    "empty": lambda p: p.write_bytes(b"") and None, "D6": _linked,
}  # fmt: skip
MASKS: dict[str, Spoil] = {
    **{k: ANY[k] for k in ("missing", "misnamed", "copied")},
    "shape": lambda p: _nifti(p, np.zeros((6, 5, 4), np.uint8)), "axis of 1": lambda p: _nifti(p, _mask()[..., None]),
    "label 2": lambda p: _nifti(p, _mask() * 2), "half": lambda p: _nifti(p, _mask(np.float32) / 2),
    "float": lambda p: _nifti(p, _mask(np.float64)), "no voxel": lambda p: _nifti(p, np.zeros(SHAPE, np.uint8)),
    "nan": lambda p: _nifti(p, np.full(SHAPE, np.nan, np.float32)), "organ": _organ(lambda p: _nifti(p, _mask())),
    "organ shape": _organ(lambda p: _nifti(p, np.zeros((2, 2, 2), np.uint8))),
    "organ label 3": _organ(lambda p: _nifti(p, _mask() * 3)), "D4": lambda p: p.rename(p.with_name("kidney_lesion.nii.gz")) and None,
    "D4 both": lambda p: _nifti(p.with_name("liver_lesion.nii.gz"), _mask()), "D5": lambda p: _nifti(p, _mask(np.complex64)),
    "D5 two": lambda p: _nifti(p, _mask(np.complex64) * 2), "D6": _linked,
}  # fmt: skip
LABELS: dict[str, Spoil] = {
    **{k: MASKS[k] for k in ("missing", "misnamed", "copied", "shape", "axis of 1", "no voxel", "nan", "D5", "D6")},
    "label 9": lambda p: _nifti(p, _mask() * 9), "label 2": lambda p: _nifti(p, _mask() * 2), "D9": lambda p: _nifti(p, _mask(np.float32) * 1.2),
    "D9 to 4": lambda p: _nifti(p, _mask(np.float32) * 3.6), "D9 noise": lambda p: _nifti(p, _mask(np.float32) + np.linspace(0, 0.4, 120).reshape(SHAPE)),
    "D10": lambda p: p.write_bytes(b"no gzip") and None, "D10 cut": lambda p: p.write_bytes(p.read_bytes()[:-20]) and None,
}  # fmt: skip
BOXES: dict[str, Spoil] = {
    **{k: ANY[k] for k in ("missing", "misnamed", "copied", "D6")},
    "no boxes": lambda p: p.write_text('{"boxes": []}') and None, "no class": _json(**{"class": ""}),
    "class a number": _json(**{"class": 1}), "other class": _json(**{"class": "platypus"}), "score null": _json(score=None),
    "score nan": _json(score=float("nan")), "score 1.2": _json(score=1.2), "no score": _json(score=...), "reversed": _json(x1=50, x2=10),
    "beyond": _json(x2=101), "at the border": _json(x1=0, y1=0, x2=100, y2=60), "negative": _json(y1=-1), "flat": _json(y2=5),
    "D14 coordinate": _json(x1=True), "D14 score": _json(score=True),
    "D15": lambda p: p.write_bytes(b"\xef\xbb\xbf" + p.read_bytes()) and None,
}  # fmt: skip
ANSWERS: dict[str, Spoil] = {
    **ANY, "no text": _json(predicted_answer=""), "small letter": _json(predicted_label="a"), "wrong option": _json(predicted_label="B"),
    "dot": _json(predicted_label="A."), "no label": _json(predicted_label=""), "label null": _json(predicted_label=None),
    "other case": _json(predicted_answer="Left"), "blank beside": _json(predicted_answer=" left "), "text null": _json(predicted_answer=None),
    "text a number": _json(predicted_answer=5), "no model": _json(model_name=""), "no run time": _json(runtime_s=None),
    "negative time": _json(runtime_s=-1), "other question": _json(question_id="q_77"), "heuristic": _json(raw_model_output="heuristic: left"),
    "Fallback": _json(raw_model_output=" Fallback:left"), "blank before colon": _json(raw_model_output="Fallback : left"),
    "na": _json(raw_model_output="NA"), "n/a": _json(raw_model_output=" n/a "), "unknown dot": _json(raw_model_output="unknown."),
    "raw empty": _json(raw_model_output=""), "raw a list": _json(raw_model_output=["left"]), "raw missing": _json(raw_model_output=...),
    "skip": _json(raw_model_output="", predicted_answer="", predicted_label=""),
    "D20": _json(raw_model_output="", predicted_answer=""), "D23": _json(predicted_label="E", predicted_answer="x"),
    "D15": lambda p: p.write_bytes(b"\xef\xbb\xbf" + p.read_bytes()) and None, "D14 time": _json(runtime_s=True),
}  # fmt: skip
OPEN: dict[str, Spoil] = {
    **{k: ANSWERS[k] for k in ("missing", "empty", "no text", "text null", "text a number", "no model", "skip", "D15", "D14 time", "na", "D6")},
    **{k: ANSWERS[k] for k in ("raw empty", "raw a list", "raw missing", "other question", "heuristic", "negative time")},
    "D20": _json(raw_model_output="", predicted_answer="", predicted_label="A"), "D23 label": _json(predicted_label="A"),
    "D23 label alone": _json(predicted_label="A", predicted_answer=""), "D23 no label": _json(predicted_label=...),
    "yes": _json(predicted_answer="yes"), "blanks": _json(predicted_answer="  "),
}  # fmt: skip
REPORTS: dict[str, Spoil] = {
    **ANY, "short": lambda p: p.write_text("Clear.") and None, "38 and 4": lambda p: p.write_text("x" * 38 + "\n" * 4) and None,
    "39": lambda p: p.write_text("x" * 38 + "\n") and None, "8,004": lambda p: p.write_text("x" * 7999 + "\n" * 5) and None,
    "two bytes a break": lambda p: p.write_bytes(b"x" * 38 + b"\r\n" * 2) and None, "digits": lambda p: p.write_text("1 " * 40) and None,
    "latin-1": lambda p: p.write_bytes("Erg\xfcsse ".encode("latin-1") * 10) and None,
    "blanks": lambda p: p.write_text(" " * 60) and None, "D17": lambda p: p.write_text("Ergüsse rechts und links. " * 3) and None,
}  # fmt: skip
ARRAYS: dict[str, Spoil] = {
    **ANY, "axes": lambda p: np.save(p, np.ones((5, 6, 1))), "swapped": lambda p: np.save(p, np.ones((6, 5)) / 2),
    "integers": lambda p: np.save(p, np.ones((5, 6), int)), "nan": lambda p: np.save(p, np.full((5, 6), np.nan)),
    "inf": lambda p: np.save(p, np.full((5, 6), np.inf)), "half": lambda p: np.save(p, np.ones((5, 6), np.float16)),
    "constant": lambda p: np.save(p, np.zeros((5, 6))),
}  # fmt: skip


@dataclass
class Judged:
    """Random verdicts on a track's criteria: values by stage, in order; None where the tier leaves an item out."""

    rubric: Rubric
    values: dict[str, list[float | None]]
    results: dict[str, tuple[CriterionResult, ...]]

    @classmethod
    def of(cls, rubric: Rubric, tier: Any, rng: random.Random) -> Judged:
        values: dict[str, list[float | None]] = {}
        results: dict[str, tuple[CriterionResult, ...]] = {}
        for stage in JUDGED:
            split = split_criteria(rubric.stages[stage], tier)
            made = [CriterionResult(id=c.id, value=rng.choice(c.values), status="scored") for c in split.to_judge]
            known = {r.id: r.value for r in (*made, *split.credited)}
            values[stage] = [known.get(c.id) for c in rubric.stages[stage].criteria]
            results[stage] = tuple(made)
        return cls(rubric, values, results)

    def mean(self, stage: str, digits: int) -> float:
        known = [value for value in self.values[stage] if value is not None]
        return round(sum(known) / len(known), digits)


S1 = ("s1a_plan_md", "s1b_plan_pipeline", "s1c_lesion_model", "s1d_researched_3", "s1e_plan_plot", "s1f_plot_pipeline")
S2 = ("s2a_checkpoint_downloaded", "s2b_compatibility_check", "s2c_env_setup_success", "s2d_env_fail_within_5", "s2e_model_loaded")  # fmt: skip


def _runner(load: Callable[[str], ModuleType], work: Submission, report: dict[str, Any], key: str) -> dict[str, Any]:
    """What the runner of segmentation and detection makes of a scored submission: verdicts, or the penalty for a breach."""
    steps, total = report["step_scores"], report["aggregate"]
    sums = load("aggregate").compute_workflow_score
    if work.breach:
        for stage in ("s1", "s2", "s3", "s4", "s5")[sum(work.breach > turn for turn in (5, 10, 15)) :]:
            steps[stage] = 0.0
        report["isolation_breach"] = {"breached": True, "turn": work.breach}
        total.update({key: 0.0, "overall_score": 0.0})
    else:
        values = work.judged.values
        parsed = {**dict(zip(S1, values["S1"], strict=True)), **dict(zip(S2, values["S2"], strict=True))}
        build = load("llm_judge").BaseJudge._build_verdict
        found = build(None, {**parsed, "s3_validate_score": values["S3"][0]}, "", "", 0.0, 0, 0, work.tier)
        steps.update(s1=found.s1_plan_score, s2=found.s2_setup_score, s3=found.s3_validate_score)
    total["agentic_score"] = sums(steps)[0]
    total["overall_score"] = round(0.5 * total["agentic_score"] + 0.5 * total[key], 4)
    return report


def segmentation(load: Callable[[str], ModuleType], work: Submission) -> dict[str, Any]:
    config = {"task_type": "multiclass", "tissue_labels": {1: "a", 2: "b", 3: "c"}} if work.many else None
    checked = load("format_checker").check_submission(str(work.outputs), work.cases, str(work.public), config)
    scorer, places = load("dice_scorer"), (str(work.outputs), str(work.private), work.cases)
    dice = scorer.score_all_multiclass(*places, config["tissue_labels"]) if config else scorer.score_all(*places)
    return _runner(load, work, load("aggregate").build_report(checked, dice, MEDAL, None, config), "clinical_score")


def detection(load: Callable[[str], ModuleType], work: Submission) -> dict[str, Any]:
    checked = load("format_checker").check_submission(str(work.outputs), work.cases, str(work.public))
    found = load("det2d_scorer").score_all(str(work.outputs), str(work.private), work.cases)
    return _runner(load, work, load("aggregate").build_report(checked, found, MEDAL), "clinical_score")


def vqa(load: Callable[[str], ModuleType], work: Submission) -> dict[str, Any]:
    """Beside the report, as `unblended`, the step scores before tool usage is blended in."""
    run_eval, verdict = load("run_eval"), load("llm_judge").JudgeVerdict()
    values = work.judged.values
    verdict.s1_plan_score, verdict.s2_setup_score = work.judged.mean("S1", 4), work.judged.mean("S2", 4)
    verdict.s3_validate_score = values["S3"][0]
    before: list[dict[str, Any]] = []
    build = load("aggregate").build_report

    def recorded(*args: Any, **more: Any) -> dict[str, Any]:
        before.append(copy.deepcopy(found := build(*args, **more)))
        return found  # type: ignore[no-any-return]

    run_eval.build_report = recorded
    run_eval.create_judge = lambda: SimpleNamespace(judge=lambda *_: verdict)
    conversation = work.root / "run/process/conversation.json"
    report = run_eval.run_eval(
        str(work.private), str(work.outputs), str(work.public), work.cases, True, json.loads(conversation.read_text()), work.tier,
        str(work.outputs.parent), "open_ended" if work.open_answers else "multiple_choice", str(conversation),
    )  # fmt: skip
    report["unblended"] = before[-1]["step_scores"]
    return report  # type: ignore[no-any-return]


def report_generation(load: Callable[[str], ModuleType], work: Submission) -> dict[str, Any]:
    checked = load("format_checker").check_submission(work.outputs, work.cases, {})
    report = load("aggregate").build_report(
        checked, {"clinical_components": {"observation_f1": work.quality, "report_similarity": work.quality}}
    )
    mean = load("llm_judge")._mean_binary_checks
    steps, total = report["step_scores"], report["aggregate"]
    steps.update({stage.lower(): mean(values) for stage, values in work.judged.values.items()})
    total["agentic_score"] = load("aggregate").compute_workflow_score(steps)[0]
    total["overall_score"] = load("aggregate").compute_overall_score(total["agentic_score"], total["clinical_score"])
    return report  # type: ignore[no-any-return]


def enhancement(load: Callable[[str], ModuleType], work: Submission) -> dict[str, Any]:
    """The branch has no judge: S1 to S3 are nobody's."""
    checked = load("format_checker").check_submission(str(work.outputs), str(work.private), work.cases)
    psnr = None if "D26" in work.told else 20.0
    known = (
        {"scores": {"mean_psnr": psnr, "mean_ssim": 0.7}, "clinical": {"clinical": work.quality}}
        if checked["n_valid"]
        else {}
    )
    path = work.root / "backfilled.json"
    head = {"format": checked, "n_patients": len(work.cases), "orchestrator": {"isolation_breach": bool(work.breach)}}
    path.write_text(json.dumps({**head, **known}))
    load("scripts.compute_agentic_score").back_fill_one(path)
    return json.loads(path.read_text())  # type: ignore[no-any-return]


def _inputs(track: str, work: Submission, case: str) -> Path:
    """The inputs, the truth and a right output of a case."""
    if track == "multiclass":
        _nifti(work.put(work.public, case, "ct.nii.gz"), np.zeros(SHAPE, np.int16))
        _nifti(work.put(work.private, case, "dseg.nii.gz"), _mask())
        _nifti(path := work.put(work.outputs, case, "dseg.nii.gz"), _mask())
        return path
    if track == "segmentation":
        _nifti(work.put(work.public, case, "ct.nii.gz"), np.zeros(SHAPE, np.int16))
        _nifti(work.put(work.private, case, "lesion.nii.gz"), _mask())
        _nifti(work.put(work.private, case, "organ.nii.gz"), _mask())
        _nifti(path := work.put(work.outputs, case, "lesion.nii.gz"), _mask())
        return path
    if track == "enhancement":
        np.save(work.put(work.public, case, "input.npy"), np.arange(30.0).reshape(5, 6))
        np.save(work.put(work.private, case, "reference.npy"), np.ones((5, 6)))
        np.save(path := work.put(work.outputs, case, "enhanced.npy"), np.arange(30.0).reshape(5, 6) / 2)
        return path
    if track == "detection":
        boxes = {"boxes": [{"class": "rbc", "x1": 5, "y1": 5, "x2": 40, "y2": 40, "score": 0.5}]}
        Image.new("L", (100, 60)).save(work.put(work.public, case, "image.png"))
        work.put(work.private, case, "boxes.json").write_text(json.dumps(boxes))
        (path := work.put(work.outputs, case, "prediction.json")).write_text(json.dumps(boxes))
        return path
    if track == "vqa open":
        answer = {"question_id": case, "predicted_label": "", "predicted_answer": "left", "raw_model_output": "It is left.",
                  "model_name": "vlm", "runtime_s": 0.1}  # fmt: skip
        work.put(work.public, case, "question.json").write_text(json.dumps({"question_id": case, "question": "?"}))
        work.put(work.private, case, "answer.json").write_text(json.dumps({"answer_text": "left"}))
        (path := work.put(work.outputs, case, "answer.json")).write_text(json.dumps(answer))
        return path
    if track == "vqa":
        question = {"question_id": case, "question": "?", "options": {"A": "left", "B": "right", "C": "both"}}
        answer = {"question_id": case, "predicted_label": "A", "predicted_answer": "left", "raw_model_output": "It is left.",
                  "model_name": "vlm", "runtime_s": 0.1}  # fmt: skip
        work.put(work.public, case, "question.json").write_text(json.dumps(question))
        work.put(work.private, case, "answer.json").write_text(json.dumps({"answer_label": "A", "answer_text": "left"}))
        (path := work.put(work.outputs, case, "answer.json")).write_text(json.dumps(answer))
        return path
    work.put(work.public, case, "manifest.json").write_text("{}")
    (path := work.put(work.outputs, case, "report.txt")).write_text(
        f"Study {case}: the heart is normal, the lungs are clear."
    )
    return path


LOADER, CALL = "m = VLM.from_pretrained('/w')", "print(m.generate(x))"
CODE: dict[str, list[str]] = {
    "no model": [], "model": [f"{LOADER}\n{CALL}"], "model behind a lambda": [f"{LOADER}\nf = lambda x: m.generate(x)\n{CALL}"],
    "F1": [LOADER, CALL], "F2": [f"# {LOADER}\n# {CALL}\nprint(1)"], "F3": ["p = pipeline('vqa', '/w')\nprint(p(x))"],
}  # fmt: skip
SMOKE = {"model_name": "vlm", "device": "cuda:0", "wall_s": 2.5, "raw_output_sample": "It is left.", "success": True}
RECORD = {"question_id": "q", "raw_model_output": "It is left.", "predicted_answer": "left", "gold_answer": "left", "hit": True}


def _workspace(work: Submission, rng: random.Random) -> list[str]:
    """The agent's own files beside its answers; the code that it ran."""
    beside = work.outputs.parent
    beside.mkdir(parents=True, exist_ok=True)
    smoke = rng.choice([None, SMOKE, SMOKE, SMOKE | {"wall_s": 0.1}, SMOKE | {"device": "cpu"}, SMOKE | {"success": False}])
    if smoke:
        (beside / "smoke_forward.json").write_text(json.dumps(smoke))
    if rng.random() < 0.7:
        code = rng.choice(["def postprocess(raw):\n    return raw\n"] * 4 + ["x = 1\n", "def postprocess(raw)\n"])
        (beside / "answer_postprocess.py").write_text(code)
    if rng.random() < 0.7:
        spoiled = RECORD | rng.choice([{}, {}, {"gold_answer": "NA"}, {"raw_model_output": ", l"}, {"gold_answer": None}])
        n, bad = rng.choice([9, 10, 15]), rng.randint(0, 4)
        (beside / "s3_calibration.json").write_text(json.dumps([spoiled] * bad + [RECORD] * (n - bad)))
    calls = [{"tool": "inspect_image"}] * rng.randint(0, 1)
    calls += [{"tool": "submit_answer", "result_summary": {"status": rng.choice(["ok", "ok", "error"])}} for _ in range(rng.randint(0, 6))]
    if calls:
        (beside / "tool_calls.jsonl").write_text("".join(f"{json.dumps(call)}\n" for call in calls))
    work.told.add(how := rng.choice(sorted(CODE)))
    return CODE[how]


@dataclass(frozen=True)
class Compared:
    """A track, or a variant of one: its branch, the harness's scorer, the ways to spoil a case, and how it reports Task."""

    branch: str
    score: Callable[[Callable[[str], ModuleType], Submission], dict[str, Any]]
    spoils: Mapping[str, Spoil]
    tiers: tuple[str, ...]
    track: str
    task: str
    breaches: bool = False


TRACKS = {
    "segmentation": Compared("eval_seg", segmentation, MASKS, ("lite", "standard", "pro"), "segmentation", "kidney-seg-task", True),
    "multiclass": Compared("eval_seg", segmentation, LABELS, ("lite", "standard", "pro"), "segmentation", "feta-seg-task", True),
    "detection": Compared("eval_det2d", detection, BOXES, ("lite", "standard", "pro"), "detection", "some-detection-task", True),
    "vqa": Compared("eval_vqa", vqa, ANSWERS, ("lite", "standard"), "vqa", "some-vqa-task"),
    "vqa open": Compared("eval_vqa", vqa, OPEN, ("lite", "standard"), "vqa", "some-vqa-task"),
    "report_generation": Compared("eval_report_gen", report_generation, REPORTS, ("lite", "standard"), "report_generation", "some-report-task"),
    "enhancement": Compared("eval_image_enhancement", enhancement, ARRAYS, ("lite", "standard", "pro"), "enhancement", "some-denoise-task", True),
}  # fmt: skip


def made(name: str, folder: Path, rng: random.Random) -> Submission:
    """A random submission on disk."""
    what = TRACKS[name]
    work = Submission(folder, [f"p_{i:02d}" for i in range(1, rng.randint(2, 6))], tier=rng.choice(what.tiers))
    work.judged = Judged.of(rubric_for(what.track, what.task), work.tier, rng)
    work.breach = rng.randint(1, 25) if what.breaches and rng.random() < 0.1 else 0
    work.quality, work.many = round(rng.random(), 4), name == "multiclass"
    work.open_answers = name == "vqa open"
    brief = "Do the task."
    if work.many:
        brief = "Write dseg.nii.gz with labels 0-3." if rng.random() < 0.9 else "Write dseg.nii.gz."
        work.told |= set() if "0-3" in brief else {"D11"}
    share = rng.choice((0.0, 0.2, 0.5, 1.0))
    for case in work.cases:
        path = _inputs(name, work, case)
        if rng.random() < share:
            work.told.add(how := rng.choice(sorted(what.spoils)))
            what.spoils[how](path)
    if name == "enhancement" and rng.random() < 0.1:
        work.told.add("D26")
    codes = _workspace(work, rng) if what.track == "vqa" else []
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Begin."}]
    for number, code in enumerate(codes):
        call = {"name": "execute_code", "arguments": json.dumps({"language": "python", "code": code})}
        messages += [
            {"role": "assistant", "content": "", "tool_calls": [{"id": f"c{number}", "type": "function", "function": call}]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": json.dumps({"exit_code": 0, "stdout": "", "stderr": ""})},
        ]  # fmt: skip
    messages.append({"role": "assistant", "content": "Done."})
    ran = [{"turn": n + 1, "code": code, "exit_code": 0, "stdout_preview": ""} for n, code in enumerate(codes)]
    head = {"agent": "a", "model": "m", "task": what.task, "track": what.track, "tier": work.tier, "system_prompt": brief}
    place = folder / "run/process/conversation.json"
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps({**head, "messages": messages, "code_executions": ran}))
    if name == "segmentation" and work.outputs.is_dir() and rng.random() < 0.05:
        work.told.add("D7")
        work.outputs.rename(work.outputs.with_name("agent_outputs"))
    return work


def formula(name: str, work: Submission, rng: random.Random) -> dict[str, SimpleNamespace]:
    """What a checker and a scorer of the branch may return, in place of their modules."""
    n = rng.choice((1, 3, 5, 8, 150))
    done = rng.choice((n, n, n, n - 1, rng.randint(0, n)))
    good = rng.choice((done, done, rng.randint(0, done)))
    valid, mean = rng.random() < 0.8, rng.choice((0.0, rng.random(), rng.random() / 20))
    flags = {"output_format_valid": valid, "submission_format_valid": valid}
    if name == "vqa":
        stand_in = rng.choice((0, 0, rng.randint(0, done - good)))
        read = good + rng.randint(0, done - good - stand_in)
        rates = {"completion_rate": done, "parse_rate": read, "placeholder_rate": stand_in, "valid_output_rate": read}
        counts = {"expected": n, "prediction_files": done, "valid_outputs": read, "placeholder_predictions": stand_in}
        sent = rng.randint(0, n)
        return {"run_eval": SimpleNamespace(
            check_submission=lambda **_: {"output_format_valid": good == n, "submission_format_valid": good / n >= 0.5},
            score_all=lambda **_: {k: round(v / n, 4) for k, v in rates.items()} | {"counts": counts, "accuracy": round(mean, 4)},
            load_tool_calls=lambda _: [{"tool": "submit_answer", "result_summary": {"status": "ok"}}] * sent + [{"tool": "inspect_image"}] * rng.randint(0, 1),
            check_smoke_forward=lambda _, found=rng.random() < 0.7: {"valid": found},
            check_postprocess_artefact=lambda _, found=rng.random() < 0.7: {"valid": found},
            detect_model_call=lambda _, found=rng.random() < 0.8: {"detected": found, "evidence": []},
        )}  # fmt: skip
    if name == "report_generation":
        whole = {"output_format_valid": good == n, "submission_format_valid": good == n, "any_valid_results": good > 0}
        found: Any = {"completion_rate": round(good / n, 4), **whole}
    elif name == "enhancement":
        found = {"n_patients": n, "n_valid": good, "output_format_valid": good == n, "completion_rate": good / n}
    else:
        found = flags
    cases = {
        f"p{i}": {"lesion_dice": mean if i < done else None, "mean_tissue_dice": mean if i < done else None, "gt_has_lesion": True,
                  "organ_dice": rng.choice((None, rng.random()))}
        for i in range(n)
    }  # fmt: skip
    scored = {"per_patient": cases, "mean_lesion_dice": mean, "macro_mean_dice": mean, "mAP": mean, "completion_rate": done / n}
    scores = SimpleNamespace(score_all=lambda *_: scored, score_all_multiclass=lambda *_: scored)
    work.cases = list(cases)
    return {"format_checker": SimpleNamespace(check_submission=lambda *_: found), "dice_scorer": scores, "det2d_scorer": scores}


def compare_formulas(name: str, checkout: Path, n: int, rng: random.Random) -> int:
    """The same for submissions without files, seen as a report alone and scored like the harness."""
    what, wrong_ones = TRACKS[name], 0
    with branch(checkout, what.branch) as load, tempfile.TemporaryDirectory() as folder:
        first = made(name, Path(folder), rng)
        if (Path(folder) / "run/outputs").exists():
            (Path(folder) / "run/outputs").rename(Path(folder) / "away")
        base = load_run(Path(folder) / "run")
        ready = prepare(base, policy=Policy(like="harness"), rubric=first.judged.rubric)
        known = {"segmentation": ready.segmentation, "found": ready.found}
        for tier in what.tiers:
            for _ in range(n):
                work = Submission(Path(folder), [], tier=tier, many=first.many, quality=round(rng.random(), 4))
                work.judged = Judged.of(first.judged.rubric, tier, rng)
                work.breach = rng.randint(1, 25) if what.breaches and rng.random() < 0.05 else 0
                fakes = formula(name, work, rng)

                def loaded(module: str, fakes: dict[str, SimpleNamespace] = fakes) -> Any:
                    if module in fakes and module != "run_eval":
                        return fakes[module]
                    real = load(module)
                    vars(real).update(vars(fakes.get(module, SimpleNamespace())))
                    return real

                with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(action="ignore"):
                    theirs = json.loads(json.dumps(what.score(loaded, work)))
                report = parse_report(theirs, Path(folder) / "detail_report.json", [])
                status = base.status.model_copy(update={"disqualified": bool(work.breach), "breach_turn": work.breach or None})
                run = base.model_copy(update={"report": report, "tier": tier, "status": status})
                found = card(run, work, None, "harness", name != "enhancement", known)
                if wrong := exact(name, found, theirs):
                    wrong_ones += 1
                    print(f"{name} formula: {'; '.join(wrong)}: tier {tier}, breach {work.breach}, {json.dumps(theirs)[:300]}")
    print(f"{name:18} like harness: formulas {n * len(what.tiers):6} differences {wrong_ones}")
    return wrong_ones


class Replies(NamedTuple):
    """Stands where a judge stands on a card."""

    name: str = "random"
    members: tuple[str, ...] = ()
    prompt_sha256: None = None
    parameters: Mapping[str, Any] = MappingProxyType({})


def card(
    run: Run, work: Submission, public: Path | None, like: Any, judged: bool, known: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    """Our scorecard as JSON has it; `known`: of the prepared run, what need not be worked out again."""
    ready = prepare(run, policy=Policy(like=like), public=public, rubric=work.judged.rubric)
    vars(ready).update(known)
    replies = {stage: Reply(results) for stage, results in work.judged.results.items()} if judged else {}
    return assemble(ready, Replies(), replies).to_dict()


def printed(report: dict[str, Any]) -> dict[str, float | None]:
    """The harness's scores as our card names them."""
    total, steps = report["aggregate"], report["step_scores"]
    task = next(total[k] for k in ("clinical_score", "task_score") if k in total)
    whole = {"agentic": total["agentic_score"], "task": task, "overall": 100 * total["overall_score"]}
    return {**{stage.upper(): value for stage, value in steps.items()}, **whole}


def exact(name: str, found: dict[str, Any], report: dict[str, Any]) -> list[str]:
    """Scores that are not the harness's to the last digit."""
    shown = {**{stage: part["score"] for stage, part in found["stages"].items()}, **{k: found[k] for k in ("agentic", "task", "overall")}}
    digits = {"overall": 2}
    return [
        f"{key} {shown[key]}, not {value}"
        for key, value in printed(report).items()
        if shown[key] != (None if value is None else round(value, digits.get(key, 4)))
    ]


def near(name: str, found: dict[str, Any], report: dict[str, Any], breach: int) -> list[str]:
    """S4, S5, Task and the limit of S1 that are not the harness's by default, and the rest where no listed choice stands between."""
    wanted = printed(report)
    steps = report.get("unblended", report["step_scores"])
    wanted |= {"S4": steps["s4"], "S5": steps["s5"]}
    shown = {stage: part["score"] for stage, part in found["stages"].items()}
    shown |= {k: found[k] for k in ("agentic", "task", "overall")}
    keys = ["S4", "S5", "task"] if "unblended" in report else [*wanted]
    if breach:
        keys = ["agentic", "task", "overall"]
    wrong = []
    for key in keys:
        a, b, off = shown[key], wanted[key], 0.3 if key == "overall" else 6e-3 if key in ("S1", "agentic") else 1e-3
        if (a is None) != (b is None) or (a is not None and b is not None and abs(a - b) > off):
            wrong.append(f"{key} {a}, the harness {b}")
    return wrong


LISTED = re.compile(r"[A-G]\d{1,2}\b")


def compare(name: str, checkout: Path, n: int, rng: random.Random, like: str) -> int:
    """Print a line of figures, and the unnamed differences; how many these are."""
    what = TRACKS[name]
    unnamed, named, raised, done = 0, Counter[str](), 0, 0
    with branch(checkout, what.branch) as load:
        for _ in range(n):
            with tempfile.TemporaryDirectory() as folder:
                work = made(name, Path(folder), rng)
                try:
                    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(action="ignore"):
                        theirs = what.score(load, work)
                except Exception as error:  # it has no guard against hostile files: nothing to compare with
                    raised += 1
                    if os.environ.get("HARNESS_DEBUG"):
                        print(type(error), error, work.told)
                    continue
                done += 1
                bare = {key: value for key, value in theirs.items() if key != "step_scores"}
                run = Path(folder) / "run"
                for view, report in (("public", bare), ("files", theirs), ("report", theirs)):
                    (run / "detail_report.json").write_text(json.dumps(report))
                    if view == "report" and (run / "outputs").exists():
                        (run / "outputs").rename(work.root / "away")
                    loaded = load_run(run)
                    found = card(loaded, work, work.public if view == "public" else None, like, name != "enhancement")
                    if like == "harness":
                        wrong = exact(name, found, theirs)
                    else:
                        wrong = near(name, found, theirs, work.breach)
                    known = sorted(match[0] for how in work.told if (match := LISTED.match(how)))
                    if wrong and known and like != "harness":
                        named.update(known[:1])
                    elif wrong:
                        unnamed += 1
                        how = ", ".join(sorted(work.told))
                        print(f"{name} {view}: {'; '.join(wrong)}: {len(work.cases)} cases, tier {work.tier}, breach {work.breach}, {how}")
    apart = ", ".join(f"{key} {count}" for key, count in sorted(named.items())) or "none"
    print(f"{name:18} like {like}: submissions {done:5} (harness raised on {raised}) unnamed differences {unnamed}; named: {apart}")
    return unnamed


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--n", type=int, default=300, help="submissions a track")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--track", choices=sorted(TRACKS), action="append")
    parser.add_argument("--like", choices=("paper", "harness"), default="paper")
    parser.add_argument("--formulas", type=int, default=0, help="submissions a track and tier; always like the harness")
    args = parser.parse_args()
    checkout = os.environ.get("HARNESS_CHECKOUT")
    if not checkout or not Path(checkout).is_dir():
        print("set HARNESS_CHECKOUT to a folder with the branches of AutoMedBench/AutoMedBench", file=sys.stderr)
        return 2
    place, wrong = Path(checkout), 0
    for name in args.track or TRACKS:
        wrong += compare(name, place, args.n, random.Random(args.seed), args.like) if args.n else 0
        if args.formulas and name != "vqa open":
            wrong += compare_formulas(name, place, args.formulas, random.Random(args.seed))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
