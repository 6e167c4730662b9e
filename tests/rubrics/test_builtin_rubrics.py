"""The rubrics that come with the package: valid, complete, and as the benchmark's tables say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from ambjudge.errors import RubricError
from ambjudge.rubrics.load import (
    builtin_ids,
    criterion_sha256,
    dump_rubric,
    load_rubric,
    rubric_for,
    validate_file,
)
from ambjudge.rubrics.model import EVIDENCE_SCOPES, Criterion, Level, Rubric, StageRubric
from ambjudge.rubrics.validate import SCHEMA_PATH, schema
from ambjudge.tracks import BUILT_IN
from ambjudge.trajectories.models import TIERS

FOLDER = SCHEMA_PATH.parent
LABELS = Path(__file__).parents[1] / "data" / "recorded" / "labels" / "gold"
RUNS = Path(__file__).parents[1] / "data" / "recorded" / "runs"
IDS = builtin_ids()


def test_there_is_a_rubric_for_every_track_and_one_for_unknown_tracks():
    assert {*BUILT_IN, "segmentation-multiclass", "workflow"} == set(IDS)
    assert {load_rubric(i).track for i in IDS} == {*BUILT_IN, None}


@pytest.mark.parametrize("rubric_id", IDS)
def test_builtin_is_valid_and_readable_at_a_glance(rubric_id):
    assert validate_file(FOLDER / f"{rubric_id}.yaml") == []
    rubric = load_rubric(rubric_id)
    assert rubric == load_rubric(FOLDER / f"{rubric_id}.yaml")
    assert len({criterion_sha256(c) for c in rubric.criteria()}) == len(rubric.criteria())
    assert rubric.derived == (rubric_id in ("classification", "synthesis", "workflow"))
    for item in rubric.criteria():
        assert item.source == "derived" if rubric.derived else item.source
        assert len(item.text) <= 750
        assert item.text.endswith((".", "?"))
        assert "  " not in item.text
        assert all(len(level.text) <= 300 for level in item.scale)


_PARTS = {"S1b": ("S1a",), "S1c": ("S1a",), "S1f": ("S1e",)}
USUAL = ((6, 5, 1), (1.0, 0.5, 0.0), {"S1d", "S1e", "S1f"}, _PARTS)
TABLES = dict.fromkeys(IDS, USUAL) | {
    # Items of S1 to S3; the scale of the first of S3; what lite runs are credited; items that fall
    # with another.
    "enhancement": ((6, 5, 1), (1.0, 0.5, 0.2, 0.0), USUAL[2], _PARTS),
    "vqa": ((6, 5, 1), (1.0, 0.5, 0.2, 0.0), {"S1d"}, {}),
    "report_generation": ((11, 7, 7), (1.0, 0.0), set(), {}),
    "workflow": ((3, 3, 1), (1.0, 0.5, 0.0), set(), {}),
}


@pytest.mark.parametrize("rubric_id", IDS)
def test_builtin_is_as_the_papers_tables_say(rubric_id):
    rubric = load_rubric(rubric_id)
    counts = tuple(len(rubric.criteria(stage)) for stage in ("S1", "S2", "S3"))
    credited = {c.id for c in rubric.criteria() if c.credit == ("lite",)}
    needs = {c.id: c.requires for c in rubric.criteria() if c.requires}
    assert (counts, rubric.criteria("S3")[0].values, credited, needs) == TABLES[rubric_id]
    assert rubric.weights == {"S1": 0.25, "S2": 0.15, "S3": 0.35, "S4": 0.15, "S5": 0.10}


def test_report_generation_items_leave_the_denominator():
    criteria = load_rubric("report_generation").criteria()
    assert [c.id for c in criteria if c.tiers == ("standard", "pro")] == ["S1i", "S1j", "S1k"]
    assert [c.id for c in criteria if c.conditional] == ["S2g", "S3g"]
    assert not any(c.credit for c in criteria)


SETTLED = {
    "S1b": "all three",
    "S1c": "does not exist",
    "S1d": "Distinct:",
    "S1f": "the picture where it is attached, else by the code",
    "S2a": "ensemble",
    "S2d": "Not counted:",
    "S2e": "no GPU",
    "S3": "the highest level of which every part holds",
}


@pytest.mark.parametrize(
    "rubric_id", [i for i in IDS if i not in ("vqa", "report_generation", "workflow")]
)
def test_what_readers_found_unclear_is_settled_and_marked_as_ours(rubric_id):
    items = {c.id: c for c in load_rubric(rubric_id).criteria()}
    for name, words in SETTLED.items():
        assert words in items[name].text
        if name != "S1f":
            assert items[name].source == "derived" or items[name].source.endswith(" ours")


@pytest.mark.parametrize("path", sorted(LABELS.glob("*.json")), ids=lambda p: p.stem)
def test_human_labels_use_the_items_and_values_of_the_runs_rubric(path):
    labels = json.loads(path.read_text())
    report = json.loads((RUNS / labels["run"] / "detail_report.json").read_text())
    header = report.get("header", report)
    names = (
        ("kidney", "segmentation"),
        ("bccd", "detection"),
        ("ldct", "enhancement"),
        ("vqa", "vqa"),
        ("crc", "classification"),
    )
    track = next(track for word, track in names if labels["run"].startswith(word))
    rubric = rubric_for(track, header.get("task"))
    assert set(labels["criteria"]) == {c.id for c in rubric.criteria()}
    for item in rubric.criteria():
        assert labels["criteria"][item.id] in item.values


@pytest.mark.parametrize(
    ("track", "task", "expected"),
    [
        ("segmentation", "kidney-seg-task", "segmentation"),
        ("segmentation", "feta-seg-task", "segmentation-multiclass"),
        ("segmentation", "FeTA_2022", "segmentation-multiclass"),
        ("segmentation", "brain-tissue-seg-task", "segmentation-multiclass"),
        ("segmentation", "bufeta", "segmentation"),
        ("segmentation", None, "segmentation"),
        ("detection", "feta", "detection"),
        (None, "feta", "workflow"),
        (None, None, "workflow"),
    ],
)
def test_the_rubric_of_a_run(track, task, expected):
    assert rubric_for(track, task).id == expected


@pytest.mark.parametrize(
    ("preferred", "track", "task", "expected"),
    [
        ("vqa", "vqa", "x", "vqa"),
        ("vqa", "detection", "x", "detection"),
        ("vqa", "segmentation", "feta-seg-task", "segmentation-multiclass"),
        ("segmentation", "segmentation", "feta-seg-task", "segmentation"),
        ("vqa", None, None, "workflow"),
        ("workflow", None, None, "workflow"),
        ("workflow", "detection", "x", "workflow"),
    ],
)
def test_a_given_rubric_judges_runs_of_its_own_track(preferred, track, task, expected):
    assert rubric_for(track, task, [load_rubric(preferred)]).id == expected


@pytest.mark.parametrize("rubric_id", IDS)
def test_yaml_to_model_to_yaml(rubric_id, tmp_path):
    rubric = load_rubric(rubric_id)
    file = tmp_path / "copy.yaml"
    file.write_text(dump_rubric(rubric), encoding="utf-8")
    again = load_rubric(file)
    assert again == rubric
    assert dump_rubric(again) == dump_rubric(rubric)
    assert Rubric.model_validate_json(rubric.model_dump_json()) == rubric


@pytest.mark.parametrize(
    "name", ["segmentaton", "", "no such", "../segmentation", "a\0b/c", "x" * 5000 + "/y"]
)
def test_unknown_names_are_one_line_errors(name):
    with pytest.raises(RubricError) as caught:
        load_rubric(name)
    assert "\n" not in str(caught.value)
    if name == "segmentaton":
        assert str(caught.value) == "unknown rubric 'segmentaton' (did you mean segmentation?)"


MODELS = {
    (): Rubric,
    ("criterion",): Criterion,
    ("level",): Level,
    ("judged",): StageRubric,
    ("computed",): StageRubric,
}


@pytest.mark.parametrize("name", MODELS, ids=lambda n: n[0] if n else "rubric")
def test_schema_has_the_fields_of_the_model(name):
    """The published schema is written for people; this ties it to what the code reads."""
    node = schema()["$defs"][name[0]] if name else schema()
    fields = MODELS[name].model_fields
    # written once, told before each of its criteria
    of_rubric = {"preamble"} if name == ("criterion",) else set()
    assert set(node["properties"]) == set(fields) - {"sha256"} - of_rubric
    demanded = {key for key, field in fields.items() if field.is_required()}
    extra = {("judged",): {"criteria"}}.get(name, set())
    assert set(node["required"]) == demanded | extra


def test_schema_has_the_enumerations_of_the_model():
    from jsonschema import Draft202012Validator

    data = schema()
    Draft202012Validator.check_schema(data)
    item = data["$defs"]["criterion"]["properties"]
    assert tuple(item["evidence"]["items"]["enum"]) == EVIDENCE_SCOPES
    assert tuple(item["credit"]["items"]["enum"]) == tuple(item["tiers"]["items"]["enum"]) == TIERS
    assert all(re.search(data["properties"]["track"]["pattern"], name) for name in BUILT_IN)
    assert item["id"]["pattern"] == Criterion.model_json_schema()["properties"]["id"]["pattern"]
