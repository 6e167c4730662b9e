"""What a judge is told as known: flags with reasons, files, measures, failed steps, findings; of
broken runs too."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest
from ambjudge.error_codes.context import code_context
from ambjudge.error_codes.fired_codes import fired_codes
from ambjudge.error_codes.registry import detectors, rests_on_fact
from ambjudge.judge.checks.check_outputs import check_outputs
from ambjudge.judge.facts.run_facts import MAX_CHARS, MAX_FACTS, run_facts
from ambjudge.trajectories.models import OutputFile, Outputs, Violation
from ambjudge.trajectories.reading.load import load_run
from ambjudge.trajectories.turns.segment import segment
from conversations import converse, python

RECORDED = Path(__file__).parents[1] / "data" / "recorded"
CASES = ("c1", "c2", "c3")


def facts_of(run, public=None):
    segmentation, check = segment(run), check_outputs(run, public=public)
    ctx = code_context(run, segmentation, check.s4_checks)
    found = fired_codes(ctx)
    facts = run_facts(run, segmentation, check, found)
    assert facts == run_facts(run, segmentation, check, found, ctx)
    assert [fact.id for fact in facts] == [f"F{n}" for n in range(1, len(facts) + 1)]
    assert len(facts) <= MAX_FACTS
    assert sum(len(fact.text) for fact in facts) <= MAX_CHARS
    for fact in facts:
        assert fact.text.isprintable(), fact
        assert all(1 <= turn <= len(run.turns) for turn in fact.turns), fact
    return facts


def write_run(
    folder: Path, calls=(("print(1)", 0, "1"),), track="enhancement", report=None, last="Done."
) -> Path:
    """A run folder with these (code, exit code, output) calls; its outputs are written by the
    caller."""
    turns = [python(code, out, exit_code) for code, exit_code, out in calls] + (
        [last] if last else []
    )
    summary = {"patient_ids": CASES}
    converse(
        folder,
        *turns,
        task=f"{track}-task",
        track=track,
        tier="lite",
        report=report,
        summary=summary,
    )
    outputs = folder / "outputs" / "agents_outputs"
    outputs.mkdir(parents=True)
    return outputs


def put(outputs: Path, name: str, data: bytes) -> None:
    (outputs / name).parent.mkdir(parents=True, exist_ok=True)
    (outputs / name).write_bytes(data)


def array(outputs: Path, name: str, shape=(4, 4), dtype="float32") -> None:
    (outputs / name).parent.mkdir(parents=True, exist_ok=True)
    np.save(outputs / name, np.arange(np.prod(shape)).reshape(shape).astype(dtype))


def test_violations_stand_with_their_turns():
    run = next(
        r
        for r in map(load_run, sorted((RECORDED / "runs").iterdir()))
        if r.status.violation_records
    )
    told = [fact for fact in facts_of(run, RECORDED / "public") if fact.kind == "violation"]
    assert [fact.turns[0] for fact in told] == [
        violation.turn for violation in run.status.violation_records
    ]
    assert all(fact.source == "harness" for fact in told)


def test_findings_are_those_of_marked_detectors_and_name_no_code():
    marked = {d.name for d in detectors() if d.fact is not None}
    assert {"missing_files", "repeated_code_failure", "repeated_violation"} <= marked
    assert not {"wrong_files_unnoticed", "model_out_of_reach"} & marked
    run = load_run(RECORDED / "runs" / "kidney-lite-02")
    check = check_outputs(run, public=RECORDED / "public")
    found = fired_codes(code_context(run, segment(run), check.s4_checks))
    proven = {code.by.partition(":")[2] for code in found if rests_on_fact(code)}
    assert proven
    assert proven == marked & {code.by.partition(":")[2] for code in found}
    told = {fact.kind for fact in run_facts(run, segment(run), check, found)} & {
        d.name for d in detectors()
    }
    assert told == proven


def test_a_flag_that_only_the_report_explains_says_so(tmp_path):
    flags = {"output_format_valid": False, "completion_rate": 1.0, "submission_format_valid": False}
    outputs = write_run(tmp_path / "r", report={"aggregate": flags} | flags)
    outputs.rmdir()
    run = load_run(tmp_path / "r")
    assert run.report is not None
    text = {fact.kind: fact.text for fact in facts_of(run)}
    assert "no, as the harness report says, and gives no reason" in text["format_valid"]
    assert text["files"] == "No folder of delivered files came with the run."


def test_files_of_one_kind_that_differ_are_named_once(tmp_path):
    outputs = write_run(tmp_path / "r")
    array(outputs, "c1/enhanced.npy")
    array(outputs, "c2/enhanced.npy", (5, 4), "int16")
    array(outputs, "c3/enhanced.npy")
    put(outputs, "c1/notes.json", b'{"a": 1}')
    put(outputs, "c2/notes.json", b'{"a": 1, "b": 2}')
    differ = [
        fact.text for fact in facts_of(load_run(tmp_path / "r")) if fact.kind == "files_differ"
    ]
    assert len(differ) == 2
    assert "1 of 2 other files enhanced.npy" in differ[0]
    assert "c2/enhanced.npy holds an array of shape (5, 4) and type int16" in differ[0]
    assert "c2/notes.json the keys a, b" in differ[1]


class Bomb:
    """Unpickling it would write a file beside the run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


def nifti(shape=(4, 4, 4), affine=1.0, data=b"") -> bytes:
    """A header whose shape and affine say what they like."""
    head = bytearray(352)
    struct.pack_into("<i", head, 0, 348)
    struct.pack_into("<8h", head, 40, 3, *shape, 1, 1, 1, 1)
    struct.pack_into("<hh", head, 70, 2, 8)
    struct.pack_into("<8f", head, 76, *([1.0] * 8))
    struct.pack_into("<f", head, 108, 352.0)
    struct.pack_into("<h", head, 254, 1)
    for row in range(3):
        struct.pack_into("<4f", head, 280 + 16 * row, *([affine] * 4))
    head[344:348] = b"n+1\0"
    return gzip.compress(bytes(head) + data, mtime=0)


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("enhanced.npy", b"\x93NUMPY\x01\x00", "is broken: it is not an .npy file"),
        ("enhanced.npy", b"", "is broken: it is not an .npy file"),
        ("mask.nii.gz", b"\x1f\x8b\x08\x00broken", "is broken: it is not a whole gzip file"),
        ("mask.nii.gz", nifti((32000, 32000, 32000)), "declares 32,768,000,000,000 bytes"),
        ("mask.nii.gz", nifti(affine=3e38, data=bytes(64)), "holds a volume of shape (4, 4, 4)"),
        ("mask.nii.gz", nifti(affine=float("nan"), data=bytes(64)), "spacing nan x nan x nan mm"),
        ("notes.json", b"[" * 60_000, "is broken"),
        ("notes.json", b"\xff\xfe\x00{", "is binary; its first bytes are ff fe 00 7b"),
        ("notes.json", b'{"k\\u202e": "\xe2\x80\xae"}', 'begins: "{'),
        ("notes.json", b'{"a": "' + b"x" * 3_000_000 + b'"}', 'xxx" ...'),
        ("notes.txt", b"  \n ", "is empty"),
        ("notes.txt", b"one\r\ntwo\x1b[31m\x00"[:-1], 'begins: "one␤two␛[31m"'),
        ("notes.txt", "caf\xe9".encode("latin-1"), 'begins: "caf\ufffd"'),
        ("table.csv", b"a" * 100_000, 'begins: "aaa'),
        ("shot.png", b"\x89PNG\r\n", "is broken: it is no image"),
    ],
)
def test_a_hostile_file_is_a_fact(tmp_path, name, data, words):
    outputs = write_run(tmp_path / "r")
    put(outputs, f"c1/{name}", data)
    heads = [fact.text for fact in facts_of(load_run(tmp_path / "r")) if fact.kind == "file_head"]
    assert len(heads) == 1
    assert words in heads[0], heads


def test_nothing_is_unpickled(tmp_path):
    outputs = write_run(tmp_path / "r")
    (outputs / "c1").mkdir()
    np.save(
        outputs / "c1" / "enhanced.npy",
        np.array([Bomb(tmp_path / "bomb")], dtype=object),
        allow_pickle=True,
    )
    put(outputs, "c2/model.pkl", pickle.dumps(Bomb(tmp_path / "bomb")))
    text = " ".join(fact.text for fact in facts_of(load_run(tmp_path / "r")))
    assert "holds pickled objects, which are never loaded" in text
    assert "model.pkl 1 times" in text
    assert not (tmp_path / "bomb").exists()


def test_links_and_pipes_are_not_followed(tmp_path):
    """The loader leaves them out; a file that became one since is refused when it is opened."""
    outputs = write_run(tmp_path / "r")
    (tmp_path / "secret.json").write_text('{"password": 1}')
    put(outputs, "c1/notes.json", b"{}")
    put(outputs, "c2/pipe.txt", b"x")
    run = load_run(tmp_path / "r")
    for path, make in (
        (outputs / "c1" / "notes.json", None),
        (outputs / "c2" / "pipe.txt", os.mkfifo),
    ):
        path.unlink()
        make(path) if make else path.symlink_to(tmp_path / "secret.json")
    text = " ".join(fact.text for fact in facts_of(run))
    assert "password" not in text
    assert "is a link that leaves the run; not followed" in text
    assert "is not a regular file" in text


def test_a_file_that_went_away_is_a_fact(tmp_path):
    outputs = write_run(tmp_path / "r")
    gone = OutputFile(case="c1", name="enhanced.npy", path=outputs / "c1" / "enhanced.npy", size=9)
    run = load_run(tmp_path / "r").model_copy(
        update={"outputs": Outputs(root=outputs, files=(gone,))}
    )
    assert "cannot be opened" in next(
        fact.text for fact in facts_of(run) if fact.kind == "file_head"
    )


@pytest.mark.parametrize(
    ("calls", "kind", "words"),
    [
        ((), "nothing_executed", "No call of the run executed any code"),
        ((("x", 0, "1"), ("y", 0, None)), "unanswered", "turn 2"),
        (
            (("x", -1, "Execution timed out after 600 seconds"),),
            "timeout",
            "Calls stopped by a time limit: 1 (turn 1)",
        ),
    ],
)
def test_what_executions_came_to(tmp_path, calls, kind, words):
    write_run(tmp_path / "r", calls, last="" if kind == "unanswered" else "Done.")
    told = {fact.kind: fact.text for fact in facts_of(load_run(tmp_path / "r"))}
    assert words in told[kind], told


def test_a_run_without_end_stays_within_the_bounds(tmp_path):
    """A hundred failing steps, files with long and odd names, violations without number: what is
    beyond is counted."""
    calls = [
        (
            f"import m{n}\nstep_{n}()",
            1,
            f"Traceback (most recent call last):\nError{n}x: {'y' * 900}",
        )
        for n in range(100)
    ]
    outputs = write_run(tmp_path / "r", calls, "detection")
    ids = [f"c{n}_\u202e{'z' * 180}" for n in range(100)]
    (tmp_path / "r" / "process" / "agent_summary.json").write_text(
        json.dumps({"patient_ids": [*ids, "absent"] * 3})
    )
    for n, case in enumerate(ids):
        box = {"class": f"k{n}", "x1": n, "y1": 0, "x2": -n, "y2": 5 + n}
        put(outputs, f"{case}/prediction.json", json.dumps({"boxes": [box]}).encode())
        put(outputs, f"{case}/{n}{'w' * 200}.txt", b"t" * 5_000)
    run = load_run(tmp_path / "r")
    said = tuple(Violation(turn=1 + n % 9, text=f"BLOCKED: {n} {'v' * 900}") for n in range(200))
    run = run.model_copy(
        update={"status": run.status.model_copy(update={"violation_records": said})}
    )
    told = {fact.kind: fact for fact in facts_of(run)}
    assert {
        "completion",
        "format_valid",
        "files",
        "measure",
        "executions",
        "missing_files",
    } <= told.keys()
    assert "92 more steps failed" in told["failed_steps"].text
    assert told["failed_step"].turns == (100,)
    assert "194 more violations" in told["violations"].text

    found = fired_codes(code_context(run, segment(run), check_outputs(run).s4_checks))
    many = [
        code.model_copy(update={"why": f"{n} {code.why}"}) for n in range(300) for code in found
    ]
    facts = run_facts(run, segment(run), check_outputs(run), many)
    assert len(facts) <= MAX_FACTS
    assert sum(len(fact.text) for fact in facts) <= MAX_CHARS
    assert facts[-1].kind == "left_out"
    assert "missing_files" in facts[-1].text
