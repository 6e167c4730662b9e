"""What briefs demand in words beyond the format of their track: numbers, wording, files, classes;
and values held against it."""

from __future__ import annotations

import pytest
from ambjudge.judge.checks.demands import (
    Demand,
    class_names,
    demanded,
    files,
    foreign_label,
    other_format,
    sections,
    wants_pixels,
    wants_score,
    wrong_unit,
    wrong_wording,
)

REPORT = "OUTPUT. /workspace/agents_outputs/<id>/report.txt, UTF-8, "
BOXES = (
    'OUTPUT. /workspace/agents_outputs/<id>/prediction.json: {"boxes": [{"class", "x1", "y1", "x2",'
    ' "y2", "score"}]}, '
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
    [
        ("CNV", False),
        ("cnv", True),
        ("0", True),
        ("class_CNV", True),
        ("smooth muscle", False),
        ("UNSURE", True),
    ],
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
    assert (
        bool(
            wrong_unit(
                f"/workspace/agents_outputs/<id>/{name}, {sentence}. Metric.", name, low, high
            )
        )
        is wrong
    )


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
        (
            "Write agents_outputs/<id>/lesion.nii.gz; agents_outputs/notes.txt is optional.",
            ["lesion.nii.gz"],
        ),
    ],
)
def test_files_that_the_brief_names(brief, names):
    assert [name for _, name in files(brief)] == names


@pytest.mark.parametrize(
    ("brief", "names"),
    [
        ("Write /workspace/agents_outputs/<eye_id>/dseg.png, 8 bit.", ("dseg.png",)),
        (
            "Write /workspace/agents_outputs/{id}/mask.nrrd and agents_outputs/{id}/notes.json.",
            ("mask.nrrd", "notes.json"),
        ),
        ("Write agents_outputs/<id>/lesion.nii.gz and agents_outputs/<id>/preview.png.", ()),
        ("Write lesion.nii.gz for every case. Previews: agents_outputs/<id>/preview.png.", ()),
        ("Write /workspace/agents_outputs/summary.csv.", ()),
    ],
    ids=["one", "two", "beside-the-track's", "the-track's-elsewhere", "none-a-case"],
)
def test_files_of_a_format_that_the_track_does_not_know(brief, names):
    assert other_format(brief, frozenset({"lesion.nii.gz", "organ.nii.gz"})) == names


OUT = "OUTPUT. For every scan write /workspace/agents_outputs/<id>/enhanced.npy"


@pytest.mark.parametrize(
    ("brief", "demand"),
    [
        pytest.param(
            f"{OUT}, float32, 80x80, amplitude in [0,1], finite.",
            Demand("float32", 0.0, 1.0),
            id="type-and-range",
        ),
        pytest.param(
            f"{OUT}, same 2D shape. Inputs are int16 in [0, 4095].", Demand(), id="another-sentence"
        ),
        pytest.param(f"{OUT}, int16 or float32.", Demand(), id="a-choice"),
        pytest.param("Denoise the images.", Demand(), id="no-path"),
    ],
)
def test_demands_of_a_brief(brief, demand):
    assert demanded(brief, "enhanced.npy") == demand


def test_leaving_a_range():
    demand = Demand("float32", 0.0, 1.0)
    assert not demand.leaves(-0.0005, 1.0)
    assert demand.leaves(-0.2, 1.0)
    assert not Demand().leaves(-1e9, 1e9)


BRIEF = (
    "TASK. Write reports.\nOUTPUT. /workspace/agents_outputs/<id>/report.txt: UTF-8, 40 to 8,000"
    " characters, {}. Metric: BLEU.\nRULES. At most 3 sentences of plan."
)
LENGTHS = "kidney lengths in cm with one decimal"


@pytest.mark.parametrize(
    ("asked", "text", "broken"),
    [
        pytest.param(
            LENGTHS, "The right kidney measures 104 mm, the left 98 mm.", True, id="another-unit"
        ),
        pytest.param(
            LENGTHS, "The right kidney measures 10 cm, the left 11 cm.", True, id="no-decimals"
        ),
        pytest.param(
            LENGTHS, "Right 10.42 centimetres, left 9.81 centimetres.", True, id="two-decimals"
        ),
        pytest.param(
            LENGTHS, "Right 10.4 cm, left 9.8 cm, with a cyst of 12 mm.", False, id="as-asked"
        ),
        pytest.param(LENGTHS, "Both kidneys are of normal size. No stone.", False, id="no-measure"),
        pytest.param(
            "prostate volume in ml",
            "The prostate measures 4.1 x 3.2 cm, volume 42 ml.",
            False,
            id="volume",
        ),
        pytest.param("prostate volume in ml", "The volume is 42 cc.", False, id="cc-is-ml"),
        pytest.param(
            "at most 12 words",
            "The heart is normal and the lungs are clear without any focal opacity seen.",
            True,
            id="words",
        ),
        pytest.param(
            "no more than 2 sentences",
            "Heart normal. Lungs clear at 1.5 cm.",
            False,
            id="sentences",
        ),
        pytest.param(
            "findings and impression",
            "Findings: 104 mm. Impression: normal.",
            False,
            id="nothing-asked",
        ),
    ],
)
def test_wording(asked, text, broken):
    assert bool(wrong_wording(BRIEF.format(asked), text)) is broken
