"""The label set of a multi-class task as its brief states it."""

from __future__ import annotations

import pytest
from ambjudge.trajectories.turns.briefs import absolute_scale, allowed_labels, validation_artefacts

BRIEFS = [
    pytest.param("integer labels 0-7", set(range(8)), id="range"),
    pytest.param("labels {0, 1, 2}", {0, 1, 2}, id="set"),
    pytest.param(
        "Integer labels of the tissues: 0 background, 1 external CSF, 2 grey matter, 3 white"
        " matter, 4 ventricles. No other label may occur.",
        {0, 1, 2, 3, 4},
        id="names behind numbers",
    ),
    pytest.param("labels: 1 = liver; 2 = tumour.", {0, 1, 2}, id="equals signs"),
    pytest.param(
        "Labels:\n- 0: background\n- 1: cortex\n- 2: cerebellum\n", {0, 1, 2}, id="a list"
    ),
    pytest.param(
        "integer labels 0 background, 1 LV cavity, 2 myocardium, 3 RV cavity, with the shape of"
        " sax.nii.gz.",
        {0, 1, 2, 3},
        id="names, then other demands",
    ),
    pytest.param(
        "dseg.nii.gz (uint8): background=0, femur=1, tibia=2, patella=3.",
        {0, 1, 2, 3},
        id="names before equals signs",
    ),
    pytest.param(
        "Labels: background 0, femur 1, tibia 2 and patella 3.",
        {0, 1, 2, 3},
        id="names before numbers",
    ),
    pytest.param(
        "A label map with 0 (background), 1 (LV), 2 (myocardium) and 3 (RV)",
        {0, 1, 2, 3},
        id="names in brackets",
    ),
    pytest.param(
        "Voxel values 0 background, 1 core, 2 edema, 4 enhancing",
        {0, 1, 2, 4},
        id="a number left out",
    ),
    pytest.param(
        "Label the tissues in 8 T1-weighted volumes of one leg: 1 fat, 2 muscle, 3 femur (cortex"
        " and marrow), 0 everything else.",
        {0, 1, 2, 3},
        id="numbers before the list",
    ),
    pytest.param(
        "Segment liver (label 1), spleen (label 2) and kidneys (label 3).",
        {0, 1, 2, 3},
        id="each with its label",
    ),
    pytest.param(
        "masks with labels 0, 1 and 2 (background, gland, zone)",
        {0, 1, 2},
        id="numbers joined by and",
    ),
    pytest.param(
        "Predict a label map in 10 patients, 2 images each.", None, id="numbers of something else"
    ),
    pytest.param("Write one label map per patient, 8 patients.", None, id="no label set"),
    pytest.param("labels " + "1 a, " * 60_000, None, id="hostile length"),
    pytest.param("label " + "0 , " * 60_000, {0}, id="hostile repeats"),
]


@pytest.mark.parametrize(("brief", "expected"), BRIEFS)
def test_labels(brief: str, expected: set[int] | None, no_runaway) -> None:
    with no_runaway():
        found = allowed_labels(brief)
    assert found == (None if expected is None else frozenset(expected))


SCALES = [
    pytest.param("OUTPUT. enhanced.npy, float32, same 2D shape, in SUV.", True, id="a unit"),
    pytest.param(
        "OUTPUT. sct.nii.gz in Hounsfield units, air near -1000.", True, id="a unit in words"
    ),
    pytest.param("OUTPUT. enhanced.npy, linear amplitude in [0, 1].", True, id="a range"),
    pytest.param(
        "OUTPUT. enhanced.npy, float32, same scanner units as the input.",
        False,
        id="the input's units",
    ),
    pytest.param(
        "OUTPUT. enhanced.npy, float32, same 2D shape.\nMetric: SSIM in [0, 1].",
        False,
        id="nothing said of the outputs",
    ),
    pytest.param("", False, id="no brief"),
]


@pytest.mark.parametrize(("brief", "expected"), SCALES)
def test_scales(brief: str, expected: bool) -> None:
    assert absolute_scale(brief) is expected


def test_artefacts_of_validation_are_named_files_alone() -> None:
    assert validation_artefacts(
        "Write calibration.json and postprocessing.md; answers in answer.json."
    ) == {
        "calibration.json",
        "postprocessing.md",
    }
    assert validation_artefacts(
        "S3 leaves `answer_postprocess.py` and `outputs/s3_calibration.json`."
    ) == {
        "answer_postprocess.py",
        "s3_calibration.json",
    }
