"""Who says which cases were expected, whether a model was called, and that no deliverable can break
the checks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ambjudge.judge.checks.check_outputs import check_outputs
from ambjudge.judge.checks.model_calls import model_call_found
from conversations import converse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny_runs import of_kind


def write_run(
    folder: Path,
    calls,
    track="detection",
    task="bccd-det-task",
    report=None,
    summary=None,
    files=None,
    brief="Begin.",
):
    """A run with these (language, code, exit code, stdout) calls and files under agents_outputs."""
    turns = [(language, code, out, exit_code) for language, code, exit_code, out in calls]
    return converse(
        folder,
        *turns,
        "Done.",
        brief=brief,
        track=track,
        task=task,
        tier="lite",
        report=report,
        summary=summary,
        outputs=files,
    )


BOXES = json.dumps({"boxes": []})
THREE = {f"image_{i:03d}/prediction.json": BOXES for i in (1, 2, 3)}
LISTING = ("bash", "ls /data/public", 0, "image_001\nimage_002\nimage_003\nimage_004\nmodels\n")


@pytest.mark.parametrize(
    ("calls", "extra", "source", "count", "completion"),
    [
        (
            [LISTING],
            {"summary": {"patient_ids": [f"image_{i:03d}" for i in range(1, 7)]}},
            "agent_summary",
            6,
            0.5,
        ),
        ([LISTING], {"report": {"n_patients": 6}}, "report", 6, 0.5),
        ([LISTING], {"report": {"format": {"completion_rate": 0.6}}}, "report", 5, 0.6),
        ([LISTING], {"report": {"format": {"completion_rate": 1.0}}}, "report", 3, 1.0),
        (
            [
                LISTING,
                ("submit", "", 0, {"complete": True, "missing_files": [], "patients_checked": 3}),
            ],
            {},
            "submit",
            3,
            1.0,
        ),
        ([LISTING], {}, "trace", 4, 0.75),
        ([("bash", "ls", 0, "unet2d.py\nimage_001.png\nv1_02\n")], {}, None, None, None),
        ([], {}, None, None, None),
    ],
    ids=[
        "agent_summary",
        "report count",
        "report rate",
        "report rate 1",
        "submit",
        "listing",
        "one id is no listing",
        "nobody says",
    ],
)
def test_expected_cases(tmp_path, calls, extra, source, count, completion):
    check = check_outputs(write_run(tmp_path, calls, files=THREE, **extra)).s4_checks
    assert (check.cases_from, check.expected_cases, check.completion) == (source, count, completion)


def test_a_listing_names_the_missing_cases_without_any_output(tmp_path):
    (tmp_path / "outputs" / "agents_outputs").mkdir(parents=True)
    check = check_outputs(write_run(tmp_path, [LISTING]))
    assert {fact.case for fact in of_kind(check, "missing")} == {
        f"image_{i:03d}" for i in (1, 2, 3, 4)
    }
    assert (check.s4, check.s5, check.task) == (0.0, 0.0, 0.0)


def test_scratch_folders_are_no_cases(tmp_path):
    files = {**THREE, "pilot/prediction.json": BOXES}
    check = check_outputs(
        write_run(tmp_path, [LISTING], files=files, report={"format": {"completion_rate": 0.75}})
    )
    assert (check.s4_checks.expected_cases, check.s4_checks.completion) == (4, 0.75)
    assert {fact.case for fact in of_kind(check, "extra")} == {"pilot"}


def test_unknown_cases_leave_s4_unscored_but_known_faults_bound_it(tmp_path):
    check = check_outputs(
        write_run(tmp_path, [], files={**THREE, "image_003/prediction.json": "{}"})
    )
    assert (check.s4, check.s4_bounds) == (None, (0.0, 0.5))
    assert check.s5_checks.format_valid is False


@pytest.mark.parametrize(
    ("report", "s4"),
    [({"format": {"completion_rate": 1.0, "output_format_valid": True}}, 1.0), (None, None)],
)
def test_files_of_another_format_than_the_track_knows_are_left_to_the_report(tmp_path, report, s4):
    task = "Detect cells. Write /workspace/agents_outputs/<id>/cells.geojson."
    files = {f"image_{i:03d}/cells.geojson": "{}" for i in (1, 2, 3)}
    check = check_outputs(write_run(tmp_path, [], files=files, report=report, brief=task))
    assert (check.s4, check.issues) == (s4, ())
    assert any("cells.geojson" in warning for warning in check.warnings)


def test_unknown_track_is_unscored(tmp_path):
    run = write_run(tmp_path, [], files=THREE).model_copy(update={"track": None})
    check = check_outputs(run)
    assert (check.s4, check.s5, check.s4_bounds) == (None, None, (0.0, 1.0))


def test_at_most_a_few_dozen_problems_are_listed(tmp_path):
    files = {f"image_{i:03d}/prediction.json": "{}" for i in range(60)}
    problems = check_outputs(
        write_run(tmp_path, [], files=files, report={"n_patients": 60})
    ).s4_checks.problems
    assert len(problems) == 41
    assert problems[-1] == "and 20 more"


LOAD = "from tiny import VLM\nm = VLM.from_pretrained('/w')\n"


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([("python", LOAD + "print(m.generate(x))", 0, "")], True),
        ([("python", LOAD + "print(m.generate(x))", 1, "")], False),
        ([("python", LOAD, 0, ""), ("python", "label = 'A'", 0, "")], False),
        ([("python", "# m = VLM.from_pretrained('/w'); m.generate(x)\nlabel = 'A'", 0, "")], False),
        (
            [("bash", "cat > plan.md <<'E'\nVLM.from_pretrained(p).generate(image)\nE\n", 0, "")],
            False,
        ),
        (
            [
                (
                    "python",
                    "open('p.md', 'w').write('VLM.from_pretrained(p).generate(image)')",
                    0,
                    "",
                )
            ],
            False,
        ),
        ([("bash", f"cat > run.py <<'E'\n{LOAD}m.generate(x)\nE\n", 0, "")], False),
        ([("bash", f"cat > run.py <<'E'\n{LOAD}m.generate(x)\nE\npython run.py\n", 0, "")], True),
        (
            [
                ("bash", f"cat > run.py <<'E'\n{LOAD}m.generate(x)\nE\n", 0, ""),
                ("bash", "python run.py", 0, ""),
            ],
            True,
        ),
        (
            [
                ("bash", f"cat > run.py <<'E'\n{LOAD}m.generate(x)\nE\n", 0, ""),
                ("bash", "python run.py", 1, ""),
            ],
            False,
        ),
        (
            [
                ("bash", f"cat > vlm.py <<'E'\n{LOAD}def ask(x): return m.generate(x)\nE\n", 0, ""),
                ("python", "import vlm\nvlm.ask(1)", 0, ""),
            ],
            True,
        ),
        ([("bash", f"python - <<'E'\n{LOAD}m.generate(x)\nE\n", 0, "")], True),
        (
            [
                (
                    "python",
                    "from transformers import pipeline\npipe = pipeline('vqa')\npipe(image)",
                    0,
                    "",
                )
            ],
            True,
        ),
        (
            [
                (
                    "python",
                    (
                        "import torch\nnet ="
                        " Net()\nnet.load_state_dict(torch.load('w.pt'))\nnet(x).argmax()"
                    ),
                    0,
                    "",
                )
            ],
            True,
        ),
        (
            [("python", "import json\nd = json.load(open('q.json'))\nsubprocess.run(d)", 0, "")],
            False,
        ),
        ([("python", "def answer(q): return 'A'\nanswer(1)", 0, "")], False),
        ([("bash", "ollama run llava 'what is this?' < image.png", 0, "yes")], True),
        ([("python", LOAD + "m.generate(x", 0, "")], False),
        (
            [
                (
                    "python",
                    (
                        "import dermtalk\nm ="
                        " dermtalk.load('/data/public/models/mini.pt')\nprint(m.generate(x, q))"
                    ),
                    0,
                    "",
                )
            ],
            True,
        ),
        (
            [
                (
                    "python",
                    (
                        "from zoo import Talker\nm = Talker('/data/public/models/' +"
                        " 'mini.safetensors')\nprint(m.answer(x, q))"
                    ),
                    0,
                    "",
                )
            ],
            True,
        ),
        (
            [
                ("bash", f"cat > dq.py <<'E'\n{LOAD}print(m.generate(x))\nE\n", 0, ""),
                (
                    "python",
                    "import subprocess, sys\nsubprocess.run([sys.executable, '/workspace/dq.py'])",
                    0,
                    "",
                ),
            ],
            True,
        ),
        (
            [
                ("bash", f"cat > dq.py <<'E'\n{LOAD}print(m.generate(x))\nE\n", 0, ""),
                ("python", "import os\nos.system('python dq.py --all')", 0, ""),
            ],
            True,
        ),
        (
            [
                ("bash", f"cat > dq.py <<'E'\n{LOAD}print(m.generate(x))\nE\n", 0, ""),
                ("python", "print(open('/workspace/dq.py').read())", 0, ""),
            ],
            False,
        ),
        (
            [
                ("bash", f"cat > dq.py <<'E'\n{LOAD}def ask(x): return m.generate(x)\nE\n", 0, ""),
                ("python", "exec(open('/workspace/dq.py').read())\nask(1)", 0, ""),
            ],
            True,
        ),
        (
            [
                (
                    "python",
                    (
                        "print(open('/data/public/models/mini.pt', 'rb').read(4))\nanswers ="
                        " predict(q)"
                    ),
                    0,
                    "",
                )
            ],
            False,
        ),
        ([("python", "d = table.load('questions.json')\nprint(d.answer(1))", 0, "")], False),
        ([], None),
    ],
    ids=[
        "load and generate",
        "failed",
        "loaded only",
        "comment",
        "plan",
        "string",
        "script never run",
        "script run at once",
        "script run later",
        "script failed",
        "module imported",
        "here-document",
        "pipeline",
        "weights",
        "json.load",
        "own function",
        "command",
        "not parsable",
        "a loader of the zoo",
        "a class given weights",
        "a script started as a process",
        "a script started by the system",
        "a script only read",
        "a script executed in place",
        "weights only looked at",
        "a table loaded",
        "no execution",
    ],
)
def test_model_calls(tmp_path, calls, expected):
    assert model_call_found(write_run(tmp_path, calls, track="vqa", task="slake-task")) is expected


def test_real_but_broken_and_no_model_call(tmp_path):
    good = {
        "predicted_label": "A",
        "predicted_answer": "x",
        "raw_model_output": "x",
        "model_name": "m",
        "runtime_s": 1,
    }
    files = {
        f"q_{i:03d}/answer.json": json.dumps({**good, "question_id": f"q_{i:03d}"})
        for i in range(4)
    }
    report = {
        "n_patients": 4,
        "task_metrics": {"accuracy": 0.0, "model_call_detected": False},
        "task_score": {"score": 0.0},
    }
    vqa = {"track": "vqa", "task": "slake-task", "files": files, "report": report}
    real = check_outputs(
        write_run(tmp_path / "a", [("python", LOAD + "m.generate(x)", 0, "")], **vqa)
    )
    assert (real.s4, real.stage_caps) == (0.5, {})
    fake = check_outputs(write_run(tmp_path / "b", [("python", "answer = 'A'", 0, "")], **vqa))
    assert fake.s4 == 0.3
    assert fake.stage_caps == {}  # S4 alone answers for it
    assert fake.s4_checks.caps == ("no model call in a successful execution",)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "boxes",
                    "class",
                    "x1",
                    "y1",
                    "x2",
                    "y2",
                    "score",
                    "question_id",
                    "predicted_label",
                    "predicted_answer",
                    "raw_model_output",
                    "model_name",
                    "runtime_s",
                ]
            )
            | st.text(max_size=5),
            inner,
            max_size=8,
        )
    ),
    max_leaves=20,
)
FORMATS = (
    ("detection", "image_001/prediction.json"),
    ("vqa", "q_001/answer.json"),
    ("classification", "predictions.csv"),
    ("enhancement", "patient_001/enhanced.npy"),
    ("segmentation", "patient_001/lesion.nii.gz"),
    ("synthesis", "patient_001/sct.nii.gz"),
    ("report_generation", "study_001/report.txt"),
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.sampled_from(FORMATS),
    st.binary(max_size=400) | json_values.map(lambda v: json.dumps(v).encode()),
)
def test_no_bytes_break_the_checks(tmp_path, target, data):
    track, name = target
    run = write_run(
        tmp_path / track, [], track=track, task="t", report={"n_patients": 1}, files={name: ""}
    )
    (tmp_path / track / "outputs" / "agents_outputs" / name).write_bytes(data)
    check = check_outputs(run)
    assert check.s4 is not None
    assert 0 <= check.s4 <= 1
    assert check.s4_bounds[0] <= check.s4 <= check.s4_bounds[1]
