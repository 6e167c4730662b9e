"""What makes verdicts stale and what does not."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import yaml
from ambjudge.rubrics.diff import diff_rubrics, render_diff
from ambjudge.rubrics.document import parse_document
from ambjudge.rubrics.load import build_rubric, builtin_ids, criterion_sha256, load_rubric
from ambjudge.rubrics.validate import SCHEMA_PATH
from hypothesis import given, settings
from hypothesis import strategies as st

FOLDER = SCHEMA_PATH.parent


def _plain(rubric_id="segmentation"):
    return yaml.safe_load((FOLDER / f"{rubric_id}.yaml").read_text(encoding="utf-8"))


def _rubric(data):
    # Through JSON, so that lists that the test uses twice do not become aliases.
    text = yaml.safe_dump(json.loads(json.dumps(data)), sort_keys=False)
    return build_rubric(parse_document(text, Path("x.yaml")))


def _item(data, name):
    return next(
        c for s in data["stages"].values() for c in s.get("criteria", []) if c["id"] == name
    )


weights = st.floats(0.001, 1000, allow_nan=False)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(builtin_ids()), st.data())
def test_edits_of_weights_never_make_a_verdict_stale(rubric_id, data):
    plain = _plain(rubric_id)
    before = load_rubric(rubric_id)
    for stage in plain["stages"].values():
        stage["weight"] = data.draw(weights)
        for item in stage.get("criteria", []):
            if data.draw(st.booleans()):
                item["weight"] = data.draw(weights)
            if data.draw(st.booleans()):
                item["credit"] = ["lite"] if "tiers" not in item else []
            if data.draw(st.booleans()):
                item.pop("requires", None)
    after = _rubric(plain)
    assert [criterion_sha256(c) for c in before.criteria()] == [
        criterion_sha256(c) for c in after.criteria()
    ]
    diff = diff_rubrics(before, after)
    assert diff.stale == ()
    assert diff.added == diff.removed == ()
    assert ("verdicts go stale" in render_diff(diff)) is False


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(builtin_ids()), st.integers(0, 2**32), st.booleans(), st.integers(30, 200))
def test_order_and_layout_never_change_the_hash(rubric_id, seed, flow, width):
    rng = random.Random(seed)

    def shuffled(value, name=""):
        if isinstance(value, dict):
            items = [(k, shuffled(v, k)) for k, v in value.items()]
            rng.shuffle(items)
            return dict(items)
        if isinstance(value, list):
            items = [shuffled(v) for v in value]
            rng.shuffle(items)
            return items
        return value

    text = yaml.safe_dump(
        shuffled(_plain(rubric_id)), sort_keys=False, default_flow_style=flow, width=width, indent=3
    )
    again = build_rubric(parse_document("# a comment\n\n" + text, Path("x.yaml")))
    assert again == load_rubric(rubric_id)
    assert again.sha256 == load_rubric(rubric_id).sha256
    assert render_diff(diff_rubrics(again, load_rubric(rubric_id))) == ""


EDITS = {
    "text": (lambda d: _item(d, "S1b").update(text="Another question?"), "stale"),
    "title": (lambda d: _item(d, "S1b").update(title="Another title"), "stale"),
    "evidence": (lambda d: _item(d, "S1b").update(evidence=["plan"]), "stale"),
    "conditional": (lambda d: _item(d, "S1b").update(conditional="Applies at times."), "stale"),
    "level text": (lambda d: _item(d, "S3")["scale"][1].update(text="Half."), "stale"),
    "level value": (lambda d: _item(d, "S3")["scale"][1].update(value=0.4), "stale"),
    "binary written out with other words": (
        lambda d: _item(d, "S1b").update(
            scale=[{"value": 1, "text": "y"}, {"value": 0, "text": "n"}]
        ),
        "stale",
    ),
    "weight": (lambda d: _item(d, "S1b").update(weight=2), "no new call"),
    "requires": (lambda d: _item(d, "S1b").update(requires=[]), "no new call"),
    "more credit": (lambda d: _item(d, "S1b").update(credit=["lite"]), "no new call"),
    "less credit": (lambda d: _item(d, "S1d").pop("credit"), "asked in more tiers"),
    "source": (lambda d: _item(d, "S1b").update(source="elsewhere"), "no new call"),
    "meaning": (lambda d: _item(d, "S1b").update(meaning=2), "no new call"),
}


@pytest.mark.parametrize("name", EDITS)
def test_the_effect_of_an_edit(name):
    edit, effect = EDITS[name]
    plain = _plain()
    edit(plain)
    before, after = load_rubric("segmentation"), _rubric(plain)
    diff = diff_rubrics(before, after)
    assert before.sha256 != after.sha256
    (changed,) = diff.changed
    assert changed.stale == (effect == "stale") == bool(diff.stale)
    assert changed.newly_asked == (effect == "asked in more tiers")
    assert f": {'verdicts go stale' if effect == 'stale' else effect} @@" in render_diff(diff)


def test_a_raised_meaning_is_shown_and_leaves_the_keys_of_verdicts_alone():
    plain = _plain()
    _item(plain, "S1b")["meaning"] = 1
    assert _rubric(plain).sha256 == load_rubric("segmentation").sha256, "1 is what it is if unset"
    _item(plain, "S1b")["meaning"] = 2
    before, after = load_rubric("segmentation"), _rubric(plain)
    assert before.sha256 != after.sha256
    assert list(map(criterion_sha256, before.criteria())) == list(
        map(criterion_sha256, after.criteria())
    )
    assert render_diff(diff_rubrics(before, after)).splitlines()[2:] == [
        "@@ S1b: no new call @@",
        "-meaning: 1",
        "+meaning: 2",
    ]


def test_added_removed_and_stage_weight_as_text():
    plain = _plain()
    stage = plain["stages"]["S2"]
    plain["version"] = "9.1"
    stage["weight"] = 0.2
    stage["criteria"] = [c for c in stage["criteria"] if c["id"] != "S2d"]
    stage["criteria"].append({**stage["criteria"][0], "id": "S2f", "text": "Something new?"})
    _item(plain, "S1a")["weight"] = 3
    diff = diff_rubrics(load_rubric("segmentation"), _rubric(plain))
    assert (diff.added, diff.removed, diff.stale, [c.id for c in diff.changed]) == (
        ("S2f",),
        ("S2d",),
        (),
        ["S1a"],
    )
    assert diff.stage_weights == {"S2": (0.15, 0.2)}
    text = render_diff(diff)
    for line in (
        f"--- segmentation {load_rubric('segmentation').version}",
        "+++ segmentation 9.1",
        "@@ S2 weight: no new call @@",
        "-weight: 0.15",
        "+weight: 0.2",
        "@@ S2f added: to be judged @@",
        "+text: Something new?",
        "@@ S2d removed",
        "@@ S1a: no new call @@",
        "-weight: 1",
        "+weight: 3",
    ):
        assert any(row.startswith(line) for row in text.splitlines()), line


def test_rubrics_of_different_tracks_can_be_compared():
    diff = diff_rubrics(load_rubric("segmentation"), load_rubric("enhancement"))
    assert {"S1c", "S2b", "S3"} == set(diff.stale)
    assert diff_rubrics(load_rubric("vqa"), load_rubric("vqa")).same
