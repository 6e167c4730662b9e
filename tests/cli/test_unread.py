"""Unread is not good: what a cohort shows when the judge ran out of money, invented its quotes, or
never looked."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

RUNS = Path(__file__).parents[1] / "data" / "recorded" / "runs"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Three runs of two agents, one of them disqualified."""
    for name in ("crc-lite-02", "ldct-lite-02", "ldct-lite-01"):
        shutil.copytree(RUNS / name, tmp_path / "runs" / name)
    return tmp_path / "runs"


def boards(out, cards: Path | str, *flags: str) -> tuple[dict, str]:
    _, data, _ = out(
        "leaderboard", cards, "--by", "overall", "--by", "track", "--by", "task", "--json", *flags
    )
    _, text, _ = out("analyze", cards, *flags)
    return json.loads(data), text


def test_a_budget_stopped_cohort_has_no_point_no_rank_and_no_finding(
    out, runs: Path, judge_server
) -> None:
    judge = ("--judge", "good", "--api-base", judge_server.url, "--price", "1,2")
    code, text, err = out("score", runs, *judge, "--max-cost", "0.0001", "--out", "stopped.jsonl")
    assert code == 1
    assert judge_server.count == 0
    assert "72–100" in text
    assert "100.0" not in text, "a range stands where a point would"
    assert "21 criteria not asked, as the cost limit was reached: raise --max-cost" in err
    data, report = boards(out, "stopped.jsonl")
    assert data["basis"] | {"unread_runs": 2, "runs": 3, "judge": "good"} == data["basis"]
    assert {row["agent"] for row in data["rows"]} == {"agent-flint", "agent-opal", "agent-slate"}
    assert all(row["value"] is None and row["rank"] is None for row in data["rows"])
    assert next(
        row["range_lo"] for row in data["rows"] if row["agent"] == "agent-opal"
    ) == pytest.approx(72.33)
    assert "2 of them have too few judged" in report
    assert not any(word in report for word in ("leads", "weakest", "Overall of"))

    out("score", runs, *judge, "--out", "judged.jsonl")
    data, report = boards(out, "judged.jsonl")
    assert all(row["value"] is not None for row in data["rows"])
    # Each agent has a track of its own: none can be compared over all tracks.
    assert all((row["rank"] is None) == (row["scope"] == "overall") for row in data["rows"])
    assert (data["basis"]["read_share"], data["basis"]["unread_runs"]) == (1.0, 0)
    code, text, _ = out("verify", "stopped.jsonl", "judged.jsonl")
    assert code == 0


def test_a_board_of_rules_says_that_it_rests_on_presumed_values(out, runs: Path) -> None:
    code, text, err = out("leaderboard", runs)
    assert code == 0
    assert "3 runs scored by the rules judge" in err
    assert "Judge rules, 3 runs: 59% of the weight of the judged criteria was read." in text
    assert "The scores of 2 of them rest on presumed criteria (~)" in " ".join(text.split())
    assert "[76.8, 100.0]" in text
    assert "~100" in text


def test_strict_evidence_counts_no_invented_quote(out, runs: Path, judge_server) -> None:
    judge = ("--judge", "false_quote", "--api-base", judge_server.url, "--no-diagnosis")
    _, text, _ = out("score", runs, *judge, "--out", "cards.jsonl")
    assert "0 of 21 quotes found in the runs" in text
    assert "0/7" in text
    _, checks, _ = out("analyze", "cards.jsonl", "--table", "checks", "--json")
    rows = {row["check"]: row for row in json.loads(checks)["tables"]["checks"]["rows"]}
    assert rows["quotes found"]["count"] == 3
    assert rows["verdicts contradicted"]["status"] == "ok"
    Path("strict.yaml").write_text("strict-evidence: true\n", "utf-8")
    _, text, _ = out("score", runs / "crc-lite-02", *judge, "--policy", "strict.yaml", "--json")
    card = json.loads(text)
    assert card["policy"]["strict_evidence"] is True
    assert card["stages"]["S1"]["score"] is None
    assert {c["reason"] for s in ("S1", "S2", "S3") for c in card["stages"][s]["criteria"]} == {
        None,
        "no_evidence",
    }
    (runs / "strict.json").write_text(text, "utf-8")
    assert out("verify", runs / "strict.json")[0] == 0


def test_every_command_reads_the_store_and_its_judge(
    out, runs: Path, judge_server, monkeypatch
) -> None:
    monkeypatch.delenv("AMBJUDGE_STORE")
    (Path.cwd() / "ambjudge.toml").unlink()
    judge = ("--judge", "good", "--api-base", judge_server.url, "--no-diagnosis")
    _, _, err = out("score", runs, *judge)
    store = runs / ".ambjudge" / "ambjudge.db"
    assert f"verdicts in {store}" in err
    asked = judge_server.count
    _, text, err = out("leaderboard", runs)
    assert "Judge good, 3 runs" in text
    assert f"reading the store {store}" in err
    _, text, _ = out("rejudge", runs, "--dry-run", "--no-diagnosis")
    assert (
        "3 runs, judge good: 21 verdicts are up to date, 0 are stale, 0 were never made; 0 calls"
        in text
    )
    _, text, _ = out("rubric", "diff", "classification", "classification", runs)
    assert "none" in text
    _, text, _ = out("analyze", runs, "--store", "none", "--table", "basis")
    assert "rules" in text
    assert "good" not in text
    shutil.copytree(runs / "crc-lite-02", runs / "later")
    _, _, err = out("analyze", runs, "--table", "basis")
    assert f"left out 1 run below {runs} without a scorecard in the store" in err
    assert judge_server.count == asked, "nothing is asked twice"


def test_several_folders_share_a_store_in_the_folder_above(out, runs: Path, monkeypatch) -> None:
    monkeypatch.delenv("AMBJUDGE_STORE")
    (Path.cwd() / "ambjudge.toml").unlink()
    for group, name in (("a", "crc-lite-02"), ("b", "ldct-lite-01")):
        (runs / group).mkdir()
        (runs / name).rename(runs / group / name)
    out("score", runs / "a", runs / "b")
    assert [path.parent.parent for path in runs.rglob("*.db")] == [runs]
    out("score", runs / "a", "--store", runs / "a" / ".ambjudge" / "ambjudge.db")
    code, _, err = out("score", runs / "a", runs / "b")
    assert code == 2
    assert "these paths do not share one store" in err


def test_two_judges_of_the_same_bytes_are_compared_wherever_they_lie(
    out, runs: Path, judge_server
) -> None:
    shutil.copytree(runs, runs.with_name("copies"))
    (runs.with_name("copies") / "crc-lite-02").rename(runs.with_name("copies") / "renamed")
    judge = ("--judge", "good", "--api-base", judge_server.url, "--no-diagnosis")
    out("score", runs, "--out", "a.jsonl")
    out("score", runs.with_name("copies"), *judge, "--out", "b.jsonl")
    code, text, err = out("agreement", "a.jsonl", "b.jsonl")
    assert code == 0
    assert "good / rules" in text
    assert "the id of another run" not in err
    assert next(row.split()[1] for row in text.splitlines() if row.startswith("S2e ")) == "3"


@pytest.mark.parametrize(
    "command", ["analyze", "leaderboard", "agreement", "export", "rejudge", "score"]
)
def test_nothing_is_scored_because_an_argument_was_left_out(out, runs: Path, command: str) -> None:
    code, text, err = out(command)
    assert (code, text) == (2, "")
    assert "PATH" in err
    assert err.count("\n") <= 2
