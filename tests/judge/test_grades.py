"""Medal, rating, progress and kind of failure by the limits that the branches of the public harness
publish."""

from __future__ import annotations

from pathlib import Path

import pytest
from ambjudge.analysis.statistics.benchmark_ratings import part_scores, ratings
from ambjudge.analysis.tables.cohorts import cohort
from ambjudge.analysis.tables.frames import conform
from ambjudge.judge.checks.check_outputs import check_outputs
from ambjudge.judge.checks.grades import grades
from ambjudge.trajectories.models import Run
from ambjudge.trajectories.reading.harness_report import parse_report
from ambjudge.trajectories.reading.load import load_run

LAYOUTS = Path(__file__).parents[1] / "data" / "layouts"
PATH = Path("detail_report.json")


@pytest.fixture(scope="module")
def stopped() -> Run:
    """A run without outputs of its own, which reports are given to."""
    return load_run(LAYOUTS / "segmentation_stopped")


def report(score: float, complete: float = 1.0, valid: bool = True, **metrics) -> dict:
    counted = {"completion_rate": complete, **metrics}
    return {"task_score": score, "metrics": counted, "format": {"output_format_valid": valid}}


def image(psnr: float | None, ssim: float) -> dict:
    return report(0.5, mean_ssim=ssim, **({} if psnr is None else {"mean_psnr": psnr}))


VALID, LDCT, SR = (
    {"submission_format_valid": True, "output_format_valid": True},
    "ldct-denoising-task",
    "mri-sr-task",
)
CASES = {
    # name: track, task, report, medal, rating, progress, kind of failure
    "lesions decide": (
        "segmentation",
        "liver",
        report(0.9, lesion_dice=0.69, organ_dice=1.0),
        "okay",
        "B",
        1.0,
        None,
    ),
    "no lesions named": (
        "segmentation",
        "fetal_brain",
        report(0.7, macro_mean_dice=0.7),
        "good",
        "A",
        1.0,
        None,
    ),
    "below the baseline": (
        "segmentation",
        "liver",
        report(0.5, lesion_dice=0.29),
        "fail",
        "C",
        1.0,
        None,
    ),
    "malformed": (
        "segmentation",
        "liver",
        report(0.8, valid=False, lesion_dice=0.8),
        "good",
        "F",
        0.5,
        "timeout",
    ),
    "a case is missing": (
        "segmentation",
        "liver",
        report(0.0, 0.95, lesion_dice=0.0),
        "fail",
        "F",
        0.5,
        "timeout",
    ),
    "nothing delivered": ("segmentation", "liver", report(0.0, 0.0), "fail", "F", 0.0, "no_output"),
    "detection": ("detection", "vindr-cxr-det-task", report(0.6, mAP=0.6), "good", "A", 1.0, None),
    "detection, okay": (
        "detection",
        "vindr-cxr-det-task",
        report(0.59, mAP=0.59),
        "okay",
        "B",
        1.0,
        None,
    ),
    "answers": (
        "vqa",
        "slake-task",
        {**report(0.25, 0.8, parse_rate=0.6), "format": VALID},
        "okay",
        "B",
        0.7,
        None,
    ),
    "few answers": (
        "vqa",
        "slake-task",
        {**report(0.45, 0.4, parse_rate=0.6), "format": VALID},
        "good",
        "F",
        0.5,
        "timeout",
    ),
    "reports": ("report_generation", "mimic-cxr-report-task", report(0.55), "okay", "B", 1.0, None),
    "as good as the best": ("enhancement", LDCT, image(42.8, 0.9864), "good", "A", 1.0, None),
    "one of two is short": ("enhancement", LDCT, image(42.8, 0.95), "okay", "B", 1.0, None),
    "one is enough to fail": ("enhancement", LDCT, image(None, 0.5), "fail", "F", 1.0, "timeout"),
    "one leaves it open": ("enhancement", LDCT, image(None, 0.99), None, None, 1.0, None),
    "another task's bands": ("enhancement", SR, image(23.6, 0.6), "okay", "B", 1.0, None),
    "a task without bands": (
        "enhancement",
        "pet-denoising",
        image(50.0, 1.0),
        None,
        None,
        1.0,
        None,
    ),
    "the report has other bands": (
        "enhancement",
        LDCT,
        {**image(30.0, 0.8), "rating": {"rating": "C"}},
        "fail",
        "C",
        1.0,
        None,
    ),
    "synthesis": ("synthesis", "ct-sr", report(0.95), "okay", "B", 1.0, None),
    "no limits": ("classification", "crc", report(1.0), None, None, 1.0, None),
    "no report of the scorer": (
        "enhancement",
        LDCT,
        {"rating": {"rating": "F", "tier_name": "no_report"}},
        "fail",
        "F",
        None,
        "timeout",
    ),
    "no task score": ("detection", "vindr", {"format": VALID}, None, None, None, None),
    "told by the report alone": (
        "detection",
        "vindr",
        {"task_score": 0.7, "format": VALID, "aggregate": {"progress_rate": 1.0}},
        "good",
        "A",
        1.0,
        None,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_grades_by_the_published_limits(stopped: Run, name: str) -> None:
    track, task, said, medal, rating, progress, failure = CASES[name]
    run = stopped.model_copy(
        update={"track": track, "task": task, "report": parse_report(said, PATH, [])}
    )
    found = grades(run, check_outputs(run))
    assert (found.medal, found.rating, found.failure) == (medal, rating, failure)
    assert found.progress == (None if progress is None else pytest.approx(progress))
    assert found.resolved is (None if rating is None else rating in "AB")


def test_a_submission_that_is_not_good_enough_was_no_timeout(stopped: Run) -> None:
    ended = stopped.status.model_copy(update={"submitted": True})
    said = parse_report(report(0.8, valid=False, lesion_dice=0.8), PATH, [])
    run = stopped.model_copy(update={"report": said, "status": ended})
    assert grades(run, check_outputs(run)).failure == "below_band"


PARTS = {
    "kinds of questions": (
        "vqa",
        {
            "breakdown": {
                "question_type": {
                    "open": {"total": 3, "accuracy": 0.5},
                    "unknown": {"accuracy": 1.0},
                }
            }
        },
        [("question type", "open", 0.5, 3)],
    ),
    "classes": (
        "detection",
        {"per_class_ap": {"mass": {"ap": 0.25, "n_gt": 4}, "odd": {"ap": 7}}},
        [("class", "mass", 0.25, 4)],
    ),
    "tissues": ("segmentation", {"per_class_dice": {"GM": 0.9}}, [("tissue", "GM", 0.9, None)]),
    "hostile": ("detection", {"per_class_ap": {str(i): {"ap": 0.5} for i in range(5000)}}, None),
    "of another kind": ("vqa", {"breakdown": [3], "per_class_ap": {"x": 1}}, []),
}


@pytest.mark.parametrize("name", PARTS)
def test_scores_of_parts(stopped: Run, name: str) -> None:
    track, metrics, expected = PARTS[name]
    run = stopped.model_copy(
        update={"track": track, "report": parse_report(report(0.5, **metrics), PATH, [])}
    )
    found = [(p.by, p.name, p.value, p.cases) for p in grades(run, check_outputs(run)).parts]
    assert len(found) == 100 if expected is None else found == expected


def test_tables_count_ratings_and_parts_and_leave_unknown_ones_null(tmp_path: Path) -> None:
    found = cohort(
        [LAYOUTS / name for name in ("detection", "detection_scored", "segmentation_multiclass")]
    )
    table = ratings(found.runs)
    assert table.select("track", "runs", "A", "F", "good", "usual", "usual_share").rows() == [
        ("detection", 2, 1, 1, 1, "A", 0.5),
        ("segmentation", 1, 1, 0, 1, "A", 1.0),
    ]
    assert part_scores(found).select("split", "part", "agent", "cases", "score").rows() == [
        ("class", "mass", "agent-x", 2.0, pytest.approx(0.505, abs=1e-3)),
        ("class", "nodule", "agent-x", 2.0, 1.0),
        ("tissue", "GM", "agent-x", None, 1.0),
        ("tissue", "eCSF", "agent-x", None, 0.8333),
    ]
    older = ratings(conform(found.runs.drop("rating", "medal", "shuffled")))
    assert older.select("A", "good", "usual", "shuffled").null_count().row(0) == (2, 2, 2, 2)
