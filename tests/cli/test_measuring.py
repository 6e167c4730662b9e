"""`ambjudge selftest --labels`: the figures of a judge on a dev and a test split, and nothing asked
twice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

RECORDED = Path(__file__).parents[1] / "data" / "recorded"
RUNS = [RECORDED / "runs" / name for name in ("bccd-std-01", "crc-lite-01", "vqa-std-02")]
LABELS = ("--labels", RECORDED / "labels" / "gold")


@pytest.fixture(autouse=True)
def server(judge_server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server that a model is asked at."""
    monkeypatch.setenv("AMBJUDGE_API_BASE", judge_server.url)


def test_the_second_report_asks_nothing(out, judge_server, tmp_path: Path) -> None:
    judge_server.script = ["codes:E3"]
    args = (
        *RUNS,
        *LABELS,
        "--judge",
        "good",
        "--store",
        tmp_path / "kept.db",
    )
    code, text, _ = out("selftest", *args, "--dry-run", "--json")
    plan = json.loads(text)
    assert (code, plan["runs"], plan["calls"], judge_server.count) == (0, 3, 11, 0)
    code, text, _ = out("selftest", *args, "--json")
    first = json.loads(text)
    assert (code, judge_server.count, first["usage"]["calls"]) == (0, 11, 11)
    code, text, _ = out("selftest", *args, "--json", "--split", "dev")
    assert code == 0
    assert list(json.loads(text)["labels"]["splits"]) == ["dev"]
    code, text, _ = out("selftest", *args, "--json")
    second = json.loads(text)
    assert (code, judge_server.count, second["usage"]["calls"]) == (0, 11, 0)
    for split in ("dev", "test"):
        old, new = first["labels"]["splits"][split], second["labels"]["splits"][split]
        assert {**old, "usage": None} == {**new, "usage": None}
    whole = second["labels"]["all"]
    assert whole["criteria"]["overall"]["equal"]["n"] == second["gain"]["pairs"]
    assert set(whole["codes"]) == {"reading", "facts", "both"}
    assert whole["reading"]["calibration"]["n"] == 15

    code, text, _ = out("selftest", *args)
    assert code == 0
    found = second["gain"]
    assert " ".join(text.split()).startswith(
        "It cannot be told whether good is better than the rules judge on these labels: it equals"
        f" the label in {found['equal']} of {found['pairs']} criteria of 3 runs, the rules judge in"
        f" {found['heuristic_equal']}; "
    )
    assert len(text.splitlines()) < 20
    code, text, _ = out("-v", "selftest", *args)
    assert code == 0
    for words in (
        "criteria, kappa",
        "gain over always met",
        "codes by both, micro F1",
        "E3 F1",
        "S2b",
        "Confidence in a code",
    ):
        assert words in text
    assert judge_server.count == 11


def test_the_split_is_by_content_and_its_share_is_stated(out) -> None:
    def runs(*args: str) -> dict[str, int]:
        report = json.loads(out("selftest", *RUNS, *LABELS, "--json", *args)[1])["labels"]
        return {split: found["runs"] for split, found in report["splits"].items()}

    assert sum(runs().values()) == 3
    assert runs("--test-share", "0") == {"dev": 3, "test": 0}
    assert runs("--test-share", "1") == {"dev": 0, "test": 3}


WRONG = [
    pytest.param((RUNS[0], "--split", "dev"), "add --labels", id="a split of nothing"),
    pytest.param(LABELS, "name the labelled runs", id="no runs"),
    pytest.param((RUNS[0], "--labels", "nowhere"), "nowhere", id="no labels"),
    pytest.param(
        (RUNS[0], *LABELS, "--stages", "judge"), "cannot label turns", id="rules read no stages"
    ),
    pytest.param(
        (RUNS[0], *LABELS, "--annotator", "nobody"), "no labels of nobody", id="nobody's labels"
    ),
]


@pytest.mark.parametrize(("args", "words"), WRONG)
def test_what_makes_no_sense_is_said(out, args: tuple, words: str) -> None:
    code, text, err = out("selftest", *args)
    assert (code, text) == (2, "")
    assert words in err


def test_runs_without_labels_are_not_measured(out, tmp_path: Path) -> None:
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / "x.json").write_text(
        '{"run": "another", "annotator": "me", "codes": {}}', encoding="utf-8"
    )
    code, _, err = out("selftest", RUNS[0], "--labels", tmp_path / "labels")
    assert code == 1
    assert "labels name runs by their id" in err
    code, _, err = out("selftest", "nowhere", *LABELS)
    assert code == 2
    assert "nowhere" in err


def test_a_label_off_the_scale_is_named_before_anything_is_asked(
    out, judge_server, tmp_path: Path
) -> None:
    path = tmp_path / "x.json"
    path.write_text(
        '{"run": "crc-lite-01", "criteria": {"S1a": 0.7}, "source": "mine"}', encoding="utf-8"
    )
    args = (RUNS[1], "--labels", path, "--judge", "good")
    code, _, err = out("selftest", *args)
    assert (code, judge_server.count) == (2, 0)
    assert "labels of crc-lite-01: criteria.S1a: 0.7 is not one of 1, 0" in err
