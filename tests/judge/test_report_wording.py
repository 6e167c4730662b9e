"""Units, decimals and length of a report as the brief's sentence on it names them."""

from __future__ import annotations

import pytest
from ambjudge.judge.checks.demands import wrong_wording

BRIEF = "TASK. Write reports.\nOUTPUT. /workspace/agents_outputs/<id>/report.txt: UTF-8, 40 to 8,000 characters, {}. Metric: BLEU.\nRULES. At most 3 sentences of plan."
LENGTHS = "kidney lengths in cm with one decimal"


@pytest.mark.parametrize(
    ("asked", "text", "broken"),
    [
        pytest.param(LENGTHS, "The right kidney measures 104 mm, the left 98 mm.", True, id="another-unit"),
        pytest.param(LENGTHS, "The right kidney measures 10 cm, the left 11 cm.", True, id="no-decimals"),
        pytest.param(LENGTHS, "Right 10.42 centimetres, left 9.81 centimetres.", True, id="two-decimals"),
        pytest.param(LENGTHS, "Right 10.4 cm, left 9.8 cm, with a cyst of 12 mm.", False, id="as-asked"),
        pytest.param(LENGTHS, "Both kidneys are of normal size. No stone.", False, id="no-measure"),
        pytest.param("prostate volume in ml", "The prostate measures 4.1 x 3.2 cm, volume 42 ml.", False, id="volume"),
        pytest.param("prostate volume in ml", "The volume is 42 cc.", False, id="cc-is-ml"),
        pytest.param(
            "at most 12 words",
            "The heart is normal and the lungs are clear without any focal opacity seen.",
            True,
            id="words",
        ),
        pytest.param("no more than 2 sentences", "Heart normal. Lungs clear at 1.5 cm.", False, id="sentences"),
        pytest.param("findings and impression", "Findings: 104 mm. Impression: normal.", False, id="nothing-asked"),
    ],
)
def test_wording(asked, text, broken):
    assert bool(wrong_wording(BRIEF.format(asked), text)) is broken
