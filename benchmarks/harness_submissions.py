"""Random submissions to the tracks of the public harness, on disk, each case right or spoiled in
one way (`harness.py`)."""

from __future__ import annotations

import gzip
import json
import random
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
from ambjudge.judge.base import JUDGED_STAGES
from ambjudge.judge.card.stage_results import CriterionResult
from ambjudge.judge.scoring.criteria import split_criteria
from ambjudge.rubrics.load import rubric_for
from ambjudge.rubrics.model import Rubric
from PIL import Image

SHAPE = (5, 6, 4)
Spoil = Callable[[Path], None]


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
    folder: str = "agents_outputs"
    """The branch's own folder of outputs."""
    told: set[str] = field(default_factory=set)
    """How it is spoiled."""

    @property
    def outputs(self) -> Path:
        return self.root / "run/outputs" / self.folder

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


def _patched(offset: int, data: bytes) -> bytes:
    """A label map with other bytes in its header."""
    content = bytearray(nib.Nifti1Image(_mask(), np.eye(4)).to_bytes())
    content[offset : offset + len(data)] = data
    return gzip.compress(bytes(content))


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
    "missing": Path.unlink,
    "misnamed": lambda p: p.rename(p.with_name("result" + p.suffix)) and None,
    "copied": _copied,
    "empty": lambda p: p.write_bytes(b"") and None,
    "D6": _linked,
}
MASKS: dict[str, Spoil] = {
    **{k: ANY[k] for k in ("missing", "misnamed", "copied")},
    "shape": lambda p: _nifti(p, np.zeros((6, 5, 4), np.uint8)),
    "axis of 1": lambda p: _nifti(p, _mask()[..., None]),
    "label 2": lambda p: _nifti(p, _mask() * 2),
    "half": lambda p: _nifti(p, _mask(np.float32) / 2),
    "float": lambda p: _nifti(p, _mask(np.float64)),
    "no voxel": lambda p: _nifti(p, np.zeros(SHAPE, np.uint8)),
    "nan": lambda p: _nifti(p, np.full(SHAPE, np.nan, np.float32)),
    "organ": _organ(lambda p: _nifti(p, _mask())),
    "organ shape": _organ(lambda p: _nifti(p, np.zeros((2, 2, 2), np.uint8))),
    "organ label 3": _organ(lambda p: _nifti(p, _mask() * 3)),
    "D4": lambda p: p.rename(p.with_name("kidney_lesion.nii.gz")) and None,
    "D4 both": lambda p: _nifti(p.with_name("liver_lesion.nii.gz"), _mask()),
    "D5": lambda p: _nifti(p, _mask(np.complex64)),
    "D5 two": lambda p: _nifti(p, _mask(np.complex64) * 2),
    "D6": _linked,
}
LABELS: dict[str, Spoil] = {
    **{
        k: MASKS[k]
        for k in (
            "missing",
            "misnamed",
            "copied",
            "shape",
            "axis of 1",
            "no voxel",
            "nan",
            "D5",
            "D6",
        )
    },
    "label 9": lambda p: _nifti(p, _mask() * 9),
    "label 2": lambda p: _nifti(p, _mask() * 2),
    "D9": lambda p: _nifti(p, _mask(np.float32) * 1.2),
    "D9 to 4": lambda p: _nifti(p, _mask(np.float32) * 3.6),
    "D9 noise": lambda p: _nifti(p, _mask(np.float32) + np.linspace(0, 0.4, 120).reshape(SHAPE)),
    "D10": lambda p: p.write_bytes(b"no gzip") and None,
    "D10 colours": lambda p: _nifti(p, np.zeros(SHAPE, [(c, "u1") for c in "RGB"])),
    "no extent": lambda p: (
        p.write_bytes(_patched(40, struct.pack("<8h", 3, 5, 0, 4, 1, 1, 1, 1))) and None
    ),
    "mark of a pair": lambda p: p.write_bytes(_patched(344, b"ni1\0")) and None,
    "D10 offset in the header": lambda p: (
        p.write_bytes(_patched(108, struct.pack("<f", 100))) and None
    ),
    "offset 0": lambda p: p.write_bytes(_patched(108, struct.pack("<f", 0))) and None,
    "D10 cut": lambda p: p.write_bytes(p.read_bytes()[:-20]) and None,
}
BOXES: dict[str, Spoil] = {
    **{k: ANY[k] for k in ("missing", "misnamed", "copied", "D6")},
    "no boxes": lambda p: p.write_text('{"boxes": []}') and None,
    "no class": _json(**{"class": ""}),
    "class a number": _json(**{"class": 1}),
    "other class": _json(**{"class": "platypus"}),
    "score null": _json(score=None),
    "score nan": _json(score=float("nan")),
    "score 1.2": _json(score=1.2),
    "no score": _json(score=...),
    "reversed": _json(x1=50, x2=10),
    "beyond": _json(x2=101),
    "at the border": _json(x1=0, y1=0, x2=100, y2=60),
    "negative": _json(y1=-1),
    "flat": _json(y2=5),
    "D14 coordinate": _json(x1=True),
    "D14 score": _json(score=True),
    "D15": lambda p: p.write_bytes(b"\xef\xbb\xbf" + p.read_bytes()) and None,
}
ANSWERS: dict[str, Spoil] = {
    **ANY,
    "no text": _json(predicted_answer=""),
    "small letter": _json(predicted_label="a"),
    "wrong option": _json(predicted_label="B"),
    "dot": _json(predicted_label="A."),
    "no label": _json(predicted_label=""),
    "label null": _json(predicted_label=None),
    "other case": _json(predicted_answer="Left"),
    "blank beside": _json(predicted_answer=" left "),
    "text null": _json(predicted_answer=None),
    "text a number": _json(predicted_answer=5),
    "no model": _json(model_name=""),
    "no run time": _json(runtime_s=None),
    "negative time": _json(runtime_s=-1),
    "other question": _json(question_id="q_77"),
    "heuristic": _json(raw_model_output="heuristic: left"),
    "Fallback": _json(raw_model_output=" Fallback:left"),
    "blank before colon": _json(raw_model_output="Fallback : left"),
    "na": _json(raw_model_output="NA"),
    "n/a": _json(raw_model_output=" n/a "),
    "unknown dot": _json(raw_model_output="unknown."),
    "raw empty": _json(raw_model_output=""),
    "raw a list": _json(raw_model_output=["left"]),
    "raw missing": _json(raw_model_output=...),
    "skip": _json(raw_model_output="", predicted_answer="", predicted_label=""),
    "D20": _json(raw_model_output="", predicted_answer=""),
    "D23": _json(predicted_label="E", predicted_answer="x"),
    "D15": lambda p: p.write_bytes(b"\xef\xbb\xbf" + p.read_bytes()) and None,
    "D14 time": _json(runtime_s=True),
    "D29 nan": _json(runtime_s=float("nan")),
    "D29 infinite": _json(runtime_s=float("inf")),
    "D29 minus infinity": _json(runtime_s=float("-inf")),
    "D29 blank model": _json(model_name=" "),
}
OPEN: dict[str, Spoil] = {
    **{
        k: ANSWERS[k]
        for k in (
            "missing",
            "empty",
            "no text",
            "text null",
            "text a number",
            "no model",
            "skip",
            "D15",
            "D14 time",
            "na",
            "D6",
        )
    },
    **{
        k: ANSWERS[k]
        for k in (
            "raw empty",
            "raw a list",
            "raw missing",
            "other question",
            "heuristic",
            "negative time",
        )
    },
    "D20": _json(raw_model_output="", predicted_answer="", predicted_label="A"),
    "D23 label": _json(predicted_label="A"),
    "D23 label alone": _json(predicted_label="A", predicted_answer=""),
    "D23 no label": _json(predicted_label=...),
    "D29 label a list": _json(predicted_label=["A"]),
    "D29 label a number": _json(predicted_label=3),
    "yes": _json(predicted_answer="yes"),
    "blanks": _json(predicted_answer="  "),
}
REPORTS: dict[str, Spoil] = {
    **ANY,
    "short": lambda p: p.write_text("Clear.") and None,
    "38 and 4": lambda p: p.write_text("x" * 38 + "\n" * 4) and None,
    "39": lambda p: p.write_text("x" * 38 + "\n") and None,
    "8,004": lambda p: p.write_text("x" * 7999 + "\n" * 5) and None,
    "two bytes a break": lambda p: p.write_bytes(b"x" * 38 + b"\r\n" * 2) and None,
    "digits": lambda p: p.write_text("1 " * 40) and None,
    "latin-1": lambda p: p.write_bytes("Erg\xfcsse ".encode("latin-1") * 10) and None,
    "blanks": lambda p: p.write_text(" " * 60) and None,
    "D17": lambda p: p.write_text("Ergüsse rechts und links. " * 3) and None,
}
ARRAYS: dict[str, Spoil] = {
    **ANY,
    "axes": lambda p: np.save(p, np.ones((5, 6, 1))),
    "swapped": lambda p: np.save(p, np.ones((6, 5)) / 2),
    "integers": lambda p: np.save(p, np.ones((5, 6), int)),
    "nan": lambda p: np.save(p, np.full((5, 6), np.nan)),
    "inf": lambda p: np.save(p, np.full((5, 6), np.inf)),
    "half": lambda p: np.save(p, np.ones((5, 6), np.float16)),
    "constant": lambda p: np.save(p, np.zeros((5, 6))),
}


@dataclass
class Judged:
    """Random verdicts on a track's criteria: values by stage, in order; None where the tier leaves
    an item out."""

    rubric: Rubric
    values: dict[str, list[float | None]]
    results: dict[str, tuple[CriterionResult, ...]]

    @classmethod
    def of(cls, rubric: Rubric, tier: Any, rng: random.Random) -> Judged:
        values: dict[str, list[float | None]] = {}
        results: dict[str, tuple[CriterionResult, ...]] = {}
        for stage in JUDGED_STAGES:
            split = split_criteria(rubric.stages[stage], tier)
            made = [
                CriterionResult(id=c.id, value=rng.choice(c.values), status="scored")
                for c in split.to_judge
            ]
            known = {r.id: r.value for r in (*made, *split.credited)}
            values[stage] = [known.get(c.id) for c in rubric.stages[stage].criteria]
            results[stage] = tuple(made)
        return cls(rubric, values, results)

    def mean(self, stage: str, digits: int) -> float:
        known = [value for value in self.values[stage] if value is not None]
        return round(sum(known) / len(known), digits)


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
        np.save(
            path := work.put(work.outputs, case, "enhanced.npy"), np.arange(30.0).reshape(5, 6) / 2
        )
        return path
    if track == "detection":
        boxes = {"boxes": [{"class": "rbc", "x1": 5, "y1": 5, "x2": 40, "y2": 40, "score": 0.5}]}
        Image.new("L", (100, 60)).save(work.put(work.public, case, "image.png"))
        work.put(work.private, case, "boxes.json").write_text(json.dumps(boxes))
        (path := work.put(work.outputs, case, "prediction.json")).write_text(json.dumps(boxes))
        return path
    if track == "vqa open":
        answer = {
            "question_id": case,
            "predicted_label": "",
            "predicted_answer": "left",
            "raw_model_output": "It is left.",
            "model_name": "vlm",
            "runtime_s": 0.1,
        }
        work.put(work.public, case, "question.json").write_text(
            json.dumps({"question_id": case, "question": "?"})
        )
        work.put(work.private, case, "answer.json").write_text(json.dumps({"answer_text": "left"}))
        (path := work.put(work.outputs, case, "answer.json")).write_text(json.dumps(answer))
        return path
    if track == "vqa":
        question = {
            "question_id": case,
            "question": "?",
            "options": {"A": "left", "B": "right", "C": "both"},
        }
        answer = {
            "question_id": case,
            "predicted_label": "A",
            "predicted_answer": "left",
            "raw_model_output": "It is left.",
            "model_name": "vlm",
            "runtime_s": 0.1,
        }
        work.put(work.public, case, "question.json").write_text(json.dumps(question))
        work.put(work.private, case, "answer.json").write_text(
            json.dumps({"answer_label": "A", "answer_text": "left"})
        )
        (path := work.put(work.outputs, case, "answer.json")).write_text(json.dumps(answer))
        return path
    work.put(work.public, case, "manifest.json").write_text("{}")
    (path := work.put(work.outputs, case, "report.txt")).write_text(
        f"Study {case}: the heart is normal, the lungs are clear."
    )
    return path


LOADER, CALL = "m = VLM.from_pretrained('/w')", "print(m.generate(x))"
CODE: dict[str, list[str]] = {
    "no model": [],
    "model": [f"{LOADER}\n{CALL}"],
    "model behind a lambda": [f"{LOADER}\nf = lambda x: m.generate(x)\n{CALL}"],
    "F1": [LOADER, CALL],
    "F2": [f"# {LOADER}\n# {CALL}\nprint(1)"],
    "F3": ["p = pipeline('vqa', '/w')\nprint(p(x))"],
}
SMOKE = {
    "model_name": "vlm",
    "device": "cuda:0",
    "wall_s": 2.5,
    "raw_output_sample": "It is left.",
    "success": True,
}
RECORD = {
    "question_id": "q",
    "raw_model_output": "It is left.",
    "predicted_answer": "left",
    "gold_answer": "left",
    "hit": True,
}


def _workspace(work: Submission, rng: random.Random) -> list[str]:
    """The agent's own files beside its answers; the code that it ran."""
    beside = work.outputs.parent
    beside.mkdir(parents=True, exist_ok=True)
    smoke = rng.choice(
        [
            None,
            SMOKE,
            SMOKE,
            SMOKE | {"wall_s": 0.1},
            SMOKE | {"device": "cpu"},
            SMOKE | {"success": False},
        ]
    )
    if smoke:
        (beside / "smoke_forward.json").write_text(json.dumps(smoke))
    if rng.random() < 0.7:
        code = rng.choice(
            ["def postprocess(raw):\n    return raw\n"] * 4 + ["x = 1\n", "def postprocess(raw)\n"]
        )
        (beside / "answer_postprocess.py").write_text(code)
    if rng.random() < 0.7:
        spoiled = RECORD | rng.choice(
            [{}, {}, {"gold_answer": "NA"}, {"raw_model_output": ", l"}, {"gold_answer": None}]
        )
        n, bad = rng.choice([9, 10, 15]), rng.randint(0, 4)
        (beside / "s3_calibration.json").write_text(
            json.dumps([spoiled] * bad + [RECORD] * (n - bad))
        )
    calls = [{"tool": "inspect_image"}] * rng.randint(0, 1)
    calls += [
        {"tool": "submit_answer", "result_summary": {"status": rng.choice(["ok", "ok", "error"])}}
        for _ in range(rng.randint(0, 6))
    ]
    if calls:
        (beside / "tool_calls.jsonl").write_text("".join(f"{json.dumps(call)}\n" for call in calls))
    work.told.add(how := rng.choice(sorted(CODE)))
    return CODE[how]


@dataclass(frozen=True)
class Compared:
    """A track, or a variant of one: its branch, the ways to spoil a case, its tiers, and whether
    runs may breach."""

    branch: str
    spoils: Mapping[str, Spoil]
    tiers: tuple[str, ...]
    track: str
    task: str
    breaches: bool = False


TRACKS = {
    "segmentation": Compared(
        "eval_seg", MASKS, ("lite", "standard", "pro"), "segmentation", "kidney-seg-task", True
    ),
    "multiclass": Compared(
        "eval_seg", LABELS, ("lite", "standard", "pro"), "segmentation", "feta-seg-task", True
    ),
    "detection": Compared(
        "eval_det2d", BOXES, ("lite", "standard", "pro"), "detection", "some-detection-task", True
    ),
    "vqa": Compared("eval_vqa", ANSWERS, ("lite", "standard"), "vqa", "some-vqa-task"),
    "vqa open": Compared("eval_vqa", OPEN, ("lite", "standard"), "vqa", "some-vqa-task"),
    "report_generation": Compared(
        "eval_report_gen", REPORTS, ("lite", "standard"), "report_generation", "some-report-task"
    ),
    "enhancement": Compared(
        "eval_image_enhancement",
        ARRAYS,
        ("lite", "standard", "pro"),
        "enhancement",
        "some-denoise-task",
        True,
    ),
}


FOLDERS = {"eval_report_gen": "agent_outputs"}
"""Folders of outputs of branches that do not call theirs `agents_outputs`."""


def made(name: str, folder: Path, rng: random.Random) -> Submission:
    """A random submission on disk."""
    what = TRACKS[name]
    work = Submission(
        folder,
        [f"p_{i:02d}" for i in range(1, rng.randint(2, 6))],
        tier=rng.choice(what.tiers),
        folder=FOLDERS.get(what.branch, "agents_outputs"),
    )
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
        call = {
            "name": "execute_code",
            "arguments": json.dumps({"language": "python", "code": code}),
        }
        messages += [
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": f"c{number}", "type": "function", "function": call}],
            },
            {
                "role": "tool",
                "tool_call_id": f"c{number}",
                "content": json.dumps({"exit_code": 0, "stdout": "", "stderr": ""}),
            },
        ]
    messages.append({"role": "assistant", "content": "Done."})
    ran = [
        {"turn": n + 1, "code": code, "exit_code": 0, "stdout_preview": ""}
        for n, code in enumerate(codes)
    ]
    head = {
        "agent": "a",
        "model": "m",
        "task": what.task,
        "track": what.track,
        "tier": work.tier,
        "system_prompt": brief,
    }
    place = folder / "run/process/conversation.json"
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps({**head, "messages": messages, "code_executions": ran}))
    if what.track != "vqa" and work.outputs.is_dir() and rng.random() < 0.05:
        work.told.add("D7")
        (other,) = {"agents_outputs", "agent_outputs"} - {work.folder}
        work.outputs.rename(work.outputs.with_name(other))
    return work
