"""The commands as a user runs them: output, JSON contract, exit codes, and errors of one line."""

from __future__ import annotations

import json
import shutil
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
from ambjudge.commands.registry import COMMANDS
from batch_server import BatchServer

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
RECORDED = ROOT / "tests" / "data" / "recorded"
CODES = ("E1", "E2", "E3", "E4", "E5")


def lines(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def schema() -> dict:
    return json.loads((files("ambjudge.judge.card") / "scorecard.schema.json").read_text("utf-8"))


# score


def test_score_one_run_shows_scores_reasons_and_codes(out) -> None:
    code, text, err = out("score", EXAMPLES / "codes")
    assert (code, err) == (0, "")
    assert "kidney-seg-task" in text
    assert "S4 Inference   0.19" in text
    assert "completion 0.38 (3 of 8 cases), ✗ format invalid, from the files" in text
    assert "Overall ~38.9 [15.7–38.9]" in text, "some of it is presumed"
    assert (
        "~  the scores rest on presumed criteria (38% of the weight of the criteria was judged)"
        in text
    )
    for fired in ("E4", "E5"):
        assert f"  {fired} S" in text
    assert "patient_00000004: lesion.nii.gz is missing" in text


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("examples/codes", id="run folder"),
        pytest.param("examples/codes/process/conversation.json", id="conversation file"),
        pytest.param("examples/codes/process", id="process folder"),
    ],
)
def test_score_json_is_one_object_that_obeys_the_schema(out, path: str) -> None:
    code, text, _ = out("score", ROOT / path, "--json")
    assert code == 0
    (card,) = lines(text)
    jsonschema.validate(card, schema())
    assert card["schema"] == "ambjudge.scorecard/1"
    assert card["run"]["id"] == "codes"
    assert card["overall"] == 38.91
    assert card["stages"]["S4"]["checks"]["source"] == "files"
    assert len(card["turn_stages"]) == card["run"]["turns"] == 7


def test_score_disqualified_run_is_zero_by_policy_but_shows_what_was_done(out) -> None:
    _, text, _ = out("score", EXAMPLES / "disqualified", "--json")
    (card,) = lines(text)
    assert card["overall"] == 0
    assert {s["method"] for s in card["stages"].values()} == {"policy"}
    assert card["status"] == {
        **card["status"],
        "disqualified": True,
        "ended": "breach",
        "violations": 2,
    }
    assert card["policy"]["breach"] == "zero-all"
    assert any(c["value"] == 1 for c in card["stages"]["S1"]["criteria"])
    assert card["resources"]["cost_usd"] == 0.1312
    Path("policy.toml").write_text('breach = "from-stage"\n', encoding="utf-8")
    _, text, _ = out("score", EXAMPLES / "disqualified", "--json", "--policy", "policy.toml")
    (later,) = lines(text)
    assert later["stages"]["S1"]["score"] == 1
    assert later["stages"]["S4"]["score"] == 0
    assert later["overall"] > 0


# Errors: one line on stderr, nothing on stdout


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        pytest.param(["score", "nowhere.json"], 2, "no such file or folder", id="missing file"),
        pytest.param(["score", "."], 2, "holds no conversation.json", id="folder without runs"),
        pytest.param(["score"], 2, "Missing argument", id="no argument"),
        pytest.param(["scor"], 2, "did you mean 'score'", id="misspelt command"),
        pytest.param(["score", ".", "--tier", "gold"], 2, "'gold' is not one of", id="bad choice"),
        pytest.param(["score", ".", "--track", "gold"], 2, "unknown track 'gold'", id="bad track"),
        pytest.param(
            ["score", ".", "--rubric", "segmentatio"],
            2,
            "did you mean segmentation",
            id="bad rubric",
        ),
        pytest.param(
            ["score", ".", "--judge", "local:nowhere"],
            3,
            "no such file or folder",
            id="missing model",
        ),
        pytest.param(
            ["score", ".", "--policy", "papr"], 2, "unknown policy 'papr'", id="unknown policy"
        ),
        pytest.param(
            ["score", ".", "--public", "nowhere"], 2, "no such folder", id="missing public folder"
        ),
        pytest.param(
            ["--config", "no.toml", "score", "."], 2, "no.toml: no such file", id="missing config"
        ),
        pytest.param(["verify", "nowhere.json"], 2, "no such file", id="verify missing file"),
        pytest.param(["rubric", "show", "vqaa"], 2, "did you mean vqa", id="rubric misspelt"),
    ],
)
def test_bad_usage(out, args: list[str], code: int, message: str) -> None:
    got, text, err = out(*args)
    assert got == code
    assert text == ""
    assert message in err
    assert "Traceback" not in err


def test_settings_come_from_file_then_environment_then_flags(
    out, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_folder = tmp_path / "runs" / "r"
    shutil.copytree(EXAMPLES / "codes", run_folder)
    (tmp_path / "ambjudge.toml").write_text(
        'policy = "policy.yaml"\nrubric = "workflow"\n', encoding="utf-8"
    )
    (tmp_path / "policy.yaml").write_text("missing: zero\n", encoding="utf-8")
    card = lines(out("score", run_folder, "--json")[1])[0]
    assert (card["policy"]["missing"], card["rubric"]["id"]) == ("zero", "workflow")
    monkeypatch.setenv("AMBJUDGE_RUBRIC", "segmentation-multiclass")
    assert (
        lines(out("score", run_folder, "--json")[1])[0]["rubric"]["id"] == "segmentation-multiclass"
    )
    assert (
        lines(out("score", run_folder, "--json", "--rubric", "segmentation")[1])[0]["rubric"]["id"]
        == "segmentation"
    )
    (tmp_path / "ambjudge.toml").write_text('policie = "harness"\n', encoding="utf-8")
    code, _, err = out("score", run_folder)
    assert code == 2
    assert "did you mean policy?" in err


# segment, codes, verify, rubric, doctor


def test_segment_json(out) -> None:
    code, text, _ = out("segment", EXAMPLES / "codes", "--json")
    (data,) = lines(text)
    assert code == 0
    assert data["schema"] == "ambjudge.segments/1"
    assert data["turn_stages"] == ["S1", "S1", "S2", "S3", "S4", "S4", "S5"]
    assert data["segments"][0] == {"stage": "S1", "first_turn": 1, "last_turn": 2}
    assert data["stages"]["S4"] == {
        "turns": 2,
        "calls": 2,
        "failed_calls": 2,
        "exec_time_s": pytest.approx(33.8),
    }


def test_codes_of_the_three_examples(out) -> None:
    code, text, _ = out("codes", EXAMPLES, "--json")
    assert code == 0
    found = {d["run"]["id"]: {c["code"] for c in d["codes"]} for d in lines(text)}
    assert found == {"clean": set(), "codes": {"E4", "E5"}, "disqualified": {"E1"}}
    _, text, _ = out("codes", EXAMPLES / "codes", "--taxonomy", "harness")
    assert "primary failure by the harness's codes S4:E" in text


def test_codes_without_a_model_say_what_nobody_read(out) -> None:
    _, text, _ = out("codes", EXAMPLES / "clean", "--plan")
    assert "E2, E4, E5: absent · E1, E3: not read (no judge read the run)" in text
    assert "The plan's promises: not read (no judge read the run)" in text
    (data,) = lines(out("codes", EXAMPLES / "clean", "--json")[1])
    assert data["codes_read"] == {
        **dict.fromkeys(CODES, "absent"),
        "E1": "not_read",
        "E3": "not_read",
    }
    assert (data["unproven"], data["plan"]) == ([], [])
    assert "E1, E3: not read" in out("score", EXAMPLES / "clean")[1]
    _, text, _ = out("score", EXAMPLES)
    assert "?  codes that nobody read, or that the judge could not tell" in text


def test_verify_accepts_own_cards_and_finds_a_changed_number(out, tmp_path: Path) -> None:
    _, text, _ = out("score", EXAMPLES, "--json", "--out", tmp_path / "cards.jsonl")
    assert out("verify", tmp_path / "cards.jsonl")[0] == 0
    cards = lines(text)
    cards[1]["overall"] += 1
    cards[0]["stages"]["S1"]["criteria"][0]["value"] = 0
    (tmp_path / "changed.jsonl").write_text(
        "\n".join(json.dumps(c) for c in cards), encoding="utf-8"
    )
    code, text, err = out("verify", tmp_path / "changed.jsonl")
    assert code == 1
    assert "overall: stated 39.9100, recomputed 38.9" in text
    assert "stages.S1.score" in text
    assert "1 of 3 scorecards add up" in err


def test_verify_holds_what_was_read_against_what_fired(out, tmp_path: Path, judge_server) -> None:
    _, text, _ = out(
        "score",
        EXAMPLES / "codes",
        "--json",
        "--judge",
        "codes:E3,E5",
        "--api-base",
        judge_server.url,
    )
    (card,) = lines(text)

    def differences() -> str:
        (tmp_path / "card.json").write_text(json.dumps(card), encoding="utf-8")
        return out("verify", tmp_path / "card.json")[1]

    assert differences() == ""
    card["codes_read"] |= {"E3": "absent", "E1": "present"}
    card["unproven"] = [card["codes"][0]]
    text = differences()
    assert "codes_read.E3: stated absent, recomputed present, as it fired" in text
    assert "codes_read.E1: stated present, recomputed not present" in text
    assert "unproven.E3: stated fired" in text


def test_rubric_commands(out, tmp_path: Path) -> None:
    code, text, _ = out("rubric", "list", "--json")
    assert code == 0
    names = [r["id"] for r in json.loads(text)]
    assert len(names) == 9
    for name in names:
        assert out("rubric", "show", name)[0] == 0
    jsonschema.Draft202012Validator.check_schema(json.loads(out("rubric", "schema")[1]))
    source = (files("ambjudge.rubrics") / "vqa.yaml").read_text("utf-8")
    own = tmp_path / "own.yaml"
    own.write_text(source, encoding="utf-8")
    assert out("rubric", "validate", own)[0] == 0
    own.write_text(source.replace("weight: 0.25", "weight: -1"), encoding="utf-8")
    code, text, _ = out("rubric", "validate", own)
    assert code == 1
    assert f"{own}:" in text


def test_doctor_reports_without_showing_keys(out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-value")
    code, text, err = out("doctor")
    assert code == 0
    assert "OpenAI" in text
    assert "sk-secret" not in text + err


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_a_screen_and_has_an_example(out, name: str) -> None:
    code, text, _ = out(name, "--help")
    assert code == 0
    assert len(text.splitlines()) <= 56
    assert "xample" in text


# Processes


def test_shipped_schema_is_the_models() -> None:
    from ambjudge.judge.card.json_schema import scorecard_schema

    assert schema() == scorecard_schema()


# The store, and a model judge over real HTTP


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the default store again, which other tests do without."""
    monkeypatch.delenv("AMBJUDGE_STORE")


def _collection(folder: Path, *names: str) -> Path:
    for name in names:
        shutil.copytree(RECORDED / "runs" / name, folder / "runs" / name)
    return folder / "runs"


def test_model_verdicts_are_asked_for_once(out, stored, tmp_path: Path, judge_server) -> None:
    runs = _collection(tmp_path, "crc-lite-02", "vqa-std-02")
    judge = ("--judge", "good", "--api-base", judge_server.url)
    assert json.loads(out("score", runs, "--json", "--dry-run", *judge)[1])["calls"] == 8
    assert judge_server.count == 0
    code, first, err = out("score", runs, "--json", *judge)
    assert code == 0
    assert judge_server.count == 8, "S1, S2, S3 and the codes of two runs"
    assert "8 calls, cost unknown" in err
    assert (tmp_path / ".ambjudge" / "ambjudge.db").is_file()
    code, again, err = out("score", runs, "--json", *judge)
    assert judge_server.count == 8, "nothing changed, so nothing is asked"
    assert "calls" not in err
    assert again == first, "what the judging cost, too"
    for card in lines(first):
        assert card["judge"]["calls"] == 4
        assert card["codes_read"] == dict.fromkeys(CODES, "absent")
    out("score", runs, "--json", *judge, "--store", "none", "--no-diagnosis")
    assert judge_server.count == 14


def test_store_is_found_beside_settings_then_upward_then_made_in_the_collections_root(
    tmp_path: Path,
) -> None:
    from ambjudge.judge.session import default_store

    runs = _collection(tmp_path, "crc-lite-02")
    own = Path(".ambjudge") / "ambjudge.db"
    assert default_store(runs) == runs / own
    assert default_store(runs / "crc-lite-02") == runs / own
    assert default_store(runs / "crc-lite-02" / "process" / "conversation.json") == runs / own
    assert default_store(runs / "a.eval") == runs / own, "a file of no run"
    (tmp_path / ".ambjudge").mkdir()
    (tmp_path / own).write_bytes(b"")
    assert default_store(runs) == tmp_path / own
    assert default_store(runs, settings_folder=runs) == runs / own
    assert default_store(runs, settings_folder=tmp_path / "project") == tmp_path / own, (
        "settings of another project"
    )


def test_codes_are_read_by_a_model_once_and_shown_with_their_words(
    out, stored, tmp_path: Path, judge_server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMBJUDGE_API_BASE", judge_server.url)
    runs = _collection(tmp_path, "crc-lite-02", "vqa-std-02")
    judge = ("--judge", "codes:E3")
    code, text, err = out("codes", runs, *judge, "--plan")
    assert (code, judge_server.count) == (0, 2)
    assert "2 calls" in err
    assert "judge:codes:E3 · from judge · confidence 0.90" in text
    assert "↳ turn 1: “I'll read the documentation" in text
    assert "↳ F1: " in text, "the fact that the reading rests on, in words"
    assert "E1, E2, E4, E5: absent" in text
    assert "✓ kept    a pilot (turn 1)" in text
    first, second = lines(out("codes", runs, *judge, "--json")[1])
    assert judge_server.count == 2, "kept like every verdict"
    assert first["codes_read"]["E3"] == "present"
    assert first["codes"][0]["quote"]["check"] == "verified"
    assert second["plan"][0]["state"] == "kept"
    out("codes", runs, *judge, "--taxonomy", "harness")
    cards = lines(out("score", runs, *judge, "--json")[1])
    assert judge_server.count == 8, "the criteria alone are asked"
    assert cards[0]["codes"] == first["codes"]
    code, text, err = out("codes", runs, "--judge", "refusal")
    assert code == 1
    assert "E1, E3: not read (the judge's reading failed)" in text
    assert "answers are missing: refused" in err


def test_a_model_labels_the_stages(
    out, stored, tmp_path: Path, judge_server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMBJUDGE_API_BASE", judge_server.url)
    runs = _collection(tmp_path, "crc-lite-02", "vqa-std-02")
    judge = ("--judge", "good")
    assert out("segment", runs, *judge)[0] == 0
    assert judge_server.count == 0, "rules ask nobody"
    code, text, _ = out("segment", runs, *judge, "--stages", "judge", "--json", "--why")
    assert (code, judge_server.count) == (0, 2)
    for data in lines(text):
        assert data["stages_from"] == "judge"
        assert set(data["turn_stages"]) == {"S1"} != set(data["rules"])
        assert len(data["signals"]) == len(data["turn_stages"])
    assert "stages by the judge" in out("segment", runs, *judge, "--stages", "judge", "--why")[1]
    code, text, _ = out("score", runs / "crc-lite-02", *judge, "--stages", "judge")
    assert (code, judge_server.count) == (
        0,
        6,
    ), "the stages are known, the criteria and codes are not"
    assert "judge good · stages by the judge" in text
    (tmp_path / "ambjudge.toml").write_text('stages = "mixed"\n', encoding="utf-8")
    for command in ("score", "segment", "rejudge"):
        code, text, err = out(command, runs, "--judge", "rules")
        assert (code, text) == (2, "")
        assert "cannot label turns, only a model can" in err


def test_unknown_price_and_a_cost_limit_do_not_go_together(
    out, tmp_path: Path, judge_server
) -> None:
    runs = _collection(tmp_path, "crc-lite-02")
    code, text, err = out(
        "score", runs, "--judge", "good", "--api-base", judge_server.url, "--max-cost", "1"
    )
    assert (code, text, judge_server.count) == (2, "", 0)
    assert "price of good is unknown" in err


def test_failed_judge_leaves_stages_unscored_with_a_reason_and_exit_1(
    out, tmp_path: Path, judge_server
) -> None:
    runs = _collection(tmp_path, "crc-lite-02")
    code, text, _ = out(
        "score", runs, "--json", "--judge", "refusal", "--api-base", judge_server.url
    )
    assert code == 1
    (card,) = lines(text)
    jsonschema.validate(card, schema())
    for stage in ("S1", "S2", "S3"):
        assert card["stages"][stage]["score"] is None
        assert card["stages"][stage]["method"] == "unscored"
        judged = [
            c
            for c in card["stages"][stage]["criteria"]
            if c["status"] != "credited" and c.get("by") != "facts"
        ]
        assert {(c["status"], c["reason"], c["value"]) for c in judged} == {
            ("unscored", "refused", None)
        }
    assert card["stages"]["S4"]["score"] == 1
    assert card["overall_bounds"][0] < card["overall_bounds"][1]


def test_unreachable_server_is_exit_3(out, tmp_path: Path) -> None:
    runs = _collection(tmp_path, "crc-lite-02")
    code, text, err = out(
        "score", runs, "--judge", "m", "--api-base", "http://127.0.0.1:9/v1", "--timeout", "2"
    )
    assert (code, text) == (3, "")
    assert "cannot connect" in err


def test_selftest_of_the_rules_judge(out) -> None:
    code, text, _ = out("selftest", "--json")
    (report,) = lines(text)
    rows = {row["name"]: row for row in report["rows"]}
    assert rows["evidence removed"]["broken"] == rows["full marks demanded"]["broken"] == 0
    assert code == int(any(row["broken"] for row in report["rows"]))


def test_cost_limit_is_never_exceeded_and_what_is_left_over_says_so(
    out, stored, tmp_path: Path, judge_server
) -> None:
    runs = _collection(tmp_path, "crc-lite-02", "vqa-std-02", "bccd-lite-01")
    judge = ("--judge", "good", "--api-base", judge_server.url, "--price", "1,4")
    code, text, _ = out("score", runs, "--json", *judge, "--max-cost", "0.05", "--concurrency", "4")
    assert code == 1
    cards = lines(text)
    spent = sum(c["judge"]["cost_usd"] for c in cards)
    assert 0.04 <= spent <= 0.05
    reasons = {
        c["reason"]
        for card in cards
        for s in ("S1", "S2", "S3")
        for c in card["stages"][s]["criteria"]
    }
    assert "budget" in reasons
    code, text, _ = out("score", runs, "--json", *judge)
    assert code == 0, "what was left over is asked for next time"
    assert judge_server.count == 12
    assert out("score", runs, *judge[:-1], "cheap")[0] == 2


def test_rejudge_asks_only_for_what_an_edit_made_stale(
    out, stored, tmp_path: Path, judge_server
) -> None:
    """Edit a criterion: its calls. Edit a weight: none. Change nothing: none. Change the model:
    all. The dry run said so."""
    runs = _collection(tmp_path, "crc-lite-01", "crc-lite-02", "crc-std-01")
    judge = ("--judge", "good", "--api-base", judge_server.url)
    plan = json.loads(out("rejudge", runs, *judge, "--dry-run", "--json")[1])
    assert plan["calls"] == 11, "a run without a plan has no S1 to judge"
    diagnosis = [c["criterion"] for c in plan["by_criterion"] if c["question"] == "diagnosis"]
    assert diagnosis == [*CODES, "plan"]
    assert "E1, E2, E3, E4, E5, plan" in out("rejudge", runs, *judge, "--dry-run")[1]
    out("score", runs, *judge, "--json")
    assert judge_server.count == 11
    assert json.loads(out("rejudge", runs, *judge, "--dry-run", "--json")[1])["calls"] == 0

    source = (files("ambjudge.rubrics") / "classification.yaml").read_text("utf-8")
    own = tmp_path / "own.yaml"
    edited = source.replace(
        "How far was the pipeline validated", "How well was the pipeline validated"
    )
    assert edited != source
    own.write_text(edited, encoding="utf-8")
    plan = json.loads(out("rejudge", runs, *judge, "--rubric", own, "--dry-run", "--json")[1])
    assert (plan["calls"], plan["stale"]) == (3, 3)
    assert [(c["criterion"], c["stale"], c["reasons"]) for c in plan["by_criterion"]] == [
        ("S3", 3, {"criterion": 3})
    ]
    assert judge_server.count == 11
    code, text, _ = out("rejudge", runs, *judge, "--rubric", own)
    assert (code, judge_server.count) == (0, 14)
    assert "3 verdicts made in 3 calls" in text
    assert "3 scorecards renewed" in text

    own.write_text(edited.replace("weight: 0.35", "weight: 0.70"), encoding="utf-8")
    assert (
        json.loads(out("rejudge", runs, *judge, "--rubric", own, "--dry-run", "--json")[1])["calls"]
        == 0
    )
    _, text, _ = out("rejudge", runs, *judge, "--rubric", own)
    assert judge_server.count == 14
    assert "3 scorecards renewed" in text
    other = ("--judge", "lowest", "--api-base", judge_server.url)
    plan = json.loads(out("rejudge", runs, *other, "--rubric", own, "--dry-run", "--json")[1])
    assert (plan["calls"], plan["current"]) == (11, 0)


def test_a_rubric_given_for_one_track_leaves_the_others_alone(out, stored, tmp_path: Path) -> None:
    runs = _collection(tmp_path, "crc-lite-01", "vqa-std-02")
    own = tmp_path / "own.yaml"
    source = (files("ambjudge.rubrics") / "classification.yaml").read_text("utf-8")
    own.write_text(source.replace("weight: 0.35", "weight: 0.70"), encoding="utf-8")
    out("score", runs)
    _, text, err = out("rejudge", runs, "--rubric", own)
    assert "1 run is not of the given rubric's track" in text + err
    assert "1 scorecard renewed" in text
    _, text, err = out("score", runs, "--rubric", own, "--json")
    assert {c["run"]["track"]: c["rubric"]["id"] for c in lines(text)} == {
        "classification": "classification",
        "vqa": "vqa",
    }
    assert "1 run is not of the given rubric's track" in err


def test_answer_level_codes_of_a_vqa_run(out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMBJUDGE_PUBLIC", str(RECORDED / "public"))
    _, text, _ = out("codes", RECORDED / "runs" / "vqa-lite-01", "--json")
    (data,) = lines(text)
    assert {a["code"] for a in data["answers"]} == {"PLC001"}
    assert len(data["answers"]) == 5, "21 % of 24 answers are stand-ins"
    _, text, _ = out("score", RECORDED / "runs" / "vqa-lite-01", "--json")
    assert lines(text)[0]["answer_codes"] == {"PLC001": 5}


@pytest.fixture
def batch_server(loopback):
    """A provider with a batch endpoint that takes its time."""
    server = BatchServer(loopback).start()
    server.stages = ["validating", "in_progress"]
    yield server
    server.stop()


def test_rejudge_through_a_provider_batch(out, stored, tmp_path: Path, batch_server) -> None:
    """Sent, collected later by the same command, and never asked live."""
    runs = _collection(tmp_path, "bccd-lite-01", "crc-lite-02")
    judge = ("--judge", "good", "--api-base", batch_server.url, "--batch")
    code, text, err = out("rejudge", runs, *judge)
    assert code == 1
    assert "requests: 8 sent in 1 new batches" in err
    assert text == ""
    assert "the same command collects the answers later" in err
    for _ in range(5):
        code, text, _ = out("rejudge", runs, *judge)
        if code == 0:
            break
    assert code == 0
    assert "2 scorecards renewed" in text
    assert json.loads(out("rejudge", runs, *judge[:-1], "--dry-run", "--json")[1])["calls"] == 0


def test_score_through_a_provider_batch(out, stored, tmp_path: Path, batch_server) -> None:
    """The first commands print no scorecard, as nothing is answered yet; the last one prints them
    all, from the answers."""
    runs = _collection(tmp_path, "bccd-lite-01", "crc-lite-02")
    (runs / "broken").mkdir()
    (runs / "broken" / "conversation.json").write_text("{")
    command = (
        "score",
        runs,
        "--judge",
        "good",
        "--api-base",
        batch_server.url,
        "--batch",
        "--json",
    )
    code, text, err = out(*command)
    assert (code, text) == (1, "")
    assert "requests: 8 sent in 1 new batches" in err
    for _ in range(5):
        code, text, err = out(*command)
        if text:
            break
    assert code == 1, "one of the runs cannot be read"
    assert "broken" in err
    cards = lines(text)
    assert [c["run"]["id"] for c in cards] == ["bccd-lite-01", "crc-lite-02"]
    assert all(c["stages"][s]["score"] is not None for c in cards for s in ("S1", "S2", "S3"))
    code, _, err = out("score", runs, "--judge", "good", "--batch", "--store", "none")
    assert code != 0
    assert "needs a store" in err


def test_a_shard_in_an_open_batch_is_not_finished(
    out, stored, tmp_path: Path, batch_server
) -> None:
    runs = _collection(tmp_path, "crc-lite-01")
    judge = ("--judge", "good", "--api-base", batch_server.url, "--batch")
    command = ("score", runs, *judge, "--shard", "1/1", "--out", "parts")
    assert out(*command)[0] == 1
    assert list(Path("parts").glob("part*")) == []
    for _ in range(5):
        code, _, err = out(*command)
        if "batches open: 0" in err:
            break
    assert code == 0
    assert sorted(file.suffix for file in Path("parts").iterdir()) == [".jsonl", ".key"]
    assert "up to date" in out(*command)[2]


def test_store_feeds_the_analysis_and_its_labels_the_agreement(out, stored, tmp_path: Path) -> None:
    runs = _collection(tmp_path, "crc-lite-01", "crc-std-01", "vqa-std-02")
    out("score", runs)
    store = tmp_path / ".ambjudge" / "ambjudge.db"
    code, _, err = out(
        "label",
        "import",
        RECORDED / "labels" / "gold",
        "--store",
        store,
        "--runs",
        RECORDED / "runs",
    )
    assert (code, "15 labels added" in err) == (0, True)
    assert (
        "0 labels added, 15 already stored"
        in out("label", "import", RECORDED / "labels" / "gold", "--store", store)[2]
    )
    out("label", "export", "--out", tmp_path / "again", "--store", store)
    for name in ("crc-lite-01", "kidney-lite-02"):
        written = (tmp_path / "again" / "gold" / f"{name}.json").read_text("utf-8")
        assert json.loads(written) == json.loads(
            (RECORDED / "labels" / "gold" / f"{name}.json").read_text("utf-8")
        )
    import ambjudge

    assert sorted(ambjudge.analysis.frame(store)["run_id"]) == [
        "crc-lite-01",
        "crc-std-01",
        "vqa-std-02",
    ]
    code, text, _ = out("agreement", store, "--labels", store)
    assert code == 0
    assert "Judge rules against labels of gold" in text
    code, text, _ = out("label", "next", store, "-n", "2", "--json")
    assert len(json.loads(text)) == 2
    todo = tmp_path / "todo"
    out("label", "next", store, "-n", "2", "--out", todo, "--annotator", "me")
    assert len(list((todo / "me").glob("*.yaml"))) == 2
    _, text, _ = out(
        "label", "next", store, "-n", "2", "--out", todo, "--annotator", "me", "--json"
    )
    assert len(json.loads(text)) == 1, "the rest"
    broken = tmp_path / "broken.json"
    broken.write_text(
        '{"run": "crc-lite-01", "annotator": "me", "criteria": {"S1a": 7}}', encoding="utf-8"
    )
    code, _, err = out("label", "import", broken, "--store", store, "--runs", RECORDED / "runs")
    assert code == 1
    assert "S1a" in err


def test_selftest_says_the_gain_over_the_rules_judge(
    out, judge_server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMBJUDGE_API_BASE", judge_server.url)
    monkeypatch.setenv("AMBJUDGE_ASK_ALL", "true")
    runs = [RECORDED / "runs" / name for name in ("bccd-std-01", "crc-lite-01")]
    args = ("--labels", RECORDED / "labels" / "gold", "--json")
    (own,) = lines(out("selftest", *runs, *args)[1])
    assert (own["gain"]["gain"], own["gain"]["interval"]) == (0.0, None)
    _, text, _ = out("selftest", *runs, *args, "--judge", "good")
    (other,) = lines(text)
    found = other["gain"]
    assert found["pairs"] == 12 + 9
    assert own["gain"]["pairs"] < found["pairs"], (
        "what the rules leave to a reader is no answer of theirs"
    )
    assert found["gain"] == pytest.approx(
        (found["equal"] - found["heuristic_equal"]) / found["pairs"]
    )
    assert found["gain"] < 0, "a judge that is always content is worse than the null model"
    assert found["interval"][0] < found["gain"] < found["interval"][1]
    assert found["than_rules"] == "undecided", "two runs do not tell"


def test_options_of_messages_stand_before_or_after_the_command(out, stored, tmp_path: Path) -> None:
    runs = str(_collection(tmp_path, "crc-lite-02"))
    notes = [
        out(*line)[2] for line in (["-q", "score", runs], ["score", runs, "-q"], ["score", runs])
    ]
    assert notes[0] == notes[1] == ""
    assert "verdicts in" in notes[2]
    assert (
        out("doctor", "--config", "no.toml")[2]
        == "ambjudge: error: no.toml: no such file (check the path)\n"
    )
