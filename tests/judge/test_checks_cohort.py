"""What only comparing the delivered files shows: a class in none, one text for most, texts cut off;
and what is measured of each."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from ambjudge.judge.checks.check_outputs import OutputCheck, check_outputs
from ambjudge.tasks.output_format import NO_DEMANDS, OutputFormat
from conversations import converse

nib = pytest.importorskip("nibabel")
IDS = [f"case_{i:02d}" for i in range(1, 9)]


def check_case_files(
    folder: Path,
    track: str,
    brief: str,
    write,
    report: dict | None = None,
    ids=IDS,
    output_format: OutputFormat = NO_DEMANDS,
) -> OutputCheck:
    """The check of a run whose every case is written by `write(case folder, number)`."""
    outputs = folder / "run" / "outputs" / "agents_outputs"
    outputs.mkdir(parents=True)
    for number, case in enumerate(ids):
        (outputs / case).mkdir()
        write(outputs / case, number)
    if track == "classification":
        for case in ids:
            (outputs / case).rmdir()
    brief = f"Track: {track}. {brief}"
    head = {"track": track, "task": f"some-{track}-task", "tier": "lite"}
    run = converse(folder / "run", "Done.", brief=brief, report=report, **head)
    return check_outputs(run.model_copy(update={"output_format": output_format}))


def fact_kinds(check: OutputCheck) -> set[str]:
    assert not any(
        fact.fatal
        for fact in check.issues
        if fact.kind in ("class_absent", "repeated", "cut_off", "identical")
    )
    return {fact.kind for fact in check.issues} & {
        "class_absent",
        "repeated",
        "cut_off",
        "identical",
    }


FINE = "The heart is of normal size. No effusion is seen on the left. Case {}."
SICK = "The heart is enlarged. There is a small effusion on the left."
REPORTS = [
    pytest.param(lambda n: FINE.format(n), set(), id="each its own"),
    pytest.param(
        lambda n: SICK if n < 5 else FINE.format(n), {"repeated"}, id="five of eight alike"
    ),
    pytest.param(lambda n: SICK, {"identical"}, id="all alike"),
    pytest.param(
        lambda n: (
            "The heart is normal. No acute finding in the chest." if n < 6 else FINE.format(n)
        ),
        set(),
        id="most are healthy",
    ),
    pytest.param(lambda n: FINE.format(n)[: 40 + n], {"cut_off"}, id="cut at a limit"),
    pytest.param(
        lambda n: FINE.format(n)[: 40 + n] if n < 3 else FINE.format(n),
        set(),
        id="a few end without a stop",
    ),
    pytest.param(
        lambda n: (
            f"heart size normal, lungs clear without effusion or mass, case {n} of a style without"
            " stops"
        ),
        set(),
        id="no stops at all",
    ),
]


@pytest.mark.parametrize(("text", "expected"), REPORTS)
def test_reports(tmp_path, text, expected):
    assert (
        fact_kinds(
            check_case_files(
                tmp_path,
                "report_generation",
                "",
                lambda folder, n: (folder / "report.txt").write_text(text(n)),
            )
        )
        == expected
    )


HEART = OutputFormat(labels=(0, 1, 2, 3))


def mask(*labels):
    data = np.zeros((9, 8, 7), np.uint8)
    for label in labels:
        data[label * 2 : label * 2 + 2, 2:6, 2:5] = label
    return nib.Nifti1Image(data, np.diag([2.0, 2.0, 5.0, 1.0]))


MASKS = [
    pytest.param(lambda n: (1, 2, 3), set(), id="all labels"),
    pytest.param(lambda n: (1, 2), {"class_absent"}, id="one label nowhere"),
    pytest.param(lambda n: (1, 2) if n else (1, 2, 3), set(), id="once is enough"),
    pytest.param(lambda n: (), set(), id="nothing at all is told as empty"),
]


@pytest.mark.parametrize(("labels", "expected"), MASKS)
def test_masks(tmp_path, labels, expected):
    check = check_case_files(
        tmp_path,
        "segmentation",
        "Write dseg.nii.gz.",
        lambda folder, n: nib.save(mask(*labels(n)), folder / "dseg.nii.gz"),
        output_format=HEART,
    )
    assert fact_kinds(check) == expected
    for number, case in enumerate(IDS):
        assert check.s4_checks.measures[case] == pytest.approx(
            {f"label_{i}": 24 * 0.02 * (i in labels(number)) for i in (1, 2, 3)}
        )


def test_single_masks_are_measured_in_millilitres_of_their_own_grid(tmp_path):
    def write(folder, number):
        grid = np.diag([1.0, 1.0, 1.0, 1.0]) if number % 2 else np.diag([2.0, 2.0, 5.0, 1.0])
        image = nib.Nifti1Image(np.asarray(mask(1).dataobj), grid)
        nib.save(image, folder / "organ.nii.gz")
        nib.save(image, folder / "lesion.nii.gz")

    check = check_case_files(
        tmp_path, "segmentation", "Write organ.nii.gz and lesion.nii.gz.", write
    )
    assert [check.s4_checks.measures[case]["organ"] for case in IDS[:2]] == pytest.approx(
        [24 * 0.02, 24 * 0.001]
    )


def boxes(*pairs):
    return json.dumps(
        {
            "boxes": [
                {"class": c, "x1": x, "y1": 2, "x2": x + 10, "y2": 22, "score": 0.5}
                for c, x in pairs
            ]
        }
    )


SCORED = {"metrics": {"per_class_ap": {"nodule": 0.4, "effusion": 0.0}}}
BOXES = [
    pytest.param(lambda n: [("nodule", n), ("effusion", 30 + n)], set(), id="both classes"),
    pytest.param(lambda n: [("nodule", n)], {"class_absent"}, id="one class nowhere"),
    pytest.param(
        lambda n: [("nodule", 5), ("effusion", 40)], {"identical"}, id="the same boxes everywhere"
    ),
]


@pytest.mark.parametrize(("boxes_of", "expected"), BOXES)
def test_boxes(tmp_path, boxes_of, expected):
    check = check_case_files(
        tmp_path,
        "detection",
        "Detect nodule and effusion.",
        lambda folder, n: (folder / "prediction.json").write_text(boxes(*boxes_of(n))),
        SCORED,
    )
    assert fact_kinds(check) == expected
    assert check.s4_checks.measures["case_03"] == {
        "boxes": len(boxes_of(2)),
        "score": 0.5,
        "width": 10,
        "height": 20,
    }


THREE, FIVE = ("ADI", "MUC", "TUM"), ("ADI", "MUC", "TUM", "STR", "LYM")
LABELS = [
    pytest.param(
        OutputFormat(classes=THREE), lambda n: ("ADI", "MUC", "TUM")[n % 3], set(), id="all given"
    ),
    pytest.param(
        OutputFormat(classes=THREE),
        lambda n: ("ADI", "MUC")[n % 2],
        {"class_absent"},
        id="one never given",
    ),
    pytest.param(
        OutputFormat(classes=FIVE),
        lambda n: ("ADI", "MUC", "TUM", "STR")[n % 4],
        set(),
        id="too few cases to tell",
    ),
    pytest.param(
        OutputFormat(classes=FIVE, every_class_occurs=True),
        lambda n: ("ADI", "MUC", "TUM", "STR")[n % 4],
        {"class_absent"},
        id="few, but all occur",
    ),
    pytest.param(
        OutputFormat(classes=THREE), lambda n: "ADI", {"identical"}, id="one class for all"
    ),
]


@pytest.mark.parametrize(("output_format", "label", "expected"), LABELS)
def test_labels(tmp_path, output_format, label, expected):
    ids = [f"case_{i:02d}" for i in range(1, 33)]

    def write(folder, number):
        rows = "\n".join(f"{case},{label(i)}" for i, case in enumerate(ids))
        (folder.parent / "predictions.csv").write_text(f"patient_id,label\n{rows}\n")

    check = check_case_files(
        tmp_path, "classification", "", write, ids=ids, output_format=output_format
    )
    assert fact_kinds(check) == expected


def test_images_are_measured_where_they_are_finite(tmp_path):
    def write(folder, number):
        image = np.full((6, 5), float(number), np.float32)
        image[0, 0] = np.nan if number == 3 else number + 6
        np.save(folder / "enhanced.npy", image)

    check = check_case_files(tmp_path, "enhancement", "", write)
    assert check.s4_checks.measures["case_02"] == pytest.approx(
        {"mean": 1.2, "std": 1.0770, "min": 1.0, "max": 7.0}, abs=1e-3
    )
    assert "case_04" not in check.s4_checks.measures
