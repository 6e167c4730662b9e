"""Which folders of the public inputs are cases: those that hold what their neighbours hold,
whatever their names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from ambjudge.judge.checks.public_inputs import PublicInputs, find_public

CASES = [
    pytest.param(
        {
            "film_01": ["film.png"],
            "film_02": ["film.png"],
            "zoo": ["net.py", "net.pt", "README.md"],
        },
        ["film_01", "film_02"],
        id="a zoo",
    ),
    pytest.param(
        {"p1": ["ct.nii.gz"], "p2": ["ct.nii.gz"], "tools": ["denoise.py"]},
        ["p1", "p2"],
        id="tools",
    ),
    pytest.param(
        {"q1": ["question.json", "image.png"], "q2": ["question.json"], "assets": ["logo.svg"]},
        ["q1", "q2"],
        id="an odd asset",
    ),
    pytest.param({"only": ["ct.nii.gz"], "code": ["run.py"]}, ["only"], id="a single case"),
    pytest.param(
        {"s1": ["a.jpg", "b.jpg"], "s2": ["a.JPG"], "models": ["w.jpg"]},
        ["s1", "s2"],
        id="a model folder by its name",
    ),
    pytest.param({"a": ["x.py"], "b": ["y.py"]}, ["a", "b"], id="nothing else known"),
]


@pytest.mark.parametrize(("folders", "expected"), CASES)
def test_cases(tmp_path: Path, folders: dict[str, list[str]], expected: list[str]) -> None:
    for folder, files in folders.items():
        for name in files:
            path = tmp_path / "some-task" / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"x")
    inputs = find_public(tmp_path, "some-task")
    assert inputs is not None
    assert list(inputs.cases) == expected


def test_the_input_of_two_axes_is_the_reference(tmp_path: Path) -> None:
    np.save(tmp_path / "clip.npy", np.zeros((4, 8, 8)))
    np.save(tmp_path / "scan.npy", np.zeros((8, 8)))
    assert PublicInputs(root=tmp_path, folders={"c": tmp_path}).array_shape("c") == (8, 8)
