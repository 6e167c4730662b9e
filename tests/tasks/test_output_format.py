"""Demands of tasks as data: the shipped files, what a file may say, and values held against it."""

from __future__ import annotations

from pathlib import Path

import pytest
from ambjudge.errors import ConfigError
from ambjudge.judge.checks.brief_paths import case_files
from ambjudge.judge.checks.image_units import unit_problem
from ambjudge.judge.checks.public_inputs import demanded_format
from ambjudge.tasks.output_format import (
    NO_DEMANDS,
    OutputFormat,
    published_format,
    published_formats,
    read_format,
)
from ambjudge.tracks import infer_track


def test_every_published_task_is_of_a_known_track() -> None:
    formats = published_formats()
    full_names = [name for name in formats if name.endswith("-task")]
    assert len(full_names) == 13
    assert not [name for name in full_names if infer_track((), name, {}) is None]
    assert published_format("feta").labels == tuple(range(8))
    assert published_format("nobody-knows-it") is NO_DEMANDS


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("- float32", "is not a mapping", id="list"),
        pytest.param("dtype: float31", "dtype:", id="unknown type"),
        pytest.param("colour: red", "colour:", id="unknown field"),
        pytest.param("low: 1\nhigh: 0", "low 1 is not below high 0", id="empty range"),
        pytest.param("case_files: [../x.npy]", "case_files.0:", id="path"),
        pytest.param("labels: [-1]", "labels.0:", id="negative label"),
        pytest.param("labels: [1", "is not YAML", id="broken"),
    ],
)
def test_a_broken_file_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "task.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as error:
        read_format(file)
    assert message in str(error.value)
    assert str(error.value).startswith(str(file))


def test_a_file_among_the_public_inputs_says_what_a_task_demands(tmp_path: Path) -> None:
    folder = tmp_path / "public" / "cortex-seg-task"
    folder.mkdir(parents=True)
    assert demanded_format(tmp_path / "public", "cortex-seg-task") is None
    (folder / "task.yaml").write_text("labels: [0, 1]\nsource: the brief\n")
    assert demanded_format(tmp_path / "public", "cortex-seg-task").labels == (0, 1)
    (folder / "task.yaml").write_text("labels: [0, 1, 2]\n")
    assert demanded_format(tmp_path / "public", "cortex-seg-task").labels == (0, 1, 2)
    assert demanded_format(tmp_path / "public", "../cortex-seg-task") is None


@pytest.mark.parametrize(
    ("low", "high", "leaves"),
    [(-0.0005, 1.0, False), (-0.2, 1.0, True), (0.0, 1.2, True), (0.1, 0.9, False)],
)
def test_leaving_a_range(low: float, high: float, leaves: bool) -> None:
    assert OutputFormat(low=0, high=1).leaves_range(low, high) is leaves
    assert not NO_DEMANDS.leaves_range(-1e9, 1e9)


@pytest.mark.parametrize(
    ("output_format", "low", "high", "holds_air", "wrong"),
    [
        pytest.param({"unit": "HU"}, -1000, 1500, True, False, id="CT"),
        pytest.param({"unit": "HU"}, 0, 1, True, True, id="normalised CT"),
        pytest.param({"unit": "HU"}, 0, 2500, True, True, id="CT without air"),
        pytest.param({"unit": "HU"}, 10, 80, False, False, id="soft tissue"),
        pytest.param({"unit": "SUV", "low": 0}, -0.4, 9, False, True, id="negative uptake"),
        pytest.param({"unit": "SUV", "low": 0}, 0, 9, False, False, id="uptake"),
        pytest.param({"unit": "SUV"}, 0, 49_000, False, True, id="activity"),
        pytest.param({"unit": "SUV"}, 0, 180, False, False, id="hot spot"),
        pytest.param({}, -1e9, 1e9, True, False, id="no unit"),
    ],
)
def test_units(output_format: dict, low: float, high: float, holds_air: bool, wrong: bool) -> None:
    demanded = OutputFormat(**output_format)
    assert bool(unit_problem(demanded, "x.npy", low, high, holds_air=holds_air)) is wrong


@pytest.mark.parametrize(
    ("brief", "names"),
    [
        ("Write /workspace/agents_outputs/<eye_id>/dseg.png, 8 bit.", ("dseg.png",)),
        (
            "Write /workspace/agents_outputs/{id}/mask.nrrd and agents_outputs/{id}/notes.json.",
            ("mask.nrrd", "notes.json"),
        ),
        ("Write /workspace/agents_outputs/summary.csv.", ()),
    ],
    ids=["one", "two", "none a case"],
)
def test_paths_of_a_brief(brief: str, names: tuple[str, ...]) -> None:
    assert case_files(brief) == names


def test_validation_files_count_only_where_the_brief_names_them() -> None:
    slake = published_format("slake-task")
    assert slake.validation_files_in("leave s3_calibration.json") == {"s3_calibration.json"}
    assert not slake.validation_files_in("answer the questions")
