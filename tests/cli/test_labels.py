"""Human labels on the command line: `label import` takes what `agreement` takes, forms are filled
in with an editor and come back, and numbers are the same wherever the labels lie."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from ambjudge.errors import InputError
from ambjudge.judge.store import open_store
from ambjudge.judge.trust.human_labels import dump_labels, parse_labels, stored_labels
from ambjudge.judge.trust.label_form import FormRun, label_form
from ambjudge.judge.trust.label_sources import each_label
from ambjudge.rubrics.load import load_rubric
from hypothesis import given, settings
from hypothesis import strategies as st

DATA = Path(__file__).parents[1] / "data"
RECORDED = DATA / "recorded"
CARDS = DATA / "tui" / "cards.jsonl"
RUN = "bccd-lite-04"

# One reader: import and agreement

TAKEN = {
    "complete.json": (RECORDED / "labels" / "gold" / f"{RUN}.json").read_text("utf-8"),
    "without what the tier credits.json": json.dumps({"run": RUN, "criteria": {"S1a": 1}}),
    "does not apply.json": json.dumps({"run": RUN, "criteria": {"S1a": 1, "S1d": None}}),
    "no annotator.json": json.dumps({"run": RUN, "codes": {}}),
    "nulls.json": json.dumps({"run": RUN, "codes": {}, "stages": None, "notes": None}),
    "other fields.json": json.dumps({"run": RUN, "codes": {}, "source": "mine", "split": "dev"}),
    "evidence alone.json": json.dumps({"run": RUN, "codes": {}, "evidence": {"S2a": [3]}}),
    "several.json": json.dumps([{"run": RUN, "codes": {}}, {"run": "kidney", "codes": {}}]),
    "lines.jsonl": json.dumps({"run": RUN, "codes": {}}) + "\n" + json.dumps({"run": "k"}),
    "form.yaml": f"run: {RUN}\ncriteria:\n  S1a: 1\n  S1b:\n  S1d: null\ncodes:\n",
    "list.yaml": f"- run: {RUN}\n  criteria: {{S1a: 0}}\n- run: kidney\n",
}
REFUSED = {
    "list.json": ("[1]", "list.json:1: is int, not an object"),
    "broken.json": ('{"run": "x"', "broken.json: is not JSON"),
    "no run.json": ('{"codes": {}}', "no run.json: run: Field required"),
    "misspelt.json": (
        json.dumps({"run": RUN, "critera": {"S1a": 1}}),
        "misspelt.json: unknown field 'critera' (did you mean 'criteria'?)",
    ),
    "text.json": (json.dumps({"run": RUN, "criteria": {"S1a": "1"}}), "criteria.S1a: Input"),
    "beyond.json": (json.dumps({"run": RUN, "criteria": {"S1a": 2}}), "criteria.S1a: Input"),
    "code.json": (json.dumps({"run": RUN, "codes": {"E9": {}}}), "codes.E9: Input should be one"),
    "lines.jsonl": ('{"run": "a", "codes": {}}\n{"run": 3}', "lines.jsonl:2: run: Input"),
    "comma.yaml": (f"run: {RUN}\ncriteria:\n  S1a: 0,5\n", "comma.yaml:3: criteria.S1a: Input"),
    "stage.yaml": (f"run: {RUN}\nstages:\n  1: S1\n  2: S9\n", "stage.yaml:4: stages.2: Input"),
    "space.yaml": (f"run: {RUN}\ncriteria:\n  S1a:1\n  S1b: 0\n", "space.yaml:3: no space after"),
    "twice.yaml": (f"run: {RUN}\ncriteria:\n  S1a: 1\n  S1a: 0\n", "twice.yaml:4:3: the key 'S1a'"),
    "empty.yaml": ("\n", "empty.yaml: is empty"),
    "card.json": (CARDS.read_text("utf-8").splitlines()[0], "card.json: is a scorecard"),
}


def _put(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", TAKEN)
def test_import_takes_what_agreement_takes(out, tmp_path: Path, name: str) -> None:
    path = _put(tmp_path / "labels", name, TAKEN[name])
    code, text, _ = out("agreement", CARDS, "--labels", path, "--json")
    assert (code, bool(json.loads(text)["rows"])) == (0, True)
    code, _, err = out("label", "import", path, "--store", "s.db")
    assert (code, "error" in err) == (0, False)
    assert "0 left out" in err
    again = out("agreement", CARDS, "--labels", "s.db", "--json")[1]
    assert json.loads(again) == json.loads(text), "stored, they say the same"


@pytest.mark.parametrize("name", REFUSED)
def test_import_refuses_what_agreement_refuses_and_goes_on(out, tmp_path: Path, name: str) -> None:
    text, message = REFUSED[name]
    _put(tmp_path / "labels", name, text)
    good = {"run": RUN, "annotator": "b", "criteria": {"S1a": 1}}
    _put(tmp_path / "labels", "z good.json", json.dumps(good))
    errors = []
    for command in (
        ("label", "import", "labels", "--store", "s.db"),
        ("agreement", CARDS, "--labels", "labels", "--annotator", "b"),
        ("analyze", CARDS, "--labels", "labels", "--table", "agreement"),
    ):
        code, _, err = out("-q", *command)
        assert code == 1, err
        errors.append([line for line in err.splitlines() if "error" in line])
    assert errors[0] == errors[1] == errors[2]
    (line,) = errors[0]
    assert message in line
    assert line.endswith(")"), "it says what to do"
    with open_store(tmp_path / "s.db") as store:
        assert "b" in {labels.annotator for labels in stored_labels(store)}


def test_two_files_on_one_run_count_once(out, tmp_path: Path) -> None:
    part = {"run": RUN, "annotator": "a1", "criteria": {"S1a": 1}}
    full = {**part, "criteria": {"S1a": 1, "S1b": 0}, "codes": {}}
    _put(tmp_path / "in", "a.json", json.dumps({**part, "drawn": {"probability": 0.5}}))
    _put(tmp_path / "in", "b.json", json.dumps(full))
    _put(tmp_path / "in", "c.yaml", f"run: {RUN}\nannotator: a1\ncriteria:\n  S1a:\n")
    (entry,) = each_label(tmp_path / "in")
    assert entry.labels.criteria == full["criteria"]
    assert entry.labels.drawn is not None, "how it was drawn is not lost"
    code, text, _ = out("agreement", CARDS, "--labels", "in", "--json")
    assert (code, max(row["n"] for row in json.loads(text)["rows"])) == (0, 1)
    _put(tmp_path / "in", "d.json", json.dumps({**part, "criteria": {"S1a": 0}}))
    code, _, err = out("label", "import", "in", "--store", "s.db")
    assert code == 1
    assert f"d.json: labels of {RUN} by a1 differ from those in in/b.json (keep one of" in err


@pytest.mark.parametrize(
    ("update", "message"),
    [
        pytest.param({"criteria": {"S1z": 1}}, "criteria.S1z: not in rubric", id="criterion"),
        pytest.param({"criteria": {"S1a": 0.5}}, "S1a: 0.5 is not one of 1, 0", id="scale"),
        pytest.param({"stages": {"99": "S1"}}, "turn 99 of a run with 9", id="turn"),
        pytest.param({"evidence": {"S3": [10]}}, "evidence.S3: turn 10", id="evidence"),
    ],
)
def test_import_with_runs_names_what_contradicts_them(
    out, tmp_path: Path, update: Mapping[str, Any], message: str
) -> None:
    _put(tmp_path, "bad.json", json.dumps({"run": RUN, "criteria": {"S1b": 1}, **update}))
    _put(tmp_path, "good.json", json.dumps({"run": RUN, "annotator": "b", "codes": {}}))
    _put(tmp_path, "far.json", json.dumps({"run": "elsewhere", "codes": {}}))
    runs = RECORDED / "runs" / RUN
    code, _, err = out(
        "label", "import", "bad.json", "good.json", "far.json", "--store", "s.db", "--runs", runs
    )
    assert code == 1
    assert f"bad.json: {message}" in err or message in err
    assert "2 labels added, 0 already stored, 1 left out" in err
    assert "1 label not checked" in err
    assert "not labelled: S1a, S1b, S1c, S2a" in err, "S1d to S1f are the tier's"


def test_labels_by_a_rubric_of_ones_own_are_held_against_it(out, tmp_path: Path) -> None:
    text = out("rubric", "new", "detection")[1].replace("S1a", "S1q")
    _put(tmp_path, "mine.yaml", text)
    _put(tmp_path, "ambjudge.toml", 'rubric = "mine.yaml"\n')
    _put(tmp_path, "own.json", json.dumps({"run": RUN, "criteria": {"S1q": 1}}))
    code, _, err = out(
        "label", "import", "own.json", "--store", "s.db", "--runs", RECORDED / "runs" / RUN
    )
    assert (code, "1 label added" in err) == (0, True), err


# Forms


def fill_in(form: str, labels: Mapping[str, Any]) -> str:
    """A form as a person leaves it who writes an answer behind every colon."""
    answers: dict[str, Any] = {
        f"  {id}:": value for id, value in labels.get("criteria", {}).items()
    }
    answers |= {f"  {turn}:": stage for turn, stage in labels.get("stages", {}).items()}
    answers |= {f"{name}:": labels[name] for name in ("codes", "evidence") if name in labels}
    lines = []
    for line in form.splitlines():
        answer = answers.pop(line, None)
        lines.append(line if answer is None else f"{line} {json.dumps(answer)}")
    assert not answers, f"no place for {answers}"
    return "\n".join(lines)


@pytest.fixture
def recorded_form(out) -> Path:
    """The form of a recorded run."""
    code, card, _ = out("score", RECORDED / "runs" / RUN, "--json")
    assert code == 0
    Path("cards.jsonl").write_text(card, encoding="utf-8")
    code, _, err = out("label", "next", "cards.jsonl", "--out", "todo", "--annotator", "gold")
    assert (code, "wrote 1 form below todo; then: ambjudge label import todo" in err) == (0, True)
    return Path("todo") / "gold" / f"{RUN}.yaml"


def test_a_form_says_all_that_a_person_needs(recorded_form: Path) -> None:
    text = recorded_form.read_text("utf-8")
    words = " ".join(" ".join(line.strip(" #") for line in text.splitlines()).split())
    card = json.loads(Path("cards.jsonl").read_text("utf-8"))
    rubric = load_rubric(card["rubric"]["id"])
    for criterion in rubric.criteria():
        if "lite" in criterion.credit:
            assert f"\n  {criterion.id}:" not in text
            continue
        assert f"\n  {criterion.id}:\n" in text
        assert " ".join(criterion.text.split()) in words
        for level in criterion.scale:
            assert f"{level.value:g}: {' '.join(level.text.split())}" in words
    assert f"Where to look: {card['run']['path']}" in words
    assert "The tier decides S1d, S1e, S1f: nothing to label." in words
    assert all(len(line) <= 100 for line in text.splitlines() if "Where to look" not in line)
    stages = text[text.index("\nstages:") : text.index("\nnotes:")]
    assert stages.split() == ["stages:", *(f"{turn}:" for turn in range(1, 10))]
    for code in card["codes"]:
        assert not any(claim["quote"] in words for claim in code.get("evidence", []) if claim)
    assert "rationale" not in words


def test_a_form_filled_in_is_the_label(out, recorded_form: Path) -> None:
    gold = json.loads((RECORDED / "labels" / "gold" / f"{RUN}.json").read_text("utf-8"))
    criteria = {id: v for id, v in gold["criteria"].items() if id not in ("S1d", "S1e", "S1f")}
    labelled = {**gold, "criteria": criteria}
    recorded_form.write_text(fill_in(recorded_form.read_text("utf-8"), labelled), "utf-8")
    code, _, err = out(
        "label", "import", "todo", "--store", "s.db", "--runs", RECORDED / "runs" / RUN
    )
    assert (code, "1 label added" in err, "not labelled" in err) == (0, True, False), err
    assert out("label", "export", "--store", "s.db", "--out", "away")[0] == 0
    exported = json.loads(Path(f"away/gold/{RUN}.json").read_text("utf-8"))
    assert exported["drawn"]["probability"] == 1.0
    for name in ("stages", "criteria", "codes", "evidence"):
        assert exported[name] == labelled[name], name


def test_a_form_half_filled_in_says_what_is_left(out, recorded_form: Path) -> None:
    form = recorded_form.read_text("utf-8")
    assert (
        f"nothing filled in ({recorded_form})"
        in out("label", "import", "todo", "--store", "s.db")[2]
    )
    half = fill_in(form, {"criteria": {"S1a": 0, "S2a": 1}, "stages": {"1": "S1", "2": "S1"}})
    recorded_form.write_text(half, "utf-8")
    code, _, err = out("label", "import", "todo", "--store", "s.db")
    assert (code, "1 label added, 0 already stored, 0 left out" in err) == (0, True)
    gaps = "S1b, S1c, S2b, S2c, S2d, S2e, S3, stages of turns 3-9, codes"
    assert f"not labelled: {gaps} ({recorded_form})" in err
    rows = json.loads(out("agreement", "cards.jsonl", "--labels", "todo", "--json")[1])["rows"]
    assert {row["item"] for row in rows} == {"S1a", "S2a"}
    code, _, err = out("label", "next", "cards.jsonl", "--out", "todo", "--annotator", "gold")
    assert (code, "no form written: every run is drawn already" in err) == (0, True)
    assert recorded_form.read_text("utf-8") == half
    whole = fill_in(half, {"criteria": {"S1b": 0}, "codes": {}})
    recorded_form.write_text(whole, "utf-8")
    assert "1 label added" in out("label", "import", "todo", "--store", "s.db")[2], "it replaces"
    with open_store("s.db") as store:
        (labels,) = stored_labels(store)
    assert labels.criteria == {"S1a": 0, "S1b": 0, "S2a": 1}


def test_forms_in_one_file_are_added_to(out, tmp_path: Path) -> None:
    args = ("label", "next", CARDS, "--out", "todo.yaml", "-n", "2")
    assert out(*args)[0] == out(*args)[0] == 0
    runs = [entry["run"] for entry in yaml.safe_load(Path("todo.yaml").read_text("utf-8"))]
    assert len(runs) == len(set(runs)) == 4, "the second call draws from the others"
    code, _, err = out("label", "import", "todo.yaml", "--store", "s.db")
    assert (code, err.count("todo.yaml:")) == (0, 3), "three are named and one is counted"
    for name, content, words in (
        ("one.yaml", "run: x\n", "holds a label and no list"),
        ("bad.yaml", "run:x\ncodes: {}", "bad.yaml:1: no space after the colon"),
        ("todo.json", "", "name a folder or a .yaml file"),
    ):
        if content:
            Path(name).write_text(content, encoding="utf-8")
        code, _, err = out("label", "next", CARDS, "--out", name, "-n", "2")
        assert (code, words in err) == (2, True), err


def test_a_form_without_the_rubrics_text_or_with_another_version_says_so(out) -> None:
    card = json.loads(CARDS.read_text("utf-8").splitlines()[0])
    forms = []
    for id, version in ((card["rubric"]["id"], "0.1"), ("mine", "3")):
        card["rubric"] |= {"id": id, "version": version}
        Path(f"{id}.jsonl").write_text(json.dumps(card), encoding="utf-8")
        assert out("label", "next", f"{id}.jsonl", "--out", f"{id}.yaml")[0] == 0
        text = Path(f"{id}.yaml").read_text("utf-8")
        assert "\n    S1a:\n" in text
        forms.append(" ".join(text.split()))
    assert "was scored by rubric detection 0.1; these are the questions of detection " in forms[0]
    assert "The text of rubric mine 3 is not at hand" in forms[1]


_HOSTILE = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=40)


@given(run=_HOSTILE, task=st.none() | _HOSTILE, path=_HOSTILE)
@settings(max_examples=100, deadline=None)
def test_no_name_breaks_a_form(
    tmp_path_factory: pytest.TempPathFactory, run: str, task: str | None, path: str
) -> None:
    try:
        labels = parse_labels({"run": run, "drawn": {"probability": 0.25, "stratum": task}})
    except InputError:
        return
    rubric = load_rubric("vqa")
    form = label_form(labels, FormRun(path, task, "lite", 3, rubric))
    file = tmp_path_factory.mktemp("form") / "form.yaml"
    file.write_text(form, encoding="utf-8")
    (entry,) = each_label(file)
    assert entry.labels == labels
    assert not entry.labels.has_labels


# The demo, and a journey


@pytest.fixture
def demo(out, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The demo's folder as the place to work in, scored."""
    assert out("demo", "--out", "demo")[0] == 0
    monkeypatch.chdir(tmp_path / "demo")
    monkeypatch.delenv("AMBJUDGE_STORE")
    assert out("-q", "score", "runs")[0] == 0
    return tmp_path / "demo"


def _demo_labels(demo: Path) -> dict[str, dict[str, Any]]:
    files = (demo / "labels").glob("*.json")
    return {path.stem: json.loads(path.read_text("utf-8")) for path in files}


def test_the_demos_labels_are_drawn_as_they_say_and_are_taken(out, demo: Path) -> None:
    plan = json.loads(out("label", "next", "runs", "-n", "16", "--json")[1])
    drawn = {
        row["run_id"]: {
            "probability": row["probability"],
            "stratum": row["stratum"],
            "size": row["stratum_size"],
        }
        for row in plan
    }
    assert {run: labels["drawn"] for run, labels in _demo_labels(demo).items()} == drawn
    code, _, err = out("label", "import", "labels", "--runs", "runs")
    assert (code, "16 labels added, 0 already stored, 0 left out" in err) == (0, True), err


def test_labels_by_hand_give_the_same_numbers_wherever_they_lie(
    out, demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Draw, fill in, import, export, compare, correct: the forms hold what the demo's person
    says."""
    assert out("label", "next", "runs", "-n", "16", "--out", "todo")[0] == 0
    labels = _demo_labels(demo)
    for run, label in labels.items():
        form = Path("todo/a1") / f"{run}.yaml"
        form.write_text(fill_in(form.read_text("utf-8"), label), encoding="utf-8")
    code, _, err = out("label", "import", "todo", "--runs", "runs")
    assert (code, "16 labels added" in err) == (0, True), err
    assert "not labelled: stages (" in err
    store = Path(".ambjudge/ambjudge.db")
    assert out("label", "export", "--out", "away")[0] == 0
    for run, label in labels.items():
        exported = Path("away/a1") / f"{run}.json"
        assert exported.read_text("utf-8") == dump_labels(parse_labels(label))

    places = ("labels", "todo", "away", store)
    agreements = [
        json.loads(out("agreement", "runs", "--labels", place, "--json")[1]) for place in places
    ]
    analyses = [
        json.loads(out("analyze", "runs", "--labels", place, "--json")[1]) for place in places
    ]
    assert all(agreement == agreements[0] for agreement in agreements)
    tables = [analysis["tables"] for analysis in analyses]
    names = ("agreement", "corrected_leaderboard", "corrected_effects", "leaderboard", "label_plan")
    for name in names:
        assert all(table[name] == tables[0][name] for table in tables), name

    # S1b of elm-tiles-5 alone differs, which stands for 2 of the 30 runs; facts decide it for
    # those without a plan, which stand for 31/6 of them.
    (raw,) = [
        row
        for row in agreements[0]["rows"]
        if (row["item"], row["coefficient"]) == ("S1b", "agreement")
    ]
    assert raw["value"] == pytest.approx(1 - 2 / (30 - 31 / 6))
    assert raw["n"] == len(labels) - 3
    corrected = [
        row
        for row in tables[0]["corrected_leaderboard"]["rows"]
        if row["kind"] == "corrected" and row["lo"] is not None
    ]
    assert {row["agent"] for row in corrected} == {"agent-ash", "agent-elm"}
    assert all(row["lo"] < row["value"] < row["hi"] for row in corrected)

    text = out("analyze", "runs", "--labels", "todo")[1]
    table = ("--table", "corrected_leaderboard")
    assert out("analyze", "runs", "--labels", "away", *table, "--out", "report")[0] == 0
    report = Path("report/report.html").read_text("utf-8")
    first = max(corrected, key=lambda row: row["value"])
    assert f"corrected by labels, {first['value']:.1f}" in " ".join(text.split())
    for row in corrected:
        interval = f"[{row['lo']:.1f}, {row['hi']:.1f}]"
        assert interval in text
        assert interval in report

    import ambjudge

    cohort = ambjudge.analysis.cohort(store)
    table = ambjudge.analysis.agreement(cohort, ambjudge.analysis.read_labels("todo"))
    by_python = {
        (row["item"], row["coefficient"]): row["value"] for row in table.iter_rows(named=True)
    }
    for row in agreements[0]["rows"]:
        assert by_python[row["item"], row["coefficient"]] == pytest.approx(row["value"])

    monkeypatch.setenv("AMBJUDGE_ASK_ALL", "true")
    gain = json.loads(out("selftest", "runs", "--labels", "away", "--json")[1])["gain"]
    differing = sum(
        label != verdict["value"]
        for run, entry in labels.items()
        for stage in ("S1", "S2", "S3")
        for id, verdict in json.loads(Path(f"answers/{run}.json").read_text("utf-8"))[stage].items()
        for label in [entry["criteria"][id]]
    )
    assert (gain["pairs"], gain["equal"]) == (16 * 9, 16 * 9 - differing)
    sentence = " ".join(out("selftest", "runs", "--labels", "todo")[1].split())
    assert f"in {gain['equal']} of {gain['pairs']} criteria of 16 runs" in sentence
