"""Commitments of plan.md against what was done."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from ambjudge.error_codes.plan_conformance import plan_conformance
from ambjudge.trajectories.load import load_run
from ambjudge.trajectories.models import Segmentation
from ambjudge.trajectories.segment import segment

sys.path.insert(0, str(Path(__file__).parent))
from tiny_runs import say, write_run

RECORDED = Path(__file__).parents[1] / "data" / "recorded"
RUN = "import torch, glob\nnet = torch.load('/data/public/models/{model}')\nfor p in sorted(glob.glob('/data/public/patient_*/ct.nii.gz')):\n    y = net(load(p){scale})\n    nib.save(y, f'/workspace/agents_outputs/{{p}}/lesion.nii.gz')\n"
CHECK = "import glob, nibabel as nib\nfor f in glob.glob('/workspace/agents_outputs/*/lesion.nii.gz'):\n    assert nib.load(f).shape == (64, 64, 24)\n"


def states(tmp_path, plan, turns):
    run = write_run(tmp_path / "run", turns, plan=plan)
    found = plan_conformance(run, Segmentation(turn_stages=("S4",) * len(run.turns), segments=()))
    return {(c.kind, c.what): c.state for c in found}


@pytest.mark.parametrize(
    ("plan", "code", "key", "state"),
    [
        pytest.param("Model: net.pt", RUN.format(model="net.pt", scale=""), ("model", "net.pt"), "done", id="model-used"),
        pytest.param("Model: net.pt", RUN.format(model="other.pt", scale=""), ("model", "net.pt"), "contradicted", id="another-model"),
        pytest.param("Model: net.pt", "print(1)", ("model", "net.pt"), "skipped", id="no-model"),
        pytest.param("Input HU/1000", RUN.format(model="net.pt", scale="/1000"), ("input", "input / 1000"), "done", id="scaled"),
        pytest.param("Input HU/1000", RUN.format(model="net.pt", scale=""), ("input", "input / 1000"), "contradicted", id="not-scaled"),
        pytest.param("Pilot on one case", RUN.format(model="net.pt", scale=""), ("check", "pilot before the batch"), "skipped", id="no-pilot"),
        pytest.param("Verify the files: shape", RUN.format(model="net.pt", scale=""), ("check", "delivered files"), "skipped", id="no-check"),
    ],
)  # fmt: skip
def test_states(tmp_path, plan, code, key, state):
    assert (
        states(tmp_path, plan, [say("Run.", code, "patient_0001 1\npatient_0002 2\npatient_0003 3"), say("Done.")])[key]
        == state
    )


def test_a_check_is_held_to_what_was_promised(tmp_path):
    run = say("Run.", RUN.format(model="net.pt", scale=""), "patient_0001 1")
    found = states(tmp_path, "Verify the files: shape, affine.", [run, say("Check.", CHECK, "ok"), say("Done.")])
    assert found[("check", "shape of the delivered files")] == "done"
    assert found[("check", "affine of the delivered files")] == "skipped"


def test_a_rejected_candidate_is_no_promise(tmp_path):
    assert states(tmp_path, "legacy.pt is rejected: unmaintained", [say("Done.")]) == {}


def test_recorded_promises():
    run = load_run(RECORDED / "runs" / "ldct-lite-03")
    found = {(c.kind, c.what): c.state for c in plan_conformance(run, segment(run))}
    assert found[("output", "enhanced.npy")] == "contradicted"
    assert found[("check", "dtype of the delivered files")] == "skipped"
    assert found[("input", "input / 1000")] == "done"


def test_no_plan_no_commitments():
    run = load_run(RECORDED / "runs" / "crc-lite-01")
    assert plan_conformance(run, segment(run)) == ()
