"""S4, S5, Task and the cap of S1 of random submissions: ours beside those of the public harness's own functions.

    HARNESS_CHECKOUT=DIR python benchmarks/harness.py [--n 300] [--seed 1] [--track NAME]

DIR holds the branches of AutoMedBench/AutoMedBench, each unpacked under its name (`eval_seg/eval_seg/aggregate.py`, ...);
their modules are imported at run time and nothing of them is kept here. Each submission has a few cases, each right or
spoiled in one way. We see it three ways: files with public inputs and a report without step scores; files and the report;
the report alone. Ways to spoil that docs/harness.md lists as differences are named after them and counted apart; any other
difference is printed and makes the exit code 1. Submissions on which the harness raises are left out.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import nibabel as nib
import numpy as np
from ambjudge.judge.checks.check import check_outputs
from ambjudge.trajectories.load import load_run
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


ANY: dict[str, Spoil] = {
    "missing": Path.unlink, "misnamed": lambda p: p.rename(p.with_name("result" + p.suffix)) and None, "copied": _copied,
    "empty": lambda p: p.write_bytes(b"") and None,
}  # fmt: skip
MASKS: dict[str, Spoil] = {
    **{k: ANY[k] for k in ("missing", "misnamed", "copied")},
    "shape": lambda p: _nifti(p, np.zeros((6, 5, 4), np.uint8)), "axis of 1": lambda p: _nifti(p, _mask()[..., None]),
    "label 2": lambda p: _nifti(p, _mask() * 2), "half": lambda p: _nifti(p, _mask(np.float32) / 2),
    "float": lambda p: _nifti(p, _mask(np.float64)), "no voxel": lambda p: _nifti(p, np.zeros(SHAPE, np.uint8)),
    "nan": lambda p: _nifti(p, np.full(SHAPE, np.nan, np.float32)), "organ": _organ(lambda p: _nifti(p, _mask())),
    "organ shape": _organ(lambda p: _nifti(p, np.zeros((2, 2, 2), np.uint8))),
    "organ label 3": _organ(lambda p: _nifti(p, _mask() * 3)), "D4": lambda p: p.rename(p.with_name("kidney_lesion.nii.gz")) and None,
}  # fmt: skip
BOXES: dict[str, Spoil] = {
    **{k: ANY[k] for k in ("missing", "misnamed", "copied")},
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


def segmentation(load: Callable[[str], ModuleType], work: Submission) -> dict[str, Any]:
    checked = load("format_checker").check_submission(str(work.outputs), work.cases, str(work.public))
    dice = load("dice_scorer").score_all(str(work.outputs), str(work.private), work.cases)
    return load("aggregate").build_report(checked, dice, MEDAL)  # type: ignore[no-any-return]


def detection(load: Callable[[str], ModuleType], work: Submission) -> dict[str, Any]:
    checked = load("format_checker").check_submission(str(work.outputs), work.cases, str(work.public))
    found = load("det2d_scorer").score_all(str(work.outputs), str(work.private), work.cases)
    return load("aggregate").build_report(checked, found, MEDAL)  # type: ignore[no-any-return]


def vqa(load: Callable[[str], ModuleType], work: Submission) -> dict[str, Any]:
    checked = load("format_checker").check_submission(str(work.outputs), work.cases, str(work.public))
    scored = load("vqa_scorer").score_all(str(work.outputs), str(work.private), str(work.public), work.cases)
    called = scored["counts"]["prediction_files"] % 3 > 0  # with any other number of answers no model was called
    steps = {"s1": 1.0, "s3": 1.0}
    return load("aggregate").build_report(checked, scored, MEDAL, None, steps, called)  # type: ignore[no-any-return]


def report_generation(load: Callable[[str], ModuleType], work: Submission) -> dict[str, Any]:
    checked = load("format_checker").check_submission(work.outputs, work.cases, {})
    names = (
        "BLEU",
        "METEOR",
        "ROUGE_L",
        "F1RadGraph",
        "micro_average_precision",
        "micro_average_recall",
        "micro_average_f1",
    )
    return load("aggregate").build_report(checked, {"clinical_components": dict.fromkeys(names, 0.5)})  # type: ignore[no-any-return]


def enhancement(load: Callable[[str], ModuleType], work: Submission) -> dict[str, Any]:
    checked = load("format_checker").check_submission(str(work.outputs), str(work.private), work.cases)
    known = (
        {"scores": {"mean_psnr": 20.0, "mean_ssim": 0.7}, "clinical": {"clinical": 0.6}} if checked["n_valid"] else {}
    )
    path = work.root / "backfilled.json"
    path.write_text(json.dumps({"format": checked, "n_patients": len(work.cases), **known}))
    load("scripts.compute_agentic_score").back_fill_one(path)
    return json.loads(path.read_text())  # type: ignore[no-any-return]


def _inputs(track: str, work: Submission, case: str) -> Path:
    """The inputs, the truth and a right output of a case."""
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


TRACKS: dict[str, tuple[str, Callable[..., dict[str, Any]], dict[str, Spoil]]] = {
    "segmentation": ("eval_seg", segmentation, MASKS), "detection": ("eval_det2d", detection, BOXES), "vqa": ("eval_vqa", vqa, ANSWERS),
    "report_generation": ("eval_report_gen", report_generation, REPORTS), "enhancement": ("eval_image_enhancement", enhancement, ARRAYS),
}  # fmt: skip


def ours(track: str, work: Submission, report: dict[str, Any], public: bool, files: bool) -> tuple[float | None, ...]:
    """S4, S5, Task and the limit of S1."""
    run = work.root / "run"
    (run / "process").mkdir(parents=True, exist_ok=True)
    head = {"agent": "a", "model": "m", "task": f"some-{track}-task", "track": track, "tier": "lite"}
    messages = [{"role": "user", "content": "Begin."}, {"role": "assistant", "content": "Done."}]
    (run / "process/conversation.json").write_text(json.dumps({**head, "messages": messages}))
    (run / "detail_report.json").write_text(json.dumps(report))
    if not files:
        (run / "outputs").rename(work.root / "away")
    found = check_outputs(load_run(run), public=work.public if public else None)
    return found.s4, found.s5, found.task, found.stage_caps["S1"].value if "S1" in found.stage_caps else 1.0


def compare(track: str, checkout: Path, n: int, rng: random.Random) -> int:
    """Print a line of figures, and the unnamed differences; how many these are."""
    name, score, spoils = TRACKS[track]
    unnamed, named, raised, done = 0, Counter[str](), 0, 0
    with branch(checkout, name) as load:
        for _ in range(n):
            with tempfile.TemporaryDirectory() as folder:
                work = Submission(Path(folder), [f"p_{i:02d}" for i in range(1, rng.randint(2, 6))])
                told, share = set[str](), rng.choice((0.0, 0.2, 0.5, 1.0))
                for case in work.cases:
                    path = _inputs(track, work, case)
                    if rng.random() < share:
                        told.add(how := rng.choice(sorted(spoils)))
                        spoils[how](path)
                try:
                    theirs = score(load, work)
                except Exception:  # it has no guard against hostile files: nothing to compare with
                    raised += 1
                    continue
                steps, total = theirs["step_scores"], theirs["aggregate"]
                task = next(total[k] for k in ("clinical_score", "task_score") if k in total)
                # S1 of answers that are all skipped is difference A5
                counts = theirs.get("metrics", {}).get("counts", {})
                answered = counts.get("valid_outputs", 0) + counts.get("placeholder_predictions", 0)
                wanted = (steps["s4"], steps["s5"], task, steps["s1"] if answered else None)
                done += 1
                bare = {key: value for key, value in theirs.items() if key != "step_scores"}
                for view, report, public, files in (
                    ("public", bare, True, True), ("files", theirs, False, True), ("report", theirs, False, False),
                ):  # fmt: skip
                    found = ours(track, work, report, public, files)
                    if all(
                        b is None or (a is not None and abs(a - b) < 1e-3) for a, b in zip(found, wanted, strict=True)
                    ):
                        continue
                    known = sorted(how.split()[0] for how in told if how[0] == "D" and how[1:].split()[0].isdigit())
                    if known:
                        named.update(known[:1])
                        continue
                    unnamed += 1
                    print(
                        f"{track} {view}: {found}, the harness {wanted}: {len(work.cases)} cases, {', '.join(sorted(told))}"
                    )
    apart = ", ".join(f"{key} {count}" for key, count in sorted(named.items())) or "none"
    print(f"{track:18} submissions {done:5} (harness raised on {raised}) unnamed differences {unnamed}; named: {apart}")
    return unnamed


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--n", type=int, default=300, help="submissions a track")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--track", choices=sorted(TRACKS), action="append")
    args = parser.parse_args()
    checkout = os.environ.get("HARNESS_CHECKOUT")
    if not checkout or not Path(checkout).is_dir():
        print("set HARNESS_CHECKOUT to a folder with the branches of AutoMedBench/AutoMedBench", file=sys.stderr)
        return 2
    wrong = [compare(track, Path(checkout), args.n, random.Random(args.seed)) for track in args.track or TRACKS]
    return 1 if any(wrong) else 0


if __name__ == "__main__":
    sys.exit(main())
