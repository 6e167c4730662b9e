"""analyze, leaderboard, agreement and simulate as a user runs them."""

from __future__ import annotations

import json
import re
import shutil
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from ambjudge.analysis.simulated.simulation import Settings, settings_of
from ambjudge.analysis.tables.number_format import number
from ambjudge.cli import run
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "tests" / "data" / "recorded"
SIZES = ("agents=3", "tasks=4", "tracks=2", "repeats=3")
SMALL = tuple(word for size in SIZES for word in ("--set", size))


@pytest.fixture(scope="module")
def cards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("simulated") / "cards.jsonl"
    assert run(["-q", "simulate", "--out", str(path), "--seed", "4", *SMALL]) == 0
    return path


# simulate


def test_simulate_writes_scorecards_and_the_truth(out, tmp_path) -> None:
    code, text, err = out("simulate", "--out", "new/cards.jsonl", "--seed", "4", *SMALL)
    assert (code, text) == (0, "")
    assert "wrote 72 scorecards" in err
    assert len((tmp_path / "new" / "cards.jsonl").read_text("utf-8").splitlines()) == 72
    truth = json.loads((tmp_path / "new" / "cards.jsonl.truth.json").read_text("utf-8"))
    assert truth["seed"] == 4
    assert truth["effects"]["E5"]["ate"] < truth["effects"]["E3"]["ate"] < 0


def test_simulate_is_the_same_for_the_same_seed_and_goes_to_stdout(out, cards) -> None:
    assert out("simulate", "--seed", "4", *SMALL)[1] == cards.read_text("utf-8")
    assert out("simulate", "--seed", "5", *SMALL)[1] != cards.read_text("utf-8")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        pytest.param(["--preset", "papr"], "unknown preset 'papr'", id="preset"),
        pytest.param(["--set", "halo"], "--set halo: is not NAME=NUMBER", id="no number"),
        pytest.param(["--set", "hallo=1"], "unknown switch 'hallo'", id="switch"),
    ],
)
def test_simulate_errors_are_one_line_with_what_to_do(out, args: list[str], message: str) -> None:
    code, text, err = out("simulate", *args)
    assert (code, text) == (2, "")
    assert message in err
    assert len(err.splitlines()) <= 2


ODD_NUMBERS = (
    *("0", "1", "2", "3", "5", "-1", "0.5", "1.5", "1e3", "50", "-50", "51", "1e-9", "-0.0"),
    *("nan", "inf", "-inf", "1e400", "9" * 30, "-" + "9" * 400, "1_0", "²", "", "x", "1,2", "(1,)"),
)
PLAIN_SIZES = {"n_agents": "agents", "n_tasks": "tasks", "n_tracks": "tracks", "n_rep": "repeats"}
SWITCHES = [PLAIN_SIZES.get(name, name) for name in Settings.__dataclass_fields__]


@pytest.mark.parametrize("preset", ["paper", "halo"])
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(name=st.sampled_from(SWITCHES), number=st.sampled_from(ODD_NUMBERS))
@example(name="ability", number="0")
@example(name="tiers", number="2")
@example(name="spec", number="1")
@example(name="spec", number="-0.0")
@example(name="slope_sd", number="10")
def test_any_switch_with_any_number_is_a_cohort_or_an_error_of_one_line(
    out, preset, name, number
) -> None:
    small = ("agents=2", "tasks=2", "repeats=2", f"{name}={number}")
    switches = [word for size in small for word in ("--set", size)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        code, text, err = out("simulate", "--preset", preset, *switches)
    if code == 2:
        assert text == ""
        assert len(err.splitlines()) <= 2
        assert err.startswith("ambjudge: error: ")
        assert name in err
        return
    assert (code, err) == (0, "")
    overall = [json.loads(line)["overall"] for line in text.splitlines()]
    assert overall
    assert all(0 <= score <= 100 for score in overall)


def test_one_number_stands_for_all_agents_and_tiers_are_counted(out) -> None:
    assert settings_of(ability=0, n_agents=8).ability == (0.0,) * 8
    assert settings_of(tiers=2).tiers == ("lite", "standard")
    assert settings_of(sens=1).sens == (1.0,) * 5
    text = out("simulate", "--set", "tiers=1", "--set", "tasks=2", "--set", "repeats=1")[1]
    assert {json.loads(line)["run"]["tier"] for line in text.splitlines()} == {"lite"}


# analyze


def test_analyze_without_out_says_the_main_things(out, cards) -> None:
    code, text, err = out("analyze", cards)
    assert (code, err) == (0, "")
    assert "has the highest mean Overall" in text
    assert "Effects of codes on Overall" in text
    assert "--out DIR" in text


def test_analyze_out_writes_a_report_that_is_analysed_again(out, cards, tmp_path) -> None:
    code, text, err = out("analyze", cards, "--out", "made/here", "--title", "Ours")
    assert (code, text) == (0, "")
    assert "open made/here/report.html" in err
    html = (tmp_path / "made" / "here" / "report.html").read_text("utf-8")
    assert "<title>Ours</title>" in html
    assert (tmp_path / "made" / "here" / "figures" / "leaderboard.svg").exists()
    runs = tmp_path / "made" / "here" / "tables" / "runs.parquet"
    assert pl.read_parquet(runs).height == 72
    assert json.loads(out("analyze", runs, "--table", "cohort", "--json")[1])["runs"] == 72


def test_analyze_json_is_one_object_with_all_tables(out, cards) -> None:
    code, text, err = out("analyze", cards, "--json")
    assert (code, err) == (0, "")
    tables = json.loads(text)["tables"]
    assert {"leaderboard", "code_effects", "cliff", "clusters"} <= set(tables)
    assert {"estimand", "population", "n", "df", "method", "warnings"} <= set(
        tables["cliff"]["rows"][0]
    )


def test_analyze_one_table(out, cards) -> None:
    code, text, _ = out("analyze", cards, "--table", "cliff", "--table", "cohort")
    assert code == 0
    assert "Overall (0–100) by number of fired codes" in text
    assert "leads with" not in text


def test_analyze_reads_folders(out, cards, tmp_path) -> None:
    (tmp_path / "b").mkdir()
    shutil.copy(cards, tmp_path / "b")
    found = out("analyze", tmp_path / "b", "--table", "cohort", "--json")
    assert json.loads(found[1])["runs"] == 72


def test_analyze_runs_with_labels_scores_them_first(out) -> None:
    code, text, _ = out(
        "-q",
        "analyze",
        RECORDED / "runs",
        "--labels",
        RECORDED / "labels",
        "--table",
        "agreement",
        "--table",
        "corrected_leaderboard",
        "--table",
        "clusters",
        "--json",
    )
    tables = json.loads(text)["tables"]
    assert code == 0
    assert {row["item"] for row in tables["agreement"]["rows"]} >= {"S1a", "S3", "E3", "E5"}
    assert tables["corrected_leaderboard"]["rows"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        pytest.param(["nowhere"], "no such file or folder", id="no path"),
        pytest.param(["."], "holds neither scorecards nor runs", id="empty folder"),
        pytest.param(["CARDS", "--table", "clif"], "unknown table 'clif'", id="table"),
        pytest.param(["CARDS", "--labels", "nowhere"], "no such file or folder", id="labels"),
        pytest.param(["CARDS", "--out", "CARDS"], "cannot be written", id="out is a file"),
    ],
)
def test_analyze_errors_are_one_line_with_what_to_do(
    out, cards, args: list[str], message: str
) -> None:
    code, text, err = out("analyze", *(str(cards) if a == "CARDS" else a for a in args))
    assert (code, text) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1


RUN_OPTIONS = [
    pytest.param(
        ["--policy", "own.toml"],
        "",
        {"missing_policy": {"zero"}, "breach_policy": {"from-stage"}},
        id="policy file",
    ),
    pytest.param(
        ["--policy", "harness"], "", {"missing_policy": {"zero", "renormalize"}}, id="harness"
    ),
    pytest.param(
        ["--rubric", "segmentation"], "", {"rubric": {"segmentation", "workflow"}}, id="rubric"
    ),
    pytest.param(
        [],
        'track = "vqa"\ntier = "pro"\npolicy = "harness"\n',
        {"track": {"vqa"}, "tier": {"pro"}, "missing_policy": {"zero", "renormalize"}},
        id="settings",
    ),
]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two runs: one with and one without a track and a tier of its own."""
    shutil.copytree(RECORDED / "runs" / "kidney-lite-04", tmp_path / "runs" / "kidney-lite-04")
    place = tmp_path / "runs" / "bare" / "process"
    place.mkdir(parents=True)
    (place / "conversation.json").write_text('[{"role": "assistant", "content": "done"}]', "utf-8")
    return tmp_path / "runs"


@pytest.mark.parametrize(("options", "settings", "expected"), RUN_OPTIONS)
def test_runs_are_scored_as_options_and_settings_say(
    out, runs: Path, options: list, settings: str, expected: dict
) -> None:
    Path("own.toml").write_text('missing = "zero"\nbreach = "from-stage"\n', "utf-8")
    Path("ambjudge.toml").write_text(settings, "utf-8")
    code, _, err = out("analyze", runs, "--table", "cohort", "--out", "report", *options)
    assert (code, err.splitlines()[0]) == (0, "2 runs scored by the rules judge")
    found = pl.read_parquet("report/tables/runs.parquet")
    own = found.filter(pl.col("run_id") == "kidney-lite-04")
    assert own.select("track", "tier").row(0) == ("segmentation", "lite")
    for column, values in expected.items():
        rest = (
            found
            if column.endswith("policy") or column == "rubric"
            else found.filter(pl.col("run_id") == "bare")
        )
        assert set(rest[column]) == values
    assert out("leaderboard", runs, *options)[0] == 0


def test_public_inputs_reach_the_checks(out, runs: Path, monkeypatch) -> None:
    monkeypatch.setenv("AMBJUDGE_PUBLIC", str(RECORDED / "public"))
    _, text, _ = out("export", runs, "--what", "scorecards")
    card = json.loads(text.splitlines()[1])
    assert card["stages"]["S4"]["checks"]["cases_from"] == "public"


@pytest.mark.parametrize("command", ["analyze", "leaderboard", "export"])
def test_options_for_scoring_say_when_nothing_was_scored(out, cards, command: str) -> None:
    code, text, err = out(command, cards, "--policy", "harness")
    assert code == 0
    assert text
    assert err == "--policy: no effect, as scorecards keep the policy that they were scored with\n"
    assert out("-q", command, cards, "--policy", "harness")[2] == ""


@pytest.mark.parametrize(
    ("options", "settings", "message"),
    [
        pytest.param([], 'public = "/nowhere"', "/nowhere: no such folder", id="public"),
        pytest.param(["--rubric", "nowhere"], "", "nowhere", id="rubric"),
        pytest.param(["--policy", "nowhere"], "", "unknown policy 'nowhere'", id="policy"),
        pytest.param(["--policy", "no.toml"], "", "no.toml: no such file", id="policy file"),
        pytest.param([], 'track = "nonsense"', "unknown track 'nonsense'", id="track"),
    ],
)
def test_wrong_options_for_scoring_are_one_line(
    out, runs: Path, options: list[str], settings: str, message: str
) -> None:
    Path("ambjudge.toml").write_text(settings, "utf-8")
    code, text, err = out("analyze", runs, *options)
    assert (code, text) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1


def test_simulated_cards_have_no_quotes_to_miss(out, cards) -> None:
    for command in ("leaderboard", "analyze"):
        assert "quotes" not in out(command, cards)[1]
    verdicts = [
        result["value"]
        for line in cards.read_text("utf-8").splitlines()
        for stage in json.loads(line)["stages"].values()
        for result in stage["criteria"]
    ]
    assert 1 in verdicts, "of a model these would be met without a quote"


# leaderboard


def test_leaderboard_has_intervals_and_ranks(out, cards) -> None:
    sizes = ("agents=2", "tasks=8", "tracks=2", "repeats=2")
    more_tasks = [word for size in sizes for word in ("--set", size)]
    assert out("simulate", "--out", "more.jsonl", *more_tasks)[0] == 0
    code, text, err = out("leaderboard", "more.jsonl")
    assert (code, err) == (0, "")
    assert "All tracks, by Overall (0–100)" in text
    assert "Track vqa" in text
    assert "95 %, new tasks" in text
    assert "ranks" in text
    few_tasks = out("leaderboard", cards)[1]
    assert "4 tasks of several tracks or of unequal weight are too few" in few_tasks
    assert not {"95 %, new tasks", "ranks"} & set(re.split(r"  +|\n", few_tasks))


def test_leaderboard_by_task_and_by_stage_score(out, cards) -> None:
    code, text, _ = out("leaderboard", cards, "--by", "task", "--outcome", "S3")
    assert code == 0
    assert text.count("Task ") >= 4
    assert "Track" not in text


@pytest.mark.parametrize(
    ("name", "value_of"),
    [
        pytest.param("turns", lambda used: used["turns"], id="turns"),
        pytest.param("time", lambda used: used["wall_time_s"], id="time"),
        pytest.param("cost", lambda used: used["cost_usd"], id="cost"),
        pytest.param(
            "tokens", lambda used: used["input_tokens"] + used["output_tokens"], id="tokens"
        ),
        pytest.param("failed_calls", lambda used: used["failed_calls"], id="failed-calls"),
    ],
)
def test_leaderboard_of_what_runs_took(out, cards, name: str, value_of) -> None:
    """All cells have as many runs, so that means of means are means of runs."""
    used: dict[str, list[float]] = {}
    for line in cards.read_text("utf-8").splitlines():
        card = json.loads(line)
        used.setdefault(card["run"]["agent"], []).append(value_of(card["resources"]))
    board = ("leaderboard", cards, "--outcome", name, "--by", "overall")
    rows = json.loads(out(*board, "--json")[1])["rows"]
    for row in rows:
        assert row["value"] == pytest.approx(np.mean(used[row["agent"]]))
        assert row["population"] != "same" or row["lo"] < row["value"] < row["hi"]
    text = " ".join(out(*board)[1].split())
    over_all = number(float(np.mean(list(used.values()))))
    assert re.search(rf"Mean .* over all runs: {over_all} \(95 % interval \[", text)


def test_leaderboard_json_has_both_populations(out, cards) -> None:
    rows = json.loads(out("leaderboard", cards, "--by", "overall", "--json")[1])["rows"]
    assert {row["population"] for row in rows} == {"new", "same"}
    assert len(rows) == 6


def test_leaderboard_of_ratings_fits_a_narrow_terminal(terminal) -> None:
    code, text = terminal(
        "leaderboard",
        "--ratings",
        str(RECORDED / "runs"),
        str(RECORDED.parent / "layouts"),
        COLUMNS="80",
        NO_COLOR="1",
    )
    assert code == 0
    heads, *_ = (
        line for line in text.splitlines() if line.startswith("agent ") and "estimate" in line
    )
    assert {"estimate", "resolved", "valid", "breach"} <= set(re.split(r"  +", heads))
    assert "(80 columns: without " in text, "what there is no room for is named"
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize(
    ("columns", "displayed"),
    [
        pytest.param(100, {"Agentic", "Task", "failure rate", "cost, $"}, id="100 columns"),
        pytest.param(80, {"Agentic", "Task"}, id="80 columns"),
    ],
)
def test_a_narrow_board_keeps_what_is_worth_most(terminal, cards, columns, displayed) -> None:
    code, text = terminal("leaderboard", str(cards), COLUMNS=str(columns), NO_COLOR="1")
    assert code == 0
    heads = [set(re.split(r"  +", line)) for line in text.splitlines() if line.startswith("rank ")]
    assert heads
    for head in heads:
        assert {"rank", "agent", "estimate"} | displayed <= head
        assert any(name.startswith("95 %") for name in head)
    assert max(map(len, text.splitlines())) <= columns
    assert "missing as" not in text, "no run is without a score"


def test_one_judge_of_several_is_chosen(out, cards, tmp_path) -> None:
    second = [json.loads(line) for line in cards.read_text("utf-8").splitlines()[:30]]
    for card in second:
        card["judge"]["name"] = "other"
    (tmp_path / "other.jsonl").write_text("\n".join(map(json.dumps, second)), "utf-8")
    err = out("leaderboard", cards, "other.jsonl")[2]
    assert "scorecards of judge simulated" in err
    assert "left out: 30 of other judges (--judged-by and --rubric choose)" in err
    code, text, err = out("leaderboard", cards, "other.jsonl", "--judged-by", "other", "--json")
    assert code == 0
    assert "left out: 72 of other judges (42 runs that other did not judge)" in err
    assert (
        sum(
            r["n"]
            for r in json.loads(text)["rows"]
            if (r["scope"], r["population"]) == ("overall", "new")
        )
        == 30
    )
    found = json.loads(
        out("analyze", cards, "other.jsonl", "--judged-by", "other", "--json", "--table", "cohort")[
            1
        ]
    )
    assert found["runs"] == 30
    assert out("-q", "export", "other.jsonl", "--out", "other.parquet")[0] == 0
    mixed = json.loads(
        out(
            "analyze", cards, "other.parquet", "--judged-by", "other", "--json", "--table", "cohort"
        )[1]
    )
    assert mixed["runs"] == 30
    for command in ("leaderboard", "analyze"):
        code, text, err = out(command, cards, "other.jsonl", "--judged-by", "third")
        assert (code, text) == (2, "")
        assert "no scorecards of judge 'third' (choose from other, simulated)" in err
        code, _, err = out(command, cards, "--judge", "other")
        assert code == 2
        assert "--judged-by other" in err, "--judge has runs judged, everywhere"


# agreement


@pytest.mark.parametrize("tasks", [3, 8])
def test_agreement_names_its_methods_or_says_that_tasks_are_too_few(out, tmp_path, tasks) -> None:
    sizes = [word for size in (f"tasks={tasks}", "tracks=1") for word in ("--set", size)]
    assert out("simulate", "--out", "one.jsonl", *SMALL, *sizes)[0] == 0
    lines = (tmp_path / "one.jsonl").read_text("utf-8").splitlines()
    second = [json.loads(line) for line in lines]
    for place, card in enumerate(second):
        card["judge"]["name"] = "other"
        criterion = card["stages"]["S2"]["criteria"][place % 5]
        criterion["value"] = 1 - criterion["value"]
    (tmp_path / "two.jsonl").write_text("\n".join(map(json.dumps, second)), "utf-8")
    code, text, _ = out("agreement", "one.jsonl", "two.jsonl")
    assert code == 0
    notes = " ".join(text.split())
    if tasks == 3:
        assert "No interval for every item: 3 tasks are too few for an interval" in notes
        assert "[" not in text
    else:
        assert "95 % intervals. Agreement, Sensitivity, Specificity: Wilson" in notes
        assert "t on Fisher's z, jackknife over tasks" in notes


def test_agreement_with_people(out) -> None:
    code, text, _ = out("-q", "agreement", RECORDED / "runs", "--labels", RECORDED / "labels")
    assert code == 0
    assert "against labels of gold" in text
    assert "AC1" in text
    assert "the rarer value occurs fewer than five times" in text


@pytest.mark.parametrize("raters", ["labels", "judges", "annotators"])
def test_agreement_counts_what_has_no_counterpart(out, cards, tmp_path, raters) -> None:
    lines = cards.read_text("utf-8").splitlines()
    runs = [json.loads(line)["run"]["id"] for line in lines]
    names = {"gold": [*runs[:10], "elsewhere"], "a2": [*runs[4:6], *runs[30:40]]}
    labels = [
        {"run": name, "annotator": annotator, "criteria": {"S3": 1}, "codes": {}}
        for annotator, labelled in names.items()
        for name in labelled
    ]
    (tmp_path / "l.jsonl").write_text("\n".join(map(json.dumps, labels)), "utf-8")
    other = [line.replace('"simulated"', '"other"') for line in lines[:30]]
    (tmp_path / "other.jsonl").write_text("\n".join(other), "utf-8")
    commands = {
        "labels": (cards, "--labels", "l.jsonl"),
        "judges": (cards, "other.jsonl"),
        "annotators": ("--labels", "l.jsonl", "--annotator", "gold", "--against", "a2"),
    }
    sentences = {
        "labels": [
            f"10 of {len(runs)} scored runs have labels of gold; the others are left out.",
            "1 labelled run without a scorecard here is left out: elsewhere.",
        ],
        "judges": [
            f"30 runs of both; left out are 0 runs of other alone and {len(runs) - 30} runs of"
            " simulated alone."
        ],
        "annotators": [
            "2 runs of both; left out are 9 runs of annotator gold alone and 10 runs of annotator"
            " a2 alone."
        ],
    }
    text = " ".join(out("agreement", *commands[raters])[1].split())
    values = json.loads(out("agreement", *commands[raters], "--json")[1])["left_out"].values()
    for sentence in sentences[raters]:
        assert sentence in text
        assert any(sentence in value for value in values)


def test_agreement_between_annotators_needs_no_runs(out) -> None:
    code, text, _ = out(
        "agreement", "--labels", RECORDED / "labels", "--annotator", "a1", "--against", "a2"
    )
    assert code == 0
    assert text.startswith("Annotator a1 against a2")


def test_agreement_between_judges(out, cards, tmp_path) -> None:
    other = tmp_path / "other.jsonl"
    lines = []
    for line in cards.read_text("utf-8").splitlines():
        card = json.loads(line)
        card["judge"]["name"] = "other"
        lines.append(json.dumps(card))
    other.write_text("\n".join(lines), "utf-8")
    code, text, _ = out("agreement", cards, other, "--json")
    rows = json.loads(text)["rows"]
    assert code == 0
    assert {(row["first"], row["second"]) for row in rows} == {("other", "simulated")}
    assert {row["value"] for row in rows if row["coefficient"] == "agreement"} == {1.0}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        pytest.param(["CARDS"], "nothing to compare", id="one judge"),
        pytest.param(
            ["CARDS", "--labels", "LABELS"], "nothing to compare", id="labels of other runs"
        ),
        pytest.param(
            ["CARDS", "--labels", "LABELS", "--annotator", "zz"],
            "no labels of annotator 'zz'",
            id="annotator",
        ),
        pytest.param(
            ["CARDS", "--labels", "LABELS", "--judged-by", "zz"],
            "no scorecards of judge 'zz'",
            id="judge",
        ),
        pytest.param(["--against", "a2"], "no labels given", id="no labels"),
    ],
)
def test_agreement_errors_say_what_to_do(out, cards, args: list[str], message: str) -> None:
    places = {"CARDS": str(cards), "LABELS": str(RECORDED / "labels")}
    code, text, err = out("agreement", *(places.get(a, a) for a in args))
    assert (code, text) == (2, "")
    assert message in err
    assert err.startswith("ambjudge: error: ")
    assert err.endswith(")\n")
