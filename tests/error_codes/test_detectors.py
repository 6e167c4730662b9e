"""Every detector: what fires it and the nearest thing that does not; and what holds for all of them
on real runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ambjudge.error_codes.context import code_context
from ambjudge.error_codes.registry import DETECTORS, detector, detectors
from ambjudge.judge.checks.check_outputs import check_outputs
from ambjudge.testing import check_detector
from ambjudge.trajectories.reading.load import load_run
from ambjudge.trajectories.turns.segment import segment
from tiny_runs import SUBMIT, facts, say, submit

FLAT = str.maketrans({"(": None, "[": None, ")": None, "]": None, " ": None, "\n": None})
DATA = Path(__file__).parents[1] / "data"
GALLERY = sorted(path.stem for path in (DATA / "golden" / "scores").glob("*.json"))

LOAD = "import torch\nnet = torch.load('/data/public/models/net.pt')\n"
LOOP = (
    "import glob\nfor p in sorted(glob.glob('/data/public/patient_*/ct.nii.gz')):\n    x ="
    " load(p)\n    y = net(x)\n"
)
SAVE = "    nib.save(y, f'/workspace/agents_outputs/{pid}/lesion.nii.gz')\n"
BATCH = LOAD + LOOP + SAVE + "    print(pid, 'tumour', int(y.sum()))\n"
CHECK = (
    "import glob, nibabel as nib\nfor f in"
    " glob.glob('/workspace/agents_outputs/*/lesion.nii.gz'):\n    k = nib.load(f); assert k.shape"
    " == (64, 64, 24)\n    print(f, k.shape, 'ok')\n"
)
LOG = "\n".join(f"patient_{i:04d} tumour {400 + 37 * i}" for i in range(1, 9))
TRACE = (
    'Traceback (most recent call last):\n  File "/workspace/run.py", line 9, in main\n    y ='
    " net(x)\n{}\n"
)
NO_PIP = "ERROR: No matching distribution found for {}"
HUB = TRACE.format("OSError: We couldn't connect to 'https://huggingface.co' to load the files")
POINTER = TRACE.format("_pickle.UnpicklingError: invalid load key, 'v'.")
BLOCK = (
    "WARNING (1/1): SANDBOX VIOLATION at turn 2.\nViolation: BLOCKED: forbidden pattern"
    " '.backward('\nYour code was blocked and not executed."
)

GOOD = say("Run all.", BATCH, LOG)
LOOK = say("Check the files.", CHECK, "f (64, 64, 24) ok\n" * 8)
DONE = [GOOD, LOOK, SUBMIT]
COUNT = say("Count.", "find /workspace/agents_outputs -type f | wc -l", "8", language="bash")
IDS = [f"case_{i}" for i in range(1, 9)]


def fail(error="RuntimeError: expected 3 channels, got 160", code=BATCH, **more):
    return say(
        "Again.", code, err=error if "\n" in error else TRACE.format(error), exit_code=1, **more
    )


def pip(name):
    return fail(NO_PIP.format(name) + "\n", f"pip install {name}", language="bash")


def blocked(code):
    return say("Adapt.", code, err=BLOCK, exit_code=-1)


def known(*kinds, fatal=True, **more):
    return {"known": facts(kinds=kinds, fatal=fatal, **more)}


def measured(track, **columns):
    rows = {
        case: {name: float(values[i]) for name, values in columns.items()}
        for i, case in enumerate(IDS)
    }
    return {
        "track": track,
        "task": f"some-{track}-task",
        "cases": IDS,
        "known": facts(measures=rows),
    }


LACKS = ("missing", "lesion.nii.gz is missing", "patient_0004")
MISNAMED = ("misnamed", "mask.nii.gz instead of lesion.nii.gz", "patient_0001")
HEADER = ("header", "predictions.csv has the header a,b, not patient_id,label", None)
FLOAT = ("dtype", "lesion.nii.gz has type float64, not an integer", "p_1")
VOID = ("empty", "organ.nii.gz has no voxel set", "case_3")
NO_LESION = ("empty", "lesion.nii.gz has no voxel set", "case_3")
DEMAND = {
    "extra": (
        "OUTPUT. /workspace/agents_outputs/<patient_id>/lesion.nii.gz, uint8, same affine as"
        " the CT."
    )
}
VQA = {"track": "vqa", "task": "slake-task"}
ANSWER = say("Answer.", "json.dump(a, open('/workspace/agents_outputs/q_1/answer.json','w'))", "ok")
ZOO = {"plan": "# Plan\nUse medsegzoo for inference.\n"}
ODD = [180, 175, 30, 190, 185, 178, 182, 188]
EMPTY = {"track": "segmentation", "cases": IDS} | known(VOID, fatal=False)
SWITCH = say("A threshold.", LOOP.replace("net(x)", "x > 60") + SAVE, LOG)

FIRES = [
    ("repeated_code_failure", [fail(), fail(), fail(), *DONE], "S4 S4 S4 S4 S5 S5", {}),
    (
        "repeated_access_failure",
        [pip("monai"), pip("monai==1.0"), pip("monai"), GOOD],
        "S2 S2 S2 S4",
        {},
    ),
    ("crash_cost_outputs", [fail(), say("All done.")], "S4 S5", known(LACKS, completion=0.25)),
    (
        "access_cost_outputs",
        [fail("OSError: net is not a valid model identifier"), say("I stop.")],
        "S4 S5",
        known(completion=0.0),
    ),
    ("model_out_of_reach", [fail(POINTER, LOAD), fail(POINTER, LOAD), SWITCH], "S2 S2 S4", {}),
    ("missing_files", DONE, "S4 S5 S5", known(LACKS, completion=0.9)),
    ("malformed_files", [GOOD, SUBMIT], "S4 S5", known(HEADER, format_valid=False)),
    ("brief_demand_broken", [GOOD, SUBMIT], "S4 S5", DEMAND | known(FLOAT, fatal=False)),
    (
        "report_says_incomplete",
        [GOOD, submit(complete=False, missing_files=["patient_0006/lesion.nii.gz"])],
        "S4 S5",
        {},
    ),
    (
        "called_invalid",
        [GOOD, SUBMIT],
        "S4 S5",
        known() | {"report": {"format": {"output_format_valid": False, "completion_rate": 1.0}}},
    ),
    ("ended_without_deliverable", [fail(), say("I stop here.")], "S4 S5", {}),
    ("repeated_violation", [blocked("ls /data/private"), blocked("ls /data/private")], "S1 S1", {}),
    ("invented_name", [pip("medsegzoo"), GOOD, SUBMIT], "S2 S4 S5", ZOO),
    ("no_model_behind_answers", [ANSWER], "S4", VQA | known(model_call_found=False)),
    ("wrong_files_unnoticed", DONE, "S4 S5 S5", known(LACKS)),
    ("wrong_files_unnoticed", [GOOD, SUBMIT], "S4 S5", known(MISNAMED, format_valid=False)),
    (
        "rejected_unnoticed",
        [GOOD, LOOK, submit(complete=False, missing_files=["x"])],
        "S4 S5 S5",
        {},
    ),
    ("failed_batch_accepted", [fail(), SUBMIT], "S4 S5", {}),
    ("nothing_checked", [say("Run.", BATCH, "done"), submit("Saved and verified.")], "S4 S5", {}),
    ("bad_output_unseen", [say("Run.", BATCH, "done"), COUNT, SUBMIT], "S4 S5 S5", EMPTY),
    ("bad_content_delivered", [GOOD, SUBMIT], "S4 S5", known(placeholder_rate=0.2)),
    (
        "bad_content_delivered",
        [GOOD, SUBMIT],
        "S4 S5",
        known(("identical", "all outputs are the same", None)),
    ),
    (
        "unlike_files_accepted",
        [GOOD, COUNT, SUBMIT],
        "S4 S5 S5",
        measured("segmentation", organ=ODD),
    ),
    ("empty_files_accepted", [GOOD, COUNT, SUBMIT], "S4 S5 S5", EMPTY),
    ("near_zero_metric", [GOOD, SUBMIT], "S4 S5", known(task_score=0.03)),
]

LOOKED = say(
    "Case 3.",
    "m = nib.load('/workspace/agents_outputs/case_3/organ.nii.gz').get_fdata(); print(m.sum())",
    "90",
)
SILENT = [
    ("repeated_code_failure", [fail(), fail(), *DONE], "S4 S4 S4 S5 S5", {}),
    (
        "repeated_access_failure",
        [fail(HUB, "AutoModel.from_pretrained('t5')"), say("Local.", LOAD, "ok"), GOOD],
        "S2 S2 S4",
        {},
    ),
    ("crash_cost_outputs", [fail(), *DONE], "S4 S4 S5 S5", known()),
    (
        "access_cost_outputs",
        [fail("OSError: x is not a valid model identifier"), GOOD, SUBMIT],
        "S4 S4 S5",
        known(),
    ),
    ("model_out_of_reach", [fail(POINTER, LOAD), fail(POINTER, LOAD), GOOD], "S2 S2 S4", {}),
    ("missing_files", DONE, "S4 S5 S5", known()),
    (
        "malformed_files",
        [GOOD, SUBMIT],
        "S4 S5",
        known(("placeholder", "raw output is a placeholder", "q_0001")),
    ),
    ("brief_demand_broken", [GOOD, SUBMIT], "S4 S5", known(FLOAT, fatal=False)),
    ("report_says_incomplete", [GOOD, submit(complete=False)], "S4 S5", known()),
    (
        "called_invalid",
        [GOOD, SUBMIT],
        "S4 S5",
        known() | {"report": {"format": {"output_format_valid": True, "completion_rate": 1.0}}},
    ),
    ("ended_without_deliverable", [GOOD, say("I could not complete it.")], "S4 S5", {}),
    ("repeated_violation", [blocked("ls /data/private"), GOOD, SUBMIT], "S1 S4 S5", {}),
    (
        "invented_name",
        [pip("monai"), GOOD],
        "S2 S4",
        {"plan": "# Plan\nUse monai for inference.\n"},
    ),
    (
        "no_model_behind_answers",
        [fail(HUB, LOAD), fail(POINTER, LOAD), ANSWER],
        "S2 S2 S4",
        VQA | known(model_call_found=False),
    ),
    (
        "wrong_files_unnoticed",
        [GOOD, LOOK, say("What could be done is stored.")],
        "S4 S5 S5",
        known(LACKS),
    ),
    ("wrong_files_unnoticed", DONE, "S4 S5 S5", known(MISNAMED)),
    ("rejected_unnoticed", [GOOD, LOOK, submit(complete=False)], "S4 S5 S5", known()),
    ("failed_batch_accepted", [fail(), GOOD, say("Done.")], "S4 S4 S5", {}),
    ("nothing_checked", [GOOD, SUBMIT], "S4 S5", {}),
    (
        "bad_output_unseen",
        [say("Pilot.", LOAD + "print(net(x))", "1"), say("Run.", BATCH, "done"), COUNT, SUBMIT],
        "S3 S4 S5 S5",
        EMPTY,
    ),
    (
        "bad_content_delivered",
        [GOOD, say("I stop: the answers are placeholders.")],
        "S4 S5",
        known(placeholder_rate=0.2),
    ),
    (
        "unlike_files_accepted",
        [GOOD, LOOKED, SUBMIT],
        "S4 S5 S5",
        measured("segmentation", organ=ODD),
    ),
    (
        "unlike_files_accepted",
        [GOOD, COUNT, SUBMIT],
        "S4 S5 S5",
        measured("segmentation", lesion=ODD),
    ),
    (
        "empty_files_accepted",
        [GOOD, COUNT, SUBMIT],
        "S4 S5 S5",
        {"track": "segmentation", "cases": IDS} | known(NO_LESION, fatal=False),
    ),
    ("near_zero_metric", [GOOD, SUBMIT], "S4 S5", known(task_score=0.4)),
]


def cases(rows):
    return [pytest.param(*row, id=f"{row[0]}-{i}") for i, row in enumerate(rows)]


@pytest.mark.parametrize(("name", "turns", "stages", "options"), cases(FIRES))
def test_fires(detect, name, turns, stages, options):
    assert len(detect(name, turns, stages, **options)) == 1


@pytest.mark.parametrize(("name", "turns", "stages", "options"), cases(SILENT))
def test_stays_silent(detect, name, turns, stages, options):
    assert detect(name, turns, stages, **options) == []


def test_every_detector_is_shown_firing_and_silent():
    names = {d.name for d in detectors("paper")}
    assert {row[0] for row in FIRES} == names
    assert {row[0] for row in SILENT} == names


QUOTED = {
    "repeated_code_failure",
    "repeated_access_failure",
    "crash_cost_outputs",
    "access_cost_outputs",
    "model_out_of_reach",
}
"""Detectors that quote in brackets what failed."""


@pytest.mark.parametrize("name", GALLERY)
def test_on_real_runs_every_finding_names_turns_says_one_sentence_and_quotes_the_run(name):
    folder = (
        DATA
        / json.loads((DATA / "golden" / "scores" / f"{name}.json").read_text("utf-8"))["folder"]
    )
    run = load_run(folder)
    check_detector(
        *detectors("paper"), *detectors("harness"), run=run, public=DATA / "recorded" / "public"
    )
    ctx = code_context(
        run, segment(run), check_outputs(run, public=DATA / "recorded" / "public").s4_checks
    )
    said = "".join(turn.output for turn in run.turns).translate(FLAT)
    for d in (d for d in detectors("paper") if d.name in QUOTED):
        for finding in d.function(ctx):
            quote = (
                " ".join(finding.why.split())
                .partition("(")[2]
                .rpartition(")")[0]
                .rpartition("e.g. ")[2]
            )
            assert (
                quote.strip('"').partition(": ")[2].removesuffix("...").translate(FLAT) in said
            ), finding.why


def test_the_docs_list_every_detector_as_it_describes_itself():
    page = (DATA.parents[1] / "docs" / "error-codes.md").read_text("utf-8")
    assert [
        d.name for d in detectors("paper") if f"| {d.code} | `{d.name}` | {d.doc} |" not in page
    ] == []


def test_detectors_say_what_they_are():
    for taxonomy in ("paper", "harness"):
        found = detectors(taxonomy)
        assert len({d.name for d in found}) == len(found)
        for d in found:
            assert (
                d.function.__module__.removeprefix("ambjudge.error_codes.detectors.")
                in DETECTORS.names
            )
    assert {d.independence for d in detectors("paper")} == {
        "from_trace",
        "from_files",
        "from_score",
    }


def test_a_name_stands_once():
    with pytest.raises(ValueError, match="already a detector"):
        detector("missing_files", code="E5", stage="S5", independence="from_files")(lambda ctx: ())
