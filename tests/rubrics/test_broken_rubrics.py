"""What users get wrong in a rubric file, and the line and words that they get back."""

from __future__ import annotations

from pathlib import Path

import pytest
from ambjudge.errors import RubricError
from ambjudge.rubrics.document import MAX_BYTES, parse_document
from ambjudge.rubrics.load import build_rubric, load_rubric, validate_file
from ambjudge.rubrics.validate import find_problems
from hypothesis import given
from hypothesis import strategies as st

GOOD = """\
id: mine
version: "1.0"
track: segmentation
title: Mine
source: our own
stages:
  S1:
    weight: 0.25
    criteria:
      - id: S1a
        title: plan
        text: Is there a plan?
        scale: binary
        evidence: [plan]
        source: own
      - id: S1b
        title: diagram
        text: Is there a diagram?
        scale: binary
        requires: [S1a]
        credit: [lite]
        evidence: [plan, S1]
        source: own
  S2:
    weight: 0.15
    criteria:
      - {id: S2a, title: env, text: Does it work?, scale: binary, evidence: [S2], source: own}
  S3:
    weight: 0.35
    criteria:
      - id: S3
        title: pilot
        text: How far was it validated?
        scale:
          - {value: 1.0, text: fully}
          - {value: 0.5, text: partly}
          - {value: 0, text: not}
        evidence: [S3]
        source: own
  S4:
    weight: 0.15
  S5:
    weight: 0.10
"""

CASES = {
    # name: (old, new, line, words of the message and hint)
    "unknown key": (
        "        credit:",
        "        credits:",
        21,
        "credits: unknown key (did you mean credit?)",
    ),
    "unknown top key": (
        "title: Mine",
        "title: Mine\nbanana: 1",
        5,
        "banana: unknown key (known: id, version",
    ),
    "missing id": ("id: mine\n", "", 1, "'id' is a required property (add it)"),
    "missing text": (
        "        text: Is there a diagram?\n",
        "",
        16,
        "stages.S1.criteria[1]: 'text' is a required property",
    ),
    "no stage": (
        GOOD[GOOD.index("stages:") :],
        "stages: {}\n",
        6,
        "stages: {} should be non-empty",
    ),
    "nothing to judge": (
        GOOD[GOOD.index("  S1:") : GOOD.index("  S4:")],
        "",
        7,
        "no stage has criteria",
    ),
    "unknown stage": (
        "  S5:",
        "  S6:",
        42,
        "not a stage name (expected S1 to S5, or a name of up to 16",
    ),
    "name of a question": ("  S5:", "  diagnosis:", 42, "not a stage name"),
    "group without criteria": (
        "  S5:",
        "  care:",
        43,
        "stages.care: 'criteria' is a required property",
    ),
    "id of a stage in a group": ("  S3:", "  care:", 31, "the id S3 under care"),
    "negative weight": (
        "weight: 0.25",
        "weight: -1",
        8,
        "stages.S1.weight: -1 is less than or equal to the minimum of 0",
    ),
    "zero weight": ("weight: 0.25", "weight: 0", 8, "less than or equal to the minimum of 0"),
    "weight as text": ("weight: 0.25", 'weight: "0.25"', 8, "'0.25' is not of type 'number'"),
    "weight as truth": ("weight: 0.25", "weight: yes", 8, "True is not of type 'number'"),
    "infinite weight": ("weight: 0.25", "weight: .inf", 8, "'.inf' is not a plain finite number"),
    "endless weight": ("weight: 0.25", "weight: " + "9" * 5000, 8, "is not a plain finite number"),
    "version as number": (
        'version: "1.0"',
        "version: 1.0",
        2,
        "version: 1.0 is not of type 'string'",
    ),
    "odd version": ('version: "1.0"', 'version: "one"', 2, "quoted numbers like"),
    "unknown track": ("track: segmentation", "track: segmentaton", 3, "did you mean segmentation?"),
    "zero meaning": (
        "title: plan\n",
        "title: plan\n        meaning: 0\n",
        12,
        "meaning: 0 is less than the minimum of 1",
    ),
    "meaning as text": (
        "title: plan\n",
        "title: plan\n        meaning: changed\n",
        12,
        "'changed' is not of type 'integer'",
    ),
    "unknown tier": (
        "credit: [lite]",
        "credit: [light]",
        21,
        "'light' is not one of ['lite', 'standard', 'pro'] (did you mean lite?)",
    ),
    "unknown evidence": (
        "evidence: [plan, S1]",
        "evidence: [plan, S9]",
        22,
        "'S9' is not one of ['plan', 'S1'",
    ),
    "no evidence": ("evidence: [plan, S1]", "evidence: []", 22, "[] should be non-empty"),
    "evidence twice": (
        "evidence: [plan, S1]",
        "evidence: [plan, plan]",
        22,
        "has non-unique elements",
    ),
    "other scale word": (
        "scale: binary\n        requires",
        "scale: ternary\n        requires",
        19,
        "'binary' was expected",
    ),
    "scale as number": (
        "scale: binary\n        requires",
        "scale: 3\n        requires",
        19,
        "3 is not of type 'string', 'array'",
    ),
    "one level": (
        "          - {value: 1.0, text: fully}\n          - {value: 0.5, text: partly}\n",
        "",
        35,
        "is too short",
    ),
    "level above one": ("value: 1.0", "value: 1.5", 35, "1.5 is greater than the maximum of 1"),
    "no zero": ("value: 0,", "value: 0.1,", 35, "no level has the value 0"),
    "no one": ("value: 1.0", "value: 0.9", 35, "no level has the value 1"),
    "value twice": ("value: 0.5", "value: 1", 36, "the value 1 occurs twice"),
    "id twice": ("id: S1b", "id: S1a", 16, "the id S1a occurs twice (first on line 10"),
    "id of another stage": (
        "id: S1b",
        "id: S2b",
        16,
        "S2b is under S1 (expected an id like S1a)",
    ),
    "odd id": ("id: S1b", "id: S1-b", 16, "'S1-b' has the wrong form (expected up to 16 letters"),
    "single id among others": ("id: S1b", "id: S1", 16, "S1 is not the only criterion"),
    "unknown requires": (
        "requires: [S1a]",
        "requires: [S1x]",
        20,
        "no criterion S1x in this stage (did you mean S1",
    ),
    "requires itself": (
        "requires: [S1a]",
        "requires: [S1b]",
        20,
        "S1b requires itself through S1b",
    ),
    "circle": (
        "        text: Is there a plan?",
        "        requires: [S1b]\n        text: Is there a plan?",
        12,
        "S1a requires itself through S1b",
    ),
    "requires another stage": (
        "requires: [S1a]",
        "requires: [S2a]",
        20,
        "no criterion S2a in this stage",
    ),
    "credited where it does not apply": (
        "credit: [lite]",
        "credit: [lite]\n        tiers: [pro]",
        21,
        "lite is credited, but the item does not apply there",
    ),
    "criteria in S4": (
        "  S4:\n    weight: 0.15\n",
        (
            "  S4:\n    weight: 0.15\n    criteria: [{id: S1c, title: t, text: x, scale: binary,"
            " evidence: [S4], source: s}]\n"
        ),
        42,
        "S4 has criteria",
    ),
    "key twice": (
        "        title: diagram\n",
        "        title: diagram\n        title: picture\n",
        18,
        "the key 'title' occurs twice (first on line 17; remove one)",
    ),
    "stage twice": ("  S2:\n", "  S1:\n", 24, "the key 'S1' occurs twice"),
    "tab": (
        "        title: diagram",
        "\ttitle: diagram",
        17,
        "a tab in the indentation (indent with spaces)",
    ),
    "second document": (
        "  S5:\n    weight: 0.10\n",
        "  S5:\n    weight: 0.10\n---\nid: two\n",
        44,
        "a second document",
    ),
    "anchor": ("title: Mine", "title: &a Mine", 4, "anchor or alias 'a' (write the value out)"),
    "alias": ("title: Mine", "title: *a", 4, "anchor or alias 'a'"),
    "merge key": ("title: Mine", "title: Mine\n<<: {x: 1}", 5, "<<: unknown key"),
    "python tag": ("title: Mine", "title: !!python/object/apply:os.system [echo]", 4, "the tag"),
    "local tag": ("title: Mine", "title: !mine x", 4, "the tag '!mine'"),
    "list as key": ("title: Mine", "title: Mine\n? [a]\n: 1", 5, "a key that is not text"),
    "open quote": ("title: Mine", 'title: "Mine', 4, "not YAML"),
    "bad indentation": ("  S2:\n    weight", "  S2:\n weight", 25, "not YAML"),
    "colon in text": (
        "title: Mine",
        "title: Mine: yours",
        4,
        "not YAML: mapping values are not allowed",
    ),
    "title null": ("title: Mine", "title:", 4, "title: None is not of type 'string'"),
    "title empty": ("title: Mine", 'title: ""', 4, "should be non-empty"),
    "control character": ("title: Mine", "title: Mi\x07ne", 4, "not YAML"),
    "criteria as mapping": (
        "    criteria:\n      - {id: S2a,",
        "    criteria:\n        {id: S2a,",
        27,
        "is not of type 'array'",
    ),
}


def test_the_good_one_is_good(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(GOOD)
    assert validate_file(file) == []
    assert load_rubric(file).id == "mine"
    assert load_rubric(str(file)) == load_rubric(file)


@pytest.mark.parametrize("name", CASES)
def test_broken_yaml_names_line_and_cause(name, tmp_path):
    old, new, line, words = CASES[name]
    assert GOOD.count(old) >= 1, "the case no longer changes anything"
    file = tmp_path / "broken.yaml"
    file.write_text(GOOD.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(RubricError) as caught:
        load_rubric(file)
    message = str(caught.value)
    assert message.startswith(f"{file}:{line}:"), message
    assert words in message
    assert "\n" not in message
    assert caught.value.path == file
    problems = validate_file(file)
    assert problems[0].line == line
    assert words in str(problems[0])


def test_all_problems_are_listed_in_order_of_lines(tmp_path):
    file = tmp_path / "broken.yaml"
    file.write_text(
        GOOD.replace("weight: 0.25", "weight: 0")
        .replace("credit: [lite]", "credit: [light]")
        .replace("track: seg", "track: Xeg")
    )
    assert [p.line for p in validate_file(file)] == [3, 8, 21]
    with pytest.raises(RubricError, match="2 more: ambjudge rubric validate"):
        load_rubric(file)


FILES = {
    "missing": (None, "cannot be read: No such file"),
    "empty": (b"", "is empty"),
    "comments only": (b"# nothing\n\n", "is empty"),
    "scalar": (b"hello", "expected a mapping"),
    "list": (b"- 1\n- 2\n", "is not a mapping"),
    "not utf-8": (b"id: a\ntitle: \xff\xfe\n", ":2:8: not UTF-8 text"),
    "utf-16": ("id: a".encode("utf-16"), ":1:1: not UTF-8 text"),
    "nul bytes": (b"id: a\nver\0sion: 1\n", "not YAML"),
    "too large": (b"#" * (MAX_BYTES + 1), "more than the"),
    "deep": (b"[" * 100_000, "nested more than 20 deep"),
    "deep mapping": (b"{a: " * 50_000, "nested more than 20 deep"),
    "bomb": (b"a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n", "anchor or alias"),
    "self reference": (b"&a [*a]", "anchor or alias"),
    "binary": (bytes(range(256)), "not"),
}


@pytest.mark.parametrize("name", FILES)
def test_hostile_files_are_one_line_errors(name, tmp_path):
    data, words = FILES[name]
    file = tmp_path / "rubric.yaml"
    if data is not None:
        file.write_bytes(data)
    with pytest.raises(RubricError) as caught:
        load_rubric(file)
    assert words in str(caught.value)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(validate_file(file)) >= 1


def test_a_folder_is_no_rubric(tmp_path):
    with pytest.raises(RubricError, match="is not a file"):
        load_rubric(tmp_path)


@given(st.text(max_size=300) | st.binary(max_size=300).map(lambda b: b.decode("latin-1")))
def test_any_text_is_a_rubric_or_an_error_of_ours(text):
    try:
        document = parse_document(text, Path("x.yaml"))
    except RubricError:
        return
    assert find_problems(document)


@given(st.data())
def test_any_damage_to_a_rubric_is_found_or_harmless(data):
    start = data.draw(st.integers(0, len(GOOD)))
    end = data.draw(st.integers(start, min(len(GOOD), start + 40)))
    text = (
        GOOD[:start] + data.draw(st.text("abS1:- \n\t[]{}&*!'\"0.5#|>", max_size=10)) + GOOD[end:]
    )
    try:
        document = parse_document(text, Path("x.yaml"))
    except RubricError as error:
        message = str(error)
    else:
        problems = find_problems(document)
        message = str(problems[0]) if problems else f"x.yaml: {build_rubric(document).id}"
    assert message.startswith("x.yaml:")
