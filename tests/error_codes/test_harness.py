"""Codes of the harness taxonomy that no recorded run shows."""

from __future__ import annotations

import pytest
from ambjudge.error_codes.context import code_context
from ambjudge.error_codes.fired_codes import fired_codes
from ambjudge.tasks.output_format import OutputFormat
from ambjudge.trajectories.reading.load import load_run
from ambjudge.trajectories.turns.segment import segment
from tiny_runs import say, write_run

ASKS = (
    "OUTPUT. answer.json for every question, and calibration.json with the thresholds that"
    " validation settled on."
)
PILOT = say("Pilot.", "net = torch.load('m.pt')\nprint(net.generate(image, question))", "left lung")


@pytest.mark.parametrize(
    ("track", "brief", "written", "expected"),
    [
        pytest.param("vqa", ASKS, (), ["E8"], id="asked and missing"),
        pytest.param("vqa", ASKS, ("calibration.json",), [], id="delivered"),
        pytest.param("vqa", "OUTPUT. answer.json for every question.", (), [], id="not asked"),
        pytest.param("detection", ASKS, (), [], id="a code of vqa alone"),
    ],
)
def test_validation_artefacts(tmp_path, track, brief, written, expected):
    write_run(
        tmp_path, [PILOT, say("Done.")], track=track, task="some-task", extra=brief, cases=("q_1",)
    )
    for name in written:
        (tmp_path / "outputs" / "agents_outputs" / name).write_text("{}")
    asked = OutputFormat(validation_files=("calibration.json",))
    run = load_run(tmp_path).model_copy(update={"output_format": asked})
    assert [
        c.code for c in fired_codes(code_context(run, segment(run)), "harness") if c.code == "E8"
    ] == expected
