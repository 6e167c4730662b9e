"""Classes as briefs list them."""

from __future__ import annotations

import pytest
from ambjudge.trajectories.briefs import classes


@pytest.mark.parametrize(
    ("brief", "names"),
    [
        ("Label every image as CNV, DME or NORMAL.", ("CNV", "DME", "NORMAL")),
        ("Find nodules, classes `solid`, `part_solid` and `ground_glass`, on 9 slices.", ("solid", "part_solid", "ground_glass")),
        ("Find nodules, classes `solid` and `ground_glass`, on 9 axial CT slices.", ()),
        ("Sort them into A / B / C.", ("A", "B", "C")),
        ("One case is one study.", ()),
    ],
    ids=["a list", "the sentence goes on", "two classes and more words", "slashes", "none"],
)  # fmt: skip
def test_classes_of_a_brief(brief, names):
    assert classes(brief) == names
