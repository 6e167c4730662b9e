"""What briefs demand in words, beyond the format of their track, and values held against it."""

from __future__ import annotations

import pytest
from ambjudge.judge.checks.demands import (
    class_names,
    files,
    foreign_label,
    other_format,
    sections,
    wants_pixels,
    wants_score,
    wrong_unit,
)

REPORT = "OUTPUT. /workspace/agents_outputs/<id>/report.txt, UTF-8, "
BOXES = (
    'OUTPUT. /workspace/agents_outputs/<id>/prediction.json: {"boxes": [{"class", "x1", "y1", "x2", "y2", "score"}]}, '
)


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ("with FINDINGS and IMPRESSION.", 2),
        ("findings and impression", 2),
        ("findings (stones, sludge, wall) and an impression, from all views.", 0),
        ("FINDINGS (stones, sludge, wall) and IMPRESSION.", 2),
        ("findings text only.", 0),
        ("one paragraph", 0),
    ],
)
def test_sections(words, count):
    assert len(sections(REPORT + words)) == count


def test_boxes():
    assert wants_pixels(BOXES + "pixels inside the image")
    assert not wants_pixels(BOXES + "relative to the image, not pixels")
    assert wants_score(BOXES)
    assert not wants_score(BOXES + "score is optional")


@pytest.mark.parametrize(
    ("label", "foreign"),
    [("CNV", False), ("cnv", True), ("0", True), ("class_CNV", True), ("smooth muscle", False), ("UNSURE", True)],
)
def test_labels_that_the_brief_does_not_list(label, foreign):
    brief = "Classify 40 tiles as CNV, DME or NORMAL (not smooth muscle)."
    assert foreign_label(label, class_names(brief), brief) is foreign


def test_numbers_that_stand_for_classes():
    brief = "Classify scans as CNV, DME or NORMAL. Codes: 0 = CNV, 1 = DME, 2 = NORMAL."
    assert not foreign_label("1", class_names(brief), brief)


@pytest.mark.parametrize(
    ("name", "sentence", "low", "high", "wrong"),
    [
        ("sct.nii.gz", "in HU", -1000, 1500, False),
        ("sct.nii.gz", "float32 Hounsfield units", 0, 1, True),
        ("sct.nii.gz", "in HU", 0, 2500, True),
        ("enhanced.npy", "SUV, non-negative", -0.4, 9, True),
        ("enhanced.npy", "SUV, non-negative", 0, 9, False),
        ("enhanced.npy", "in HU", 10, 80, False),
        ("enhanced.npy", "in SUV", 0, 49_000, True),
        ("enhanced.npy", "in SUV", 0, 180, False),
    ],
)
def test_units(name, sentence, low, high, wrong):
    assert bool(wrong_unit(f"/workspace/agents_outputs/<id>/{name}, {sentence}. Metric.", name, low, high)) is wrong


@pytest.mark.parametrize(
    ("brief", "names"),
    [
        (
            "Write /workspace/agents_outputs/<id>/organ.nii.gz and lesion.nii.gz, uint8.",
            ["organ.nii.gz", "lesion.nii.gz"],
        ),
        (
            "Write agents_outputs/<id>/lesion.nii.gz. Also agents_outputs/volumes.csv (id, ml).",
            ["lesion.nii.gz", "volumes.csv"],
        ),
        ("Write agents_outputs/<id>/lesion.nii.gz; agents_outputs/notes.txt is optional.", ["lesion.nii.gz"]),
    ],
)
def test_files_that_the_brief_names(brief, names):
    assert [name for _, name in files(brief)] == names


@pytest.mark.parametrize(
    ("brief", "names"),
    [
        ("Write /workspace/agents_outputs/<eye_id>/dseg.png, 8 bit.", ("dseg.png",)),
        ("Write /workspace/agents_outputs/{id}/mask.nrrd and agents_outputs/{id}/notes.json.", ("mask.nrrd", "notes.json")),
        ("Write agents_outputs/<id>/lesion.nii.gz and agents_outputs/<id>/preview.png.", ()),
        ("Write lesion.nii.gz for every case. Previews: agents_outputs/<id>/preview.png.", ()),
        ("Write /workspace/agents_outputs/summary.csv.", ()),
    ],
    ids=["one", "two", "beside-the-track's", "the-track's-elsewhere", "none-a-case"],
)  # fmt: skip
def test_files_of_a_format_that_the_track_does_not_know(brief, names):
    assert other_format(brief, frozenset({"lesion.nii.gz", "organ.nii.gz"})) == names
