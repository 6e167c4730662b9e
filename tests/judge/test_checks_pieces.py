"""Masks in pieces: the share of the largest piece, and when it is a fact."""

from __future__ import annotations

import nibabel as nib
import numpy as np
import pytest
from ambjudge.judge.checks.nifti import largest_component_share, volume_head
from ambjudge.judge.checks.segmentation import _scattered_masks

ROD = (slice(2, 8), slice(2, 8), slice(2, 8))


def share(folder, mask):
    path = folder / "m.nii.gz"
    nib.save(nib.Nifti1Image(mask.astype("uint8"), np.eye(4)), path)
    return largest_component_share(path, volume_head(path, folder))


@pytest.mark.parametrize(
    ("boxes", "expected"),
    [
        pytest.param([ROD], 1.0, id="one"),
        pytest.param([ROD, (slice(12, 18), slice(12, 18), slice(12, 18))], 0.5, id="two-alike"),
        pytest.param([ROD, (slice(8, 11), slice(2, 8), slice(2, 8))], 1.0, id="touching"),
        pytest.param([ROD, (slice(8, 14), slice(8, 14), slice(8, 14))], 0.5, id="corner-only"),
        pytest.param([(slice(0, 3), slice(0, 3), slice(0, 3))], None, id="too-small"),
        pytest.param([], None, id="empty"),
    ],
)
def test_largest_component_share(tmp_path, boxes, expected):
    mask = np.zeros((20, 20, 20), dtype=bool)
    for box in boxes:
        mask[box] = True
    assert share(tmp_path, mask) == expected


def test_a_long_winding_path_is_one_piece(tmp_path):
    mask = np.zeros((101, 100, 1), dtype=bool)
    mask[::2] = True
    mask[1::4, -1] = mask[3::4, 0] = True
    assert share(tmp_path, mask) == 1.0


@pytest.mark.parametrize(
    ("shares", "cases"),
    [
        pytest.param([1, 1, 1, 0.6], ["3"], id="one-of-four"),
        pytest.param([1, 1, 0.6], [], id="too-few-cases"),
        pytest.param([0.5, 0.5, 0.5, 0.52], [], id="two-kidneys"),
        pytest.param([1, 0.97, 0.95, 0.85, 1], [], id="a-speck"),
    ],
)
def test_scattered_is_a_fact_where_the_others_are_whole(shares, cases):
    facts = _scattered_masks({"organ.nii.gz": {str(i): value for i, value in enumerate(shares)}})
    assert [fact.case for fact in facts] == cases
    assert not any(fact.fatal for fact in facts)
