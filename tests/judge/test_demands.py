"""What a brief demands of the numbers of an output file."""

import numpy as np
import pytest
from ambjudge.judge.checks.demands import Demand, demanded
from ambjudge.judge.checks.public import PublicInputs

OUT = "OUTPUT. For every scan write /workspace/agents_outputs/<id>/enhanced.npy"


@pytest.mark.parametrize(
    ("brief", "demand"),
    [
        pytest.param(
            f"{OUT}, float32, 80x80, amplitude in [0,1], finite.", Demand("float32", 0.0, 1.0), id="type-and-range"
        ),
        pytest.param(f"{OUT}, same 2D shape. Inputs are int16 in [0, 4095].", Demand(), id="another-sentence"),
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


def test_the_input_of_two_axes_is_the_reference(tmp_path):
    np.save(tmp_path / "clip.npy", np.zeros((4, 8, 8)))
    np.save(tmp_path / "scan.npy", np.zeros((8, 8)))
    assert PublicInputs(root=tmp_path, folders={"c": tmp_path}).array_shape("c") == (8, 8)
