"""Delivered files of every track: right, wrong in each way that we know of, and hostile."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from ambjudge.errors import InputError
from ambjudge.judge.card.fields import Policy
from ambjudge.judge.checks.check_outputs import check_outputs
from ambjudge.judge.checks.nifti import _cached_stats
from ambjudge.judge.checks.public_inputs import find_public
from ambjudge.tasks.output_format import OutputFormat
from ambjudge.trajectories.reading.load import load_run
from PIL import Image

nib = pytest.importorskip("nibabel")
SHAPE = (8, 9, 5)
AFFINE = np.diag([1.5, 1.5, 3.0, 1.0])


class Case:
    """A run of two cases under construction: its folder, its public inputs, and what to say about
    it."""

    ids = ("patient_01", "patient_02")

    def __init__(self, folder: Path, track: str, task: str) -> None:
        self.track, self.task, self.brief = track, task, ""
        self.output_format: OutputFormat | None = None
        """Set in place of what is known of the task."""
        self.run, self.public = folder / "run", folder / "public"
        self.outputs = self.run / "outputs" / "agents_outputs"
        self.outputs.mkdir(parents=True)
        for case in self.ids:
            (self.public / task / case).mkdir(parents=True)
        (self.public / task / "models").mkdir()
        (self.public / task / "models" / "weights.pt").write_bytes(b"x")

    def out(self, case: str, name: str) -> Path:
        path = self.outputs / case / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def check(self, report: dict | None = None, public: bool = True, policy: Policy | None = None):
        (self.run / "process").mkdir(exist_ok=True)
        conversation = {
            "agent": "a",
            "model": "m",
            "task": self.task,
            "tier": "lite",
            "track": self.track,
            "system_prompt": f"Track: {self.track}. {self.brief}",
            "messages": [
                {"role": "user", "content": "Begin."},
                {"role": "assistant", "content": "Done."},
            ],
        }
        (self.run / "process" / "conversation.json").write_text(json.dumps(conversation))
        if report is not None:
            (self.run / "detail_report.json").write_text(json.dumps(report))
        run = load_run(self.run)
        if self.output_format is not None:
            run = run.model_copy(update={"output_format": self.output_format})
        return check_outputs(run, public=self.public if public else None, policy=policy)


def kinds(check) -> set[str]:
    return {fact.kind for fact in check.issues}


def fatal(check) -> set[str]:
    return {fact.kind for fact in check.issues if fact.fatal}


def nifti(path: Path, data: np.ndarray, affine: np.ndarray = AFFINE) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    nib.save(nib.Nifti1Image(data, affine), path)


def mask(dtype=np.uint8) -> np.ndarray:
    data = np.zeros(SHAPE, dtype)
    data[2:5, 3:6, 1:4] = 1
    return data


def with_header(path: Path, **fields) -> None:
    """A valid gzip around a header that claims whatever the fields say, and 4 kB of data."""
    header = nib.Nifti1Header()
    header.set_data_dtype(np.uint8)
    header.set_data_shape(SHAPE)
    header["vox_offset"], header["magic"] = 352, b"n+1"
    for name, value in fields.items():
        header[name] = value
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(header.binaryblock + bytes(4 + 4096)))


# Segmentation


@pytest.fixture
def kidney(tmp_path):
    case_files = Case(tmp_path, "segmentation", "kidney-seg-task")
    case_files.brief = "Write lesion.nii.gz for every patient."
    for case in case_files.ids:
        nifti(case_files.public / case_files.task / case / "ct.nii.gz", np.zeros(SHAPE, np.int16))
        nifti(case_files.out(case, "lesion.nii.gz"), mask())
    return case_files


DICE = {"diagnostic_metrics": {"lesion_dice": 0.5}, "clinical_score": {"score": 0.5}}


def test_segmentation_right(kidney):
    nifti(kidney.out("patient_01", "organ.nii.gz"), mask())
    check = kidney.check(DICE)
    assert (check.s4, check.s5, check.task, kinds(check)) == (1.0, 1.0, 0.5, set())
    assert check.s4_checks.cases_from == "public"
    assert check.s4_checks.expected_cases == 2


def test_without_the_inputs_an_axis_of_1_is_no_fault(kidney):
    nifti(kidney.outputs / "patient_02" / "lesion.nii.gz", mask()[..., None])
    assert kinds(kidney.check({**DICE, "n_patients": 2}, public=False)) == set()


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def corrupt(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-6] ^= 0xFF
    path.write_bytes(bytes(data))


@pytest.mark.parametrize(
    ("spoil", "kind", "valid"),
    [
        (lambda p: nifti(p, np.zeros((9, 8, 5), np.uint8)), "shape", False),
        (lambda p: nifti(p, mask() * 2), "values", False),
        (lambda p: nifti(p, mask(np.float32) * 0.5), "values", False),
        (
            lambda p: nifti(p, np.linspace(0, 1, mask().size, dtype=np.float32).reshape(SHAPE)),
            "values",
            False,
        ),
        (lambda p: nifti(p, np.full(SHAPE, np.nan, np.float32)), "not_finite", False),
        (lambda p: nifti(p, mask(), np.eye(4)), "affine", True),
        (lambda p: nifti(p, mask(np.float64)), "dtype", True),
        (lambda p: nifti(p, np.zeros(SHAPE, np.uint8)), "empty", True),
        (lambda p: nifti(p, mask()[..., None]), "shape", False),
        (truncate, "unreadable", False),
        (corrupt, "unreadable", False),
        (lambda p: p.write_bytes(b""), "unreadable", False),
        (lambda p: p.write_bytes(b"\x1f\x8b" + b"x" * 50), "unreadable", False),
        (lambda p: p.write_bytes(gzip.compress(b"x" * 1000)), "unreadable", False),
        (lambda p: p.write_bytes(gzip.decompress(p.read_bytes())), "unreadable", False),
        (lambda p: with_header(p, dim=[3, 30000, 30000, 30000, 1, 1, 1, 1]), "unreadable", False),
        (lambda p: with_header(p, dim=[3, 1000, 1000, 500, 1, 1, 1, 1]), "unreadable", False),
        (lambda p: with_header(p, dim=[3, 8, 9, 500, 1, 1, 1, 1]), "unreadable", False),
        (lambda p: with_header(p, dim=[3, -8, 9, 5, 1, 1, 1, 1]), "unreadable", False),
        (lambda p: with_header(p, datatype=9999), "unreadable", False),
        (lambda p: with_header(p, vox_offset=3e9), "unreadable", False),
        (lambda p: with_header(p, vox_offset=float("nan")), "unreadable", False),
        (lambda p: with_header(p, datatype=128, bitpix=24), "dtype", False),
    ],
    ids=[
        "axes swapped",
        "label 2",
        "half",
        "probabilities",
        "nan",
        "affine",
        "float mask",
        "empty",
        "fourth axis of 1",
        "truncated",
        "checksum",
        "no bytes",
        "no gzip",
        "gzip of something else",
        "not compressed",
        "declares terabytes",
        "declares more than deflate can hold",
        "ends early",
        "negative extent",
        "unknown type",
        "offset",
        "offset nan",
        "rgb",
    ],
)
def test_segmentation_wrong(kidney, spoil, kind, valid):
    spoil(kidney.outputs / "patient_02" / "lesion.nii.gz")
    check = kidney.check(DICE)
    assert fatal(check) == (set() if valid else {kind})
    assert kind is None or kind in kinds(check)
    assert (check.s4, check.s5) == ((1.0, 1.0) if valid else (0.5, 0.5))
    assert check.s4_checks.completion == 1.0
    assert check.task == 0.5


@pytest.mark.parametrize(
    ("move", "kind"),
    [
        (None, "missing"),
        ("patient_02/tumor.nii.gz", "misnamed"),
        ("patient_02/lesion.nii", "misnamed"),
        ("patient_02_lesion.nii.gz", "misplaced"),
        ("submission/patient_02/lesion.nii.gz", "misplaced"),
        ("patient_02/masks/lesion.nii.gz", "misplaced"),
    ],
)
def test_one_missing_case_closes_the_gate(kidney, move, kind):
    path = kidney.outputs / "patient_02" / "lesion.nii.gz"
    if move is None:
        path.unlink()
    else:
        (kidney.outputs / move).parent.mkdir(parents=True, exist_ok=True)
        path.rename(kidney.outputs / move)
    check = kidney.check()
    assert kind in kinds(check)
    assert (check.s4, check.s5, check.task, check.task_from) == (0.25, 0.0, 0.0, "gate")
    assert check.s4_checks.format_valid is False
    open_gate = kidney.check(DICE, policy=Policy(completeness_gate=False))
    assert (open_gate.s4, open_gate.s5, open_gate.task, open_gate.task_from) == (
        0.25,
        0.5,
        0.5,
        "report",
    )


def test_malformed_policy(kidney):
    nifti(kidney.out("patient_02", "lesion.nii.gz"), mask() * 3)
    assert kidney.check(DICE, policy=Policy(malformed="zero")).s5 == 0.0


@pytest.mark.parametrize(
    ("organ", "kind"),
    [
        (None, None),
        (lambda p: nifti(p, mask()), None),
        (lambda p: nifti(p, np.zeros((9, 8, 5), np.uint8)), "shape"),
        (lambda p: nifti(p, mask() * 2), "values"),
        (lambda p: nifti(p, np.full(SHAPE, np.nan, np.float32)), "not_finite"),
        (lambda p: p.write_bytes(b"\x1f\x8b" + b"x" * 50), "unreadable"),
    ],
    ids=["none", "right", "shape", "values", "nan", "unreadable"],
)
def test_an_organ_mask_is_optional_whatever_the_brief_says(kidney, organ, kind):
    kidney.brief = "Required Outputs: agents_outputs/<patient_id>/organ.nii.gz and lesion.nii.gz."
    if organ is not None:
        organ(kidney.out("patient_01", "organ.nii.gz"))
    check = kidney.check(DICE)
    assert fatal(check) == set()
    assert kind is None or kind in kinds(check)
    assert (check.s4, check.s5, check.task) == (1.0, 1.0, 0.5)


def test_masks_of_one_case_must_agree_without_public_inputs(kidney):
    (kidney.run / "process").mkdir()
    (kidney.run / "process" / "agent_summary.json").write_text(
        json.dumps({"patient_ids": list(kidney.ids)})
    )
    nifti(kidney.out("patient_01", "organ.nii.gz"), np.zeros((3, 3, 3), np.uint8))
    check = kidney.check(DICE, public=False)
    assert check.s4_checks.cases_from == "agent_summary"
    assert kinds(check) == {"shape", "empty"}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("patient_id,organ,lesion_present\npatient_01,kidney,1\n", None),
        ("patient_id,lesion_present\npatient_01,yes\n", "values"),
        ("id,lesion\npatient_01,1\n", "header"),
        ("", "empty"),
    ],
)
def test_the_optional_decision_table_changes_no_score(kidney, text, kind):
    (kidney.outputs / "agents_decision.csv").write_text(text)
    check = kidney.check(DICE)
    assert kinds(check) == ({kind} if kind else set())
    assert (check.s4, check.s5) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("column", "kind"),
    [("uterus", None), ("Uterus", None), ("1", "demand"), ("", "demand")],
    ids=["as the brief says", "capital", "a number", "empty"],
)
def test_a_column_that_the_brief_fills(kidney, column, kind):
    kidney.brief = (
        "agents_decision.csv with patient_id,organ,lesion_present (organ = uterus, lesion_present"
        " in {0,1})"
    )
    rows = "".join(f"{case},{column},1\n" for case in kidney.ids)
    (kidney.outputs / "agents_decision.csv").write_text(f"patient_id,organ,lesion_present\n{rows}")
    check = kidney.check(DICE)
    assert kinds(check) == ({kind} if kind else set())
    assert (check.s4, check.s5) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("axes", "public", "kind"),
    [(2, False, None), (3, True, None), (None, False, None), (3, False, "demand")],
    ids=["two demanded", "the inputs have two axes", "nobody says how many", "three demanded"],
)
def test_masks_with_two_axes(tmp_path, axes, public, kind):
    case_files = Case(tmp_path, "segmentation", "layers-seg-task")
    case_files.brief = "Write dseg.nii.gz."
    case_files.output_format = OutputFormat(axes=axes)
    for case in case_files.ids:
        nifti(
            case_files.public / case_files.task / case / "bscan.nii.gz",
            np.zeros(SHAPE[:2], np.int16),
        )
        nifti(case_files.out(case, "dseg.nii.gz"), mask()[..., 2])
    assert kinds(case_files.check(DICE, public=public)) == ({kind} if kind else set())


@pytest.mark.parametrize(
    ("labels", "top", "valid"),
    [
        (range(8), 7, True),
        (range(8), 8, False),
        ((0, 1, 2, 4), 4, True),
        ((0, 1, 2, 4), 3, False),
        ((), 40, True),
    ],
)
def test_multi_class_labels(tmp_path, labels, top, valid):
    case_files = Case(tmp_path, "segmentation", "feta-seg-task")
    case_files.brief = "Write dseg.nii.gz."
    case_files.output_format = OutputFormat(labels=tuple(labels))
    for case in case_files.ids:
        nifti(case_files.public / case_files.task / case / "t2w.nii.gz", np.zeros(SHAPE, np.int16))
        nifti(case_files.out(case, "dseg.nii.gz"), mask() * top)
    check = case_files.check(DICE)
    assert check.s4 == (1.0 if valid else 0.5)


def test_large_volumes_are_read_in_slabs(tmp_path):
    case_files = Case(tmp_path, "segmentation", "kidney-seg-task")
    for case in case_files.ids:
        with_header(
            case_files.public / case_files.task / case / "ct.nii.gz",
            dim=[3, 512, 512, 100, 1, 1, 1, 1],
            vox_offset=352,
        )
        header = nib.Nifti1Header()
        header.set_data_dtype(np.uint8)
        header.set_data_shape((512, 512, 100))
        header["vox_offset"], header["magic"] = 352, b"n+1"
        path = case_files.out(case, "lesion.nii.gz")
        with gzip.open(path, "wb", 1) as file:
            file.write(header.binaryblock + bytes(4))
            file.write(bytes(512 * 512 * 100 - 5) + bytes([1] * 5))
    tracemalloc.start()
    check = case_files.check(DICE)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert check.s4_checks.completion == 1.0
    assert "empty" not in kinds(check)
    assert peak < 100 * 2**20


@pytest.mark.parametrize("inside", [False, True])
def test_links_are_followed_only_inside_the_run(kidney, tmp_path, inside):
    path = kidney.outputs / "patient_02" / "lesion.nii.gz"
    target = kidney.outputs / "patient_01" / "lesion.nii.gz"
    if not inside:
        target = tmp_path / "elsewhere.nii.gz"
        nifti(target, mask())
    path.unlink()
    os.symlink(target, path)
    check = kidney.check(DICE)
    assert bool(kinds(check) & {"link", "missing"}) is not inside
    assert check.s4_checks.completion == (1.0 if inside else 0.5)


# Detection


def test_links_to_one_mask_cost_it_once(kidney):
    first, second = (kidney.out(case, "lesion.nii.gz") for case in kidney.ids)
    second.unlink()
    second.symlink_to(first)
    before = _cached_stats.cache_info()
    assert kidney.check(DICE).s4 == 1.0
    after = _cached_stats.cache_info()
    assert (after.misses - before.misses, after.hits - before.hits) == (1, 1)


@pytest.fixture
def cells(tmp_path):
    case_files = Case(tmp_path, "detection", "bccd-det-task")
    case_files.brief = "Detect rbc and wbc."
    for case in case_files.ids:
        Image.new("L", (100, 60)).save(case_files.public / case_files.task / case / "image.png")
        case_files.out(case, "prediction.json").write_text(json.dumps({"boxes": [box()]}))
    return case_files


def box(**changes) -> dict:
    return {"class": "rbc", "x1": 0, "y1": 0, "x2": 100, "y2": 60, "score": 1.0, **changes}


@pytest.mark.parametrize(
    ("content", "kind", "valid"),
    [
        ({"boxes": [box()]}, None, True),
        ({"boxes": []}, "empty", True),
        ({"boxes": [{k: v for k, v in box().items() if k != "score"}]}, None, True),
        ({"boxes": [box(score=0.0)]}, None, True),
        ({"boxes": [box(x1=50, x2=40)]}, "box_reversed", False),
        ({"boxes": [box(y1=10, y2=10)]}, "box_reversed", False),
        ({"boxes": [box(x2=101)]}, "box_outside", False),
        ({"boxes": [box(y1=-1)]}, "box_outside", False),
        ({"boxes": [box(score=1.01)]}, "values", False),
        ({"boxes": [box(score="0.9")]}, "values", False),
        ({"boxes": [box(score=None)]}, "values", False),
        (
            '{"boxes": [{"class": "rbc", "x1": 0, "y1": 0, "x2": 1, "y2": 1, "score": NaN}]}',
            "values",
            False,
        ),
        ({"boxes": [box(**{"class": 1})]}, "schema", False),
        ({"boxes": [box(x1=None)]}, "schema", False),
        ({"boxes": [box(x1="1")]}, "schema", False),
        ({"boxes": [box(x1=True)]}, "schema", False),
        ({"boxes": [box(**{"class": ""})]}, "schema", False),
        ({"boxes": [box(**{"class": "platypus"})]}, "unknown_class", True),
        ({"boxes": ["rbc"]}, "schema", False),
        ({"boxes": {"rbc": []}}, "schema", False),
        ([box()], "schema", False),
        ({"predictions": []}, "schema", False),
        ("[" * 100_000, "unreadable", False),
        ('{"boxes": [', "unreadable", False),
        ('{"boxes": [{"class": "rbc", "x1": NaN, "y1": 0, "x2": 1, "y2": 1}]}', "schema", False),
        (b"\xff\xfe\x00", "encoding", False),
        (b'\xef\xbb\xbf{"boxes": []}', "empty", True),
    ],
    ids=[
        "right",
        "no boxes",
        "no score",
        "score 0",
        "reversed",
        "flat",
        "beyond the border",
        "negative",
        "score above 1",
        "score as text",
        "score null",
        "score nan",
        "class a number",
        "no number",
        "number as text",
        "boolean",
        "no class",
        "unknown class",
        "no object",
        "boxes no list",
        "bare list",
        "other key",
        "too deep",
        "cut",
        "nan",
        "utf-16",
        "byte-order mark",
    ],
)
def test_detection(cells, content, kind, valid):
    path = cells.outputs / "patient_02" / "prediction.json"
    path.write_bytes(
        content
        if isinstance(content, bytes)
        else (content if isinstance(content, str) else json.dumps(content)).encode()
    )
    check = cells.check({"diagnostic_metrics": {"mAP": 0.4}, "task_score": {"score": 0.4}})
    assert kinds(check) == ({kind} if kind else set())
    assert (check.s4, check.s5) == ((1.0, 1.0) if valid else (0.5, 0.5))


def test_detection_gate_and_zero_map(cells):
    (cells.outputs / "patient_02" / "prediction.json").rename(
        cells.outputs / "patient_02" / "predictions.json"
    )
    check = cells.check({"diagnostic_metrics": {"mAP": 0.4}, "task_score": {"score": 0.4}})
    assert (check.s4, check.s5, check.task) == (0.25, 0.5, 0.0)
    assert "misnamed" in kinds(check)


def test_a_report_that_denies_the_format_is_believed_where_files_cannot_tell(cells):
    (cells.outputs / "patient_02" / "prediction.json").write_text(
        json.dumps({"boxes": [box(x2=500)]})
    )
    report = {
        "diagnostic_metrics": {"mAP": 0.4},
        "format": {
            "output_format_valid": False,
            "submission_format_valid": False,
            "completion_rate": 1.0,
        },
    }
    assert cells.check(report, public=False).s4 == 0.5
    # the names of the branch that writes detection reports
    old = {"metrics": {"mAP": 0.4}, "format": {"predictions_valid": False, "completion_rate": 1.0}}
    assert (cells.check(old, public=False).s4, cells.check(old, public=False).s5) == (0.5, 0.5)
    (cells.outputs / "patient_02" / "prediction.json").write_text(json.dumps({"boxes": [box()]}))
    check = cells.check(report)
    assert check.s4 == 1.0
    assert any("the report says output format valid: False" in line for line in check.warnings)


# Enhancement


@pytest.fixture
def ldct(tmp_path):
    case_files = Case(tmp_path, "enhancement", "ldct-denoising-task")
    for case in case_files.ids:
        np.save(
            case_files.public / case_files.task / case / "ldct.npy",
            np.arange(30, dtype=np.float32).reshape(5, 6),
        )
        np.save(
            case_files.out(case, "enhanced.npy"), np.arange(30, dtype=np.float32).reshape(5, 6) / 2
        )
    return case_files


def claim(path: Path, shape: tuple[int, ...]) -> None:
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": "<f4", "fortran_order": False, "shape": shape}
        )
        file.write(bytes(120))


class Bomb:
    def __reduce__(self):
        return (os.mkdir, ("/tmp/ambjudge-must-not-exist",))


@pytest.mark.parametrize(
    ("spoil", "kind", "valid"),
    [
        (lambda p: np.save(p, np.ones((5, 6)).cumsum(0)), None, True),
        (lambda p: np.save(p, np.ones((5, 6), np.float16).cumsum(0, dtype=np.float16)), None, True),
        (lambda p: np.save(p, np.linspace(-1, 1, 30).reshape(5, 6) * 1e308), None, True),
        (lambda p: np.save(p, np.arange(30).reshape(5, 6)), "dtype", False),
        (lambda p: np.save(p, np.array([["x" * 9] * 6] * 5)), "dtype", False),
        (lambda p: claim(p, (2**62, 8)), "unreadable", False),
        (lambda p: np.save(p, np.arange(30.0).reshape(6, 5)), "shape", False),
        (lambda p: np.save(p, np.arange(30.0).reshape(1, 5, 6)), "shape", False),
        (lambda p: np.save(p, np.float32(1)), "shape", False),
        (lambda p: np.save(p, np.full((5, 6), np.nan)), "not_finite", False),
        (lambda p: np.save(p, np.array([[1.0, np.inf] * 3] * 5)), "not_finite", False),
        (lambda p: np.save(p, np.zeros((5, 6))), "constant", True),
        (lambda p: np.save(p, np.arange(30, dtype=np.float32).reshape(5, 6)), "unchanged", True),
        (
            lambda p: np.save(p, np.array([[Bomb()]], dtype=object), allow_pickle=True),
            "unreadable",
            False,
        ),
        (lambda p: p.write_bytes(pickle.dumps(Bomb())), "unreadable", False),
        (lambda p: p.write_bytes(p.read_bytes()[:-7]), "unreadable", False),
        (lambda p: p.write_bytes(b""), "unreadable", False),
        (lambda p: claim(p, (100_000, 100_000)), "unreadable", False),
        (lambda p: claim(p, (10**30, 10)), "unreadable", False),
        (lambda p: claim(p, (-5, -6)), "unreadable", False),
    ],
    ids=[
        "float64",
        "float16",
        "huge",
        "integers",
        "texts",
        "impossible",
        "axes swapped",
        "three axes",
        "scalar",
        "nan",
        "inf",
        "constant",
        "unchanged",
        "pickled objects",
        "pickle",
        "cut",
        "no bytes",
        "declares 40 GB",
        "declares more than all",
        "negative extent",
    ],
)
@pytest.mark.filterwarnings("error")
def test_enhancement(ldct, spoil, kind, valid):
    spoil(ldct.outputs / "patient_02" / "enhanced.npy")
    check = ldct.check({"diagnostic_metrics": {"mean_ssim": 0.5}, "clinical_score": {"score": 0.5}})
    assert fatal(check) == (set() if valid else {kind})
    assert kind is None or kind in kinds(check)
    # completion counts valid files
    assert (check.s4, check.s5) == ((1.0, 1.0) if valid else (0.25, 0.5))
    assert check.task == 0.5
    assert not Path("/tmp/ambjudge-must-not-exist").exists()


@pytest.mark.parametrize(
    ("unit", "peaks", "input_peaks", "reported"),
    [
        ("input", (1400.0, 1.1), (1500.0, 1300.0), True),
        ("input", (1400.0, 1.1), (1500.0, 1.2), False),
        ("input", (1400.0, 1.1), None, False),
        ("input", (1400.0, 300.0), (1500.0, 320.0), False),
        ("input", (1.2, 1.1), (1500.0, 1300.0), False),
        (None, (1400.0, 1.1), (1500.0, 1300.0), False),
    ],
    ids=[
        "one left in 0..1",
        "as its input",
        "without inputs",
        "a darker one",
        "all alike",
        "nothing asked",
    ],
)
def test_an_image_left_in_other_units_than_the_others(tmp_path, unit, peaks, input_peaks, reported):
    case_files = Case(tmp_path, "enhancement", "mr-denoising-task")
    case_files.output_format = OutputFormat(unit=unit)
    for i, case in enumerate(case_files.ids):
        np.save(
            case_files.out(case, "enhanced.npy"),
            np.linspace(0, peaks[i], 30, dtype=np.float32).reshape(5, 6),
        )
        if input_peaks is not None:
            data = np.linspace(0, input_peaks[i], 30, dtype=np.float32).reshape(5, 6)
            np.save(case_files.public / case_files.task / case / "noisy.npy", data)
    check = case_files.check(
        {"diagnostic_metrics": {"mean_ssim": 0.5}}, public=input_peaks is not None
    )
    assert [fact.case for fact in check.issues if "others to" in fact.text] == (
        [case_files.ids[1]] if reported else []
    )
    assert not fatal(check)


def test_super_resolution_changes_the_shape(tmp_path):
    case_files = Case(tmp_path, "enhancement", "ct-super-resolution-task")
    for case in case_files.ids:
        np.save(
            case_files.public / case_files.task / case / "input.npy", np.zeros((5, 6), np.float32)
        )
        np.save(case_files.out(case, "enhanced.npy"), np.arange(120.0).reshape(10, 12))
    # nobody but the report knows the shape
    metrics = {"mean_ssim": 0.9}
    assert case_files.check({"diagnostic_metrics": metrics}).s4 is None
    flags = {"output_format_valid": True, "n_valid": 2, "n_patients": 2, "completion_rate": 1.0}
    assert case_files.check({"format": flags, "scores": metrics}).s4 == 1.0
    report = {
        "format": {
            "output_format_valid": False,
            "n_valid": 0,
            "n_patients": 2,
            "completion_rate": 0.0,
        },
        "scores": {},
    }
    denied = case_files.check(report)
    assert (denied.s4, denied.s5, denied.task, denied.task_from) == (0.0, 0.0, 0.0, "outputs")


@pytest.mark.parametrize(
    ("report", "s4", "s5", "task"),
    [
        (
            {
                "format": {
                    "output_format_valid": False,
                    "n_valid": 0,
                    "n_patients": 2,
                    "completion_rate": 0.0,
                },
                "aggregate": {"clinical_score": 0.0},
            },
            0.0,
            0.0,
            0.0,
        ),
        (
            {
                "format": {
                    "output_format_valid": False,
                    "n_valid": 0,
                    "n_patients": 2,
                    "completion_rate": 0.0,
                },
                "scores": {"mean_ssim": 0.7},
            },
            0.0,
            0.0,
            0.0,
        ),
        (
            {
                "format": {
                    "output_format_valid": False,
                    "n_valid": 1,
                    "n_patients": 2,
                    "completion_rate": 0.5,
                },
                "scores": {"mean_psnr": 21.0, "mean_ssim": 0.7},
                "clinical": {"clinical": 0.3},
            },
            0.25,
            0.5,
            0.3,
        ),
        (
            {
                "format": {
                    "output_format_valid": True,
                    "n_valid": 2,
                    "n_patients": 2,
                    "completion_rate": 1.0,
                },
                "scores": {"mean_psnr": 21.0},
                "clinical": {"clinical": 0.6},
            },
            1.0,
            1.0,
            0.6,
        ),
    ],
    ids=["none valid, Task 0", "none valid, no Task", "half", "all"],
)
@pytest.mark.parametrize("files", [True, False], ids=["files", "report alone"])
def test_enhancement_by_a_report_with_one_flag(ldct, files, report, s4, s5, task):
    if not files:
        for case in ldct.ids:
            (ldct.outputs / case / "enhanced.npy").unlink()
            (ldct.outputs / case).rmdir()
        ldct.outputs.rmdir()
    check = ldct.check(report, public=False)
    assert (check.s4, check.s5, check.task) == (s4, s5, task)


# Synthesis


@pytest.mark.parametrize(
    ("data", "s4"),
    [
        (np.arange(360.0).reshape(SHAPE), 1.0),
        (np.zeros((2, 2, 2)), 0.5),
        (np.full(SHAPE, np.inf), 0.5),
        (None, 0.25),
    ],
    ids=["right", "shape", "inf", "missing"],
)
def test_synthesis(tmp_path, data, s4):
    case_files = Case(tmp_path, "synthesis", "brain-sct-task")
    for case in case_files.ids:
        nifti(case_files.public / case_files.task / case / "mr.nii.gz", np.zeros(SHAPE, np.int16))
        nifti(case_files.out(case, "sct.nii.gz"), np.arange(360.0).reshape(SHAPE))
    if data is None:
        (case_files.outputs / "patient_02" / "sct.nii.gz").unlink()
    else:
        nifti(case_files.outputs / "patient_02" / "sct.nii.gz", data)
    check = case_files.check(
        {"diagnostic_metrics": {"mean_ssim": 0.5}, "task_score": {"score": 0.4}}
    )
    assert (check.s4, check.task, check.task_from) == (s4, 0.4, "report")


# Classification


@pytest.mark.parametrize(
    ("text", "kind", "completion", "valid"),
    [
        ("patient_id,label\npatient_01,ADI\npatient_02,TUM\n", None, 1.0, True),
        ("\ufeffpatient_id,label\r\npatient_01,ADI\r\npatient_02,TUM\r\n", None, 1.0, True),
        ('patient_id,label\n"patient_01","ADI"\n\npatient_02,TUM', None, 1.0, True),
        ("case_id,class\npatient_01,ADI\npatient_02,TUM\n", "header", 1.0, False),
        ("label,patient_id\nADI,patient_01\nTUM,patient_02\n", "header", 1.0, False),
        ("patient_01,ADI\npatient_02,TUM\n", "header", 1.0, False),
        ("patient_id,label\npatient_01,ADI\n", "missing", 0.5, False),
        (
            "patient_id,label\npatient_01,ADI\npatient_01,ADI\npatient_02,TUM\n",
            "duplicate",
            1.0,
            False,
        ),
        ("patient_id,label\npatient_01,ADI\npatient_02,TUM\npatient_03,TUM\n", "extra", 1.0, False),
        ("patient_id,label\npatient_01,ADI\npatient_02,\n", "empty", 1.0, False),
        ("patient_id,label\npatient_01,ADI\npatient_02\n", "schema", 0.5, False),
        ("", "empty", 0.0, False),
        (b"\xff\xfe", "encoding", 0.0, False),
        ('patient_id,label\n"patient_01,ADI\n', "unreadable", 0.0, False),
        (None, "missing", 0.0, False),
    ],
    ids=[
        "right",
        "bom and crlf",
        "quoted",
        "wrong header",
        "columns swapped",
        "no header",
        "missing row",
        "duplicate",
        "extra row",
        "empty label",
        "one column",
        "empty",
        "encoding",
        "open quote",
        "no file",
    ],
)
def test_classification(tmp_path, text, kind, completion, valid):
    case_files = Case(tmp_path, "classification", "nct-crc-cls-task")
    for case in case_files.ids:
        (case_files.public / case_files.task / case / "image.png").write_bytes(b"x")
    if text is not None:
        (case_files.outputs / "predictions.csv").write_bytes(
            text if isinstance(text, bytes) else text.encode()
        )
    check = case_files.check(
        {"diagnostic_metrics": {"accuracy": 0.5}, "task_score": {"score": 0.5}}
    )
    assert (kinds(check) >= {kind}) if kind else (kinds(check) == set())
    assert check.s4 == 0.5 * completion + 0.5 * valid
    assert check.s5 == 0.5 * (completion > 0) + 0.5 * valid
    assert check.task == 0.5


def test_classification_misnamed_table(tmp_path):
    case_files = Case(tmp_path, "classification", "nct-crc-cls-task")
    (case_files.public / case_files.task / "patient_01" / "image.png").write_bytes(b"x")
    (case_files.outputs / "results.csv").write_text("patient_id,label\npatient_01,ADI\n")
    check = case_files.check()
    assert "misnamed" in kinds(check)
    assert check.s4 == 0.0


# Report generation


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"Findings: the lungs are clear, no effusion. Impression: normal.", None),
        ("Befund: unauffällig, keine Ergüsse, Herz normal groß und schlank.".encode(), None),
        (b"Lungs clear.", "length"),
        (b"x" * 8001, "length"),
        (b"x" * 8000, None),
        (b"1234567890 " * 10, "length"),
        (b"   \n", "empty"),
        (b"x" * 38 + b"\n" * 4, None),
        (b"x" * 39 + b"\r\n", None),
        (b"x" * 38 + b"\r\n", "length"),
        (b"x" * 7999 + b"\n" * 5, "length"),
        ("Ergüsse rechts und links, keine weiteren Auffälligkeiten".encode("latin-1"), "encoding"),
        (None, "missing"),
    ],
    ids=[
        "right",
        "umlauts",
        "short",
        "long",
        "just long enough",
        "digits",
        "blank",
        "line breaks count",
        "a line break is one",
        "one too few",
        "line breaks too many",
        "latin-1",
        "missing",
    ],
)
def test_report_generation(tmp_path, data, kind):
    case_files = Case(tmp_path, "report_generation", "cxr-report-task")
    for case in case_files.ids:
        (case_files.public / case_files.task / case / "manifest.json").write_text("{}")
        case_files.out(case, "report.txt").write_text(
            f"Study {case}: the heart is normal and the lungs are clear."
        )
    path = case_files.outputs / "patient_02" / "report.txt"
    if data is None:
        path.unlink()
    else:
        path.write_bytes(data)
    check = case_files.check({"task_score": {"score": 0.4}})
    assert kinds(check) == ({kind} if kind else set())
    # completion counts valid files, and the gate is closed by one that is not
    assert (check.s4, check.s5, check.task) == (
        (1.0, 1.0, 0.4) if kind is None else (0.25, 0.5, 0.0)
    )


# VQA

QUESTION = {"question_id": "patient_01", "question": "?", "options": {"A": "left", "B": "right"}}


def answer(case: str, **changes) -> dict:
    return {
        "question_id": case,
        "predicted_label": "A",
        "predicted_answer": "left",
        "raw_model_output": "It is left.",
        "model_name": "vlm",
        "runtime_s": 0.1,
        **changes,
    }


@pytest.mark.parametrize(
    ("changes", "kind", "readable"),
    [
        ({}, None, True),
        ({"predicted_answer": ""}, None, True),
        ({"predicted_label": "b", "predicted_answer": "right"}, None, True),
        ({"runtime_s": 0}, None, True),
        ({"raw_model_output": "unknown opacity on the left"}, None, True),
        ({"raw_model_output": "Fallback : left"}, None, True),
        ({"predicted_answer": " Left "}, "values", True),
        ({"predicted_answer": "Left"}, "values", True),
        ({"predicted_label": "B"}, "values", True),
        ({"predicted_label": "B."}, "values", True),
        ({"predicted_label": "C", "predicted_answer": "both"}, "values", True),
        ({"predicted_answer": None}, "values", True),
        ({"predicted_label": ""}, "values", False),
        ({"predicted_label": "left"}, "values", False),
        ({"runtime_s": -1}, "schema", True),
        ({"runtime_s": "fast"}, "schema", True),
        ({"runtime_s": None}, "schema", True),
        ({"model_name": ""}, "schema", True),
        ({"question_id": "patient_01"}, "schema", True),
        ({"raw_model_output": ""}, "placeholder", False),
        ({"raw_model_output": "Fallback: left"}, "placeholder", False),
        ({"raw_model_output": "heuristic: left"}, "placeholder", False),
        ({"raw_model_output": " N/A "}, "placeholder", False),
        ({"raw_model_output": "NA"}, "placeholder", False),
        ({"raw_model_output": "unknown"}, "placeholder", False),
        ({"raw_model_output": ["left"]}, "placeholder", False),
        ({"raw_model_output": "", "predicted_label": "", "predicted_answer": ""}, "skipped", False),
    ],
    ids=lambda value: json.dumps(value)[:60] if isinstance(value, dict) else str(value),
)
def test_vqa_answers(tmp_path, changes, kind, readable):
    case_files = Case(tmp_path, "vqa", "slake-task")
    for case in case_files.ids:
        (case_files.public / case_files.task / case / "question.json").write_text(
            json.dumps({**QUESTION, "question_id": case})
        )
        case_files.out(case, "answer.json").write_text(json.dumps(answer(case)))
    case_files.out("patient_02", "answer.json").write_text(
        json.dumps(answer("patient_02", **changes))
    )
    check = case_files.check(
        {
            "task_metrics": {"accuracy": 0.5, "model_call_detected": True},
            "task_score": {"score": 0.5},
        }
    )
    assert kinds(check) - ({"schema"} if kind == "placeholder" else set()) == (
        {kind} if kind else set()
    )
    assert check.s4_checks.parse_rate == (1.0 if readable else 0.5)
    assert check.s4_checks.format_valid is (kind is None)
    assert check.s4 == (1.0 if readable else 0.2 if kind == "placeholder" else 0.75)
    assert check.s5 == 1.0  # half of the answers are valid
    assert check.task == 0.5  # no gate


def test_answers_that_can_be_read_and_break_the_schema_are_results_of_an_invalid_submission(
    tmp_path,
):
    case_files = Case(tmp_path, "vqa", "slake-task")
    for case in case_files.ids:
        (case_files.public / case_files.task / case / "question.json").write_text(
            json.dumps({**QUESTION, "question_id": case})
        )
        case_files.out(case, "answer.json").write_text(json.dumps(answer(case, runtime_s=None)))
    check = case_files.check({"task_metrics": {"accuracy": 0.5, "model_call_detected": True}})
    assert (check.s4, check.s5) == (1.0, 0.5)


@pytest.mark.parametrize(("parse_rate", "s5"), [(0.0, 0.0), (0.5, 1.0), (1.0, 1.0)])
def test_without_the_questions_the_report_counts_readable_answers(tmp_path, parse_rate, s5):
    case_files = Case(tmp_path, "vqa", "slake-task")
    for case in case_files.ids:
        case_files.out(case, "answer.json").write_text(json.dumps(answer(case)))
    (case_files.run / "process").mkdir()
    (case_files.run / "process" / "agent_summary.json").write_text(
        json.dumps({"patient_ids": list(case_files.ids)})
    )
    report = {
        "task_metrics": {"accuracy": 0.5, "parse_rate": parse_rate, "model_call_detected": True},
        "task_score": {"score": 0.5},
    }
    check = case_files.check(report, public=False)
    assert kinds(check) == ({"values"} if parse_rate < 1 else set())
    assert (check.s4_checks.parse_rate, check.s5) == (parse_rate, s5)


def test_open_questions_need_an_answer_text(tmp_path):
    case_files = Case(tmp_path, "vqa", "vqa-rad-task")
    for case, text in zip(case_files.ids, ("pneumonia", ""), strict=True):
        (case_files.public / case_files.task / case / "question.json").write_text(
            json.dumps({"question_id": case, "question": "?"})
        )
        case_files.out(case, "answer.json").write_text(
            json.dumps(answer(case, predicted_label=None, predicted_answer=text))
        )
    assert case_files.check().s4_checks.parse_rate == 0.5


def test_an_empty_vqa_run_is_capped(tmp_path):
    case_files = Case(tmp_path, "vqa", "slake-task")
    (case_files.public / case_files.task / "patient_01" / "question.json").write_text(
        json.dumps(QUESTION)
    )
    check = case_files.check({"task_metrics": {"model_call_detected": True}})
    assert (check.s4, check.s5) == (0.0, 0.0)
    assert {stage: cap.value for stage, cap in check.stage_caps.items()} == {"S1": 0.2, "S3": 0.2}


def test_the_asked_for_calibration_artefact(tmp_path):
    case_files = Case(tmp_path, "vqa", "slake-task")
    case_files.brief = "Write s3_calibration.json before the batch."
    for case in case_files.ids:
        (case_files.public / case_files.task / case / "question.json").write_text(
            json.dumps({**QUESTION, "question_id": case})
        )
        case_files.out(case, "answer.json").write_text(json.dumps(answer(case)))
    report = {"task_metrics": {"model_call_detected": True}}
    assert case_files.check(report).stage_caps["S3"].value == 0.5
    (case_files.outputs / "s3_calibration.json").write_text("{}")
    assert case_files.check(report).stage_caps == {}


def test_public_must_be_a_folder(kidney, tmp_path):
    kidney.check()
    with pytest.raises(InputError, match="not a folder"):
        check_outputs(load_run(kidney.run), public=tmp_path / "nowhere")
    (tmp_path / "other" / "some-task" / "case_1").mkdir(parents=True)
    check = check_outputs(load_run(kidney.run), public=tmp_path / "other")
    assert any("no public inputs" in line for line in check.warnings)


def test_public_inputs_may_be_links(kidney, tmp_path):
    real = kidney.public / kidney.task / "patient_02" / "ct.nii.gz"
    real.rename(tmp_path / "store.nii.gz")
    os.symlink(tmp_path / "store.nii.gz", real)
    nifti(kidney.out("patient_02", "lesion.nii.gz"), np.zeros((3, 3, 3), np.uint8))
    assert "shape" in kinds(kidney.check(DICE))


@pytest.mark.parametrize("task", ["../private", "a\0b", "x" * 5000, ".", "C:\\x"])
def test_task_names_do_not_lead_out_of_the_public_folder(tmp_path, task):
    (tmp_path / "private" / "case_1").mkdir(parents=True)
    (tmp_path / "private" / "case_1" / "ct.nii.gz").write_bytes(b"x")
    (tmp_path / "public" / "case_2").mkdir(parents=True)
    (tmp_path / "public" / "case_2" / "ct.nii.gz").write_bytes(b"x")
    check = find_public(tmp_path / "public", task)
    assert check is not None
    assert check.cases == ("case_2",)


def test_public_may_hold_the_cases_directly(kidney):
    kidney.check()
    check = check_outputs(load_run(kidney.run), public=kidney.public / kidney.task)
    assert (check.s4, check.s4_checks.expected_cases) == (1.0, 2)
