"""The public harness's own functions on one submission, and what its checkers and scorers may
return (`harness.py`)."""

from __future__ import annotations

import copy
import importlib
import json
import random
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from harness_submissions import Submission

MEDAL = {"tier": 0, "name": "none"}


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


S1 = (
    "s1a_plan_md",
    "s1b_plan_pipeline",
    "s1c_lesion_model",
    "s1d_researched_3",
    "s1e_plan_plot",
    "s1f_plot_pipeline",
)
S2 = (
    "s2a_checkpoint_downloaded",
    "s2b_compatibility_check",
    "s2c_env_setup_success",
    "s2d_env_fail_within_5",
    "s2e_model_loaded",
)


def _runner(
    load: Callable[[str], ModuleType], work: Submission, report: dict[str, Any], key: str
) -> dict[str, Any]:
    """What the runner of segmentation and detection makes of a scored submission: verdicts, or the
    penalty for a breach."""
    steps, total = report["step_scores"], report["aggregate"]
    sums = load("aggregate").compute_workflow_score
    if work.breach:
        for stage in ("s1", "s2", "s3", "s4", "s5")[
            sum(work.breach > turn for turn in (5, 10, 15)) :
        ]:
            steps[stage] = 0.0
        report["isolation_breach"] = {"breached": True, "turn": work.breach}
        total.update({key: 0.0, "overall_score": 0.0})
    else:
        values = work.judged.values
        parsed = {
            **dict(zip(S1, values["S1"], strict=True)),
            **dict(zip(S2, values["S2"], strict=True)),
        }
        build = load("llm_judge").BaseJudge._build_verdict
        found = build(
            None, {**parsed, "s3_validate_score": values["S3"][0]}, "", "", 0.0, 0, 0, work.tier
        )
        steps.update(s1=found.s1_plan_score, s2=found.s2_setup_score, s3=found.s3_validate_score)
    total["agentic_score"] = sums(steps)[0]
    total["overall_score"] = round(0.5 * total["agentic_score"] + 0.5 * total[key], 4)
    return report


def segmentation(load: Callable[[str], ModuleType], work: Submission) -> dict[str, Any]:
    config = (
        {"task_type": "multiclass", "tissue_labels": {1: "a", 2: "b", 3: "c"}}
        if work.many
        else None
    )
    checked = load("format_checker").check_submission(
        str(work.outputs), work.cases, str(work.public), config
    )
    scorer, places = load("dice_scorer"), (str(work.outputs), str(work.private), work.cases)
    dice = (
        scorer.score_all_multiclass(*places, config["tissue_labels"])
        if config
        else scorer.score_all(*places)
    )
    return _runner(
        load,
        work,
        load("aggregate").build_report(checked, dice, MEDAL, None, config),
        "clinical_score",
    )


def detection(load: Callable[[str], ModuleType], work: Submission) -> dict[str, Any]:
    checked = load("format_checker").check_submission(
        str(work.outputs), work.cases, str(work.public)
    )
    found = load("det2d_scorer").score_all(str(work.outputs), str(work.private), work.cases)
    return _runner(
        load, work, load("aggregate").build_report(checked, found, MEDAL), "clinical_score"
    )


def vqa(load: Callable[[str], ModuleType], work: Submission) -> dict[str, Any]:
    """Beside the report, as `unblended`, the step scores before tool usage is blended in."""
    run_eval, verdict = load("run_eval"), load("llm_judge").JudgeVerdict()
    values = work.judged.values
    verdict.s1_plan_score, verdict.s2_setup_score = (
        work.judged.mean("S1", 4),
        work.judged.mean("S2", 4),
    )
    verdict.s3_validate_score = values["S3"][0]
    for stage in ("S1", "S2"):
        items = [name for name in vars(verdict) if re.match(rf"{stage.lower()}[a-z]_", name)]
        for name, value in zip(items, values[stage], strict=True):
            setattr(verdict, name, value)
    before: list[dict[str, Any]] = []
    build = load("aggregate").build_report

    def recorded(*args: Any, **more: Any) -> dict[str, Any]:
        before.append(copy.deepcopy(found := build(*args, **more)))
        return found  # type: ignore[no-any-return]

    run_eval.build_report = recorded
    run_eval.create_judge = lambda: SimpleNamespace(judge=lambda *_: verdict)
    conversation = work.root / "run/process/conversation.json"
    report = run_eval.run_eval(
        str(work.private),
        str(work.outputs),
        str(work.public),
        work.cases,
        True,
        json.loads(conversation.read_text()),
        work.tier,
        str(work.outputs.parent),
        "open_ended" if work.open_answers else "multiple_choice",
        str(conversation),
    )
    report["unblended"] = before[-1]["step_scores"]
    return report  # type: ignore[no-any-return]


def report_generation(load: Callable[[str], ModuleType], work: Submission) -> dict[str, Any]:
    checked = load("format_checker").check_submission(work.outputs, work.cases, {})
    report = load("aggregate").build_report(
        checked,
        {
            "clinical_components": {
                "observation_f1": work.quality,
                "report_similarity": work.quality,
            }
        },
    )
    mean = load("llm_judge")._mean_binary_checks
    steps, total = report["step_scores"], report["aggregate"]
    steps.update({stage.lower(): mean(values) for stage, values in work.judged.values.items()})
    total["agentic_score"] = load("aggregate").compute_workflow_score(steps)[0]
    total["overall_score"] = load("aggregate").compute_overall_score(
        total["agentic_score"], total["clinical_score"]
    )
    return report  # type: ignore[no-any-return]


def enhancement(load: Callable[[str], ModuleType], work: Submission) -> dict[str, Any]:
    """The branch has no judge: S1 to S3 are nobody's."""
    checked = load("format_checker").check_submission(
        str(work.outputs), str(work.private), work.cases
    )
    psnr = None if "D26" in work.told else 20.0
    known = (
        {"scores": {"mean_psnr": psnr, "mean_ssim": 0.7}, "clinical": {"clinical": work.quality}}
        if checked["n_valid"]
        else {}
    )
    path = work.root / "backfilled.json"
    head = {
        "format": checked,
        "n_patients": len(work.cases),
        "orchestrator": {"isolation_breach": bool(work.breach)},
    }
    path.write_text(json.dumps({**head, **known}))
    load("scripts.compute_agentic_score").back_fill_one(path)
    return json.loads(path.read_text())  # type: ignore[no-any-return]


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
        rates = {
            "completion_rate": done,
            "parse_rate": read,
            "placeholder_rate": stand_in,
            "valid_output_rate": read,
        }
        counts = {
            "expected": n,
            "prediction_files": done,
            "valid_outputs": read,
            "placeholder_predictions": stand_in,
        }
        sent, smoke, artefacts, called = (
            rng.randint(0, n),
            rng.random() < 0.7,
            rng.random() < 0.7,
            rng.random() < 0.8,
        )
        return {
            "run_eval": SimpleNamespace(
                check_submission=lambda **_: {
                    "output_format_valid": good == n,
                    "submission_format_valid": good / n >= 0.5,
                },
                score_all=lambda **_: (
                    {k: round(v / n, 4) for k, v in rates.items()}
                    | {"counts": counts, "accuracy": round(mean, 4)}
                ),
                load_tool_calls=lambda _: (
                    [{"tool": "submit_answer", "result_summary": {"status": "ok"}}] * sent
                    + [{"tool": "inspect_image"}] * rng.randint(0, 1)
                ),
                check_smoke_forward=lambda _: {"valid": smoke},
                check_postprocess_artefact=lambda _: {"valid": artefacts},
                detect_model_call=lambda _: {"detected": called, "evidence": []},
            )
        }
    if name == "report_generation":
        whole = {
            "output_format_valid": good == n,
            "submission_format_valid": good == n,
            "any_valid_results": good > 0,
        }
        found: Any = {"completion_rate": round(good / n, 4), **whole}
    elif name == "enhancement":
        found = {
            "n_patients": n,
            "n_valid": good,
            "output_format_valid": good == n,
            "completion_rate": good / n,
        }
    else:
        found = flags
    cases = {
        f"p{i}": {
            "lesion_dice": mean if i < done else None,
            "mean_tissue_dice": mean if i < done else None,
            "gt_has_lesion": True,
            "organ_dice": rng.choice((None, rng.random())),
        }
        for i in range(n)
    }
    scored = {
        "per_patient": cases,
        "mean_lesion_dice": mean,
        "macro_mean_dice": mean,
        "mAP": mean,
        "completion_rate": done / n,
    }
    scores = SimpleNamespace(score_all=lambda *_: scored, score_all_multiclass=lambda *_: scored)
    work.cases = list(cases)
    return {
        "format_checker": SimpleNamespace(check_submission=lambda *_: found),
        "dice_scorer": scores,
        "det2d_scorer": scores,
    }


SCORES: dict[str, Callable[[Callable[[str], ModuleType], Submission], dict[str, Any]]] = {
    "segmentation": segmentation,
    "multiclass": segmentation,
    "detection": detection,
    "vqa": vqa,
    "vqa open": vqa,
    "report_generation": report_generation,
    "enhancement": enhancement,
}
