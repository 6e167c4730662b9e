"""Parts of a cohort: named criteria and codes, what two judges differ on, what a judge is unsure
of, and second opinions. What a dry run says is asked, and nothing else."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import loopback_server
import pytest
from ambjudge.judge.store import open_store
from stored import RECORDED

NAMES = ("crc-lite-01", "crc-lite-02")


@pytest.fixture
def cohort(out, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, judge_server):
    """Two runs, judged by two models that differ on everything but codes."""
    monkeypatch.delenv("AMBJUDGE_STORE")
    for name in NAMES:
        shutil.copytree(RECORDED / "runs" / name, tmp_path / "runs" / name)
    for model in ("good", "codes:E3"):
        code, _, err = out("score", "runs", *judge(judge_server, model))
        assert code == 0, err
    return tmp_path / ".ambjudge" / "ambjudge.db"


def judge(server, model: str) -> tuple[str, ...]:
    return ("--judge", model, "--api-base", server.url)


def asked_items(server, first: int) -> list[str]:
    """What the requests from this one on asked, in all."""
    return sorted(
        item for body in server.requests[first:] for item in loopback_server.entries_of(body)
    )


FIRST, SECOND, THIRD = "good", "codes:E3", "lowest"
BOTH = ("--disagree", f"{FIRST},{SECOND}")
EDITED = ("--temperature", "0.3")
CASES = [
    # command, judge, options, what is asked of each of the runs, how many runs
    ("rejudge", FIRST, ("--criteria", "S3,E1", *EDITED), ["E1", "S3"], 2),
    ("score", FIRST, ("--criteria", "S3,E1", *EDITED), [], 2),
    ("rejudge", THIRD, BOTH, ["E3"], 2),
    ("score", THIRD, (*BOTH, "--where", "crc-lite-01", "--again"), ["E3"], 1),
    ("rejudge", THIRD, (*BOTH, "--criteria", "S2"), [], 2),
    ("score", THIRD, ("--where", "crc-lite-01", "--criteria", "E1"), ["E1"], 1),
    ("rejudge", FIRST, ("--criteria", "S3"), [], 2),
    ("rejudge", FIRST, ("--criteria", "S3", "--again"), ["S3"], 2),
    ("score", FIRST, ("--criteria", "S3", "--again"), ["S3"], 2),
    ("rejudge", FIRST, ("--criteria", "S3", "--samples", "3"), [], 2),
    ("rejudge", SECOND, ("--below-confidence", "0.99", "--again"), ["E3"], 2),
]


def test_only_what_is_chosen_is_asked_and_as_often_as_planned(out, cohort, judge_server):
    """No board moves: scorecards that lack what was not asked replace none."""
    boards = [out("leaderboard", "runs", "--judged-by", name)[1] for name in (FIRST, SECOND)]
    listed = json.loads(out("agreement", "runs", "--list", "--json")[1])["rows"]
    assert [(row["item"], len(row["opinions"])) for row in listed] == [("E3", 2), ("E3", 2)]
    assert listed[0]["opinions"][0]["quotes"]
    for command, model, options, items, runs in CASES:
        line = (command, "runs", *judge(judge_server, model), *options)
        sent = judge_server.count
        plan = json.loads(out(*line, "--dry-run", "--json")[1])
        assert judge_server.count == sent
        code, _, err = out(*line)
        assert asked_items(judge_server, sent) == sorted(items * runs), line
        assert plan["calls"] == judge_server.count - sent, line
        assert plan["stale"] == len(items) * runs
        assert code == 0 or command == "score", err
    shown = [out("leaderboard", "runs", "--judged-by", name)[1] for name in (FIRST, SECOND)]
    assert shown == boards
    with open_store(cohort) as store:
        assert store.judges(["runs"]) == sorted((FIRST, SECOND))


def test_a_second_opinion_is_the_next_sample_and_the_first_stays_in_force(
    out, cohort, judge_server
):
    judge_server.script = ["lowest"]
    line = ("rejudge", "runs", *judge(judge_server, FIRST), "--criteria", "S3", "--again")
    _, text, _ = out(*line)
    assert "second opinions: 2 of 2 given, 2 differ; the first verdict stays in force" in text
    assert "(--samples 2 lets both vote" in text
    with open_store(cohort) as store:
        given = [
            (verdict.key.sample, verdict.result.value)
            for verdict in store.iter_verdicts()
            if (verdict.key.judge, verdict.result.id) == (FIRST, "S3")
        ]
    assert sorted(given) == [(0, 1.0), (0, 1.0), (1, 0.0), (1, 0.0)]
    question = ("ask", "runs", "Is it?", *judge(judge_server, FIRST))
    out(*question)
    judge_server.script = ["good"]
    _, text, _ = out(*question, "--again")
    assert text.count(" no ") == 2
    assert "second opinions: 2 of 2 given, 2 differ" in text


BAD = [
    (("--criteria", "S9z"), "S9z: not asked about any of these runs (choose from "),
    (("--disagree", FIRST), "two judges"),
    (("--disagree", f"{FIRST},other"), "no scorecards of judge 'other'"),
    (("--below-confidence", "0.01"), "no item of these runs is chosen"),
    (("--below-confidence", "2"), "--below-confidence"),
]


def test_a_choice_of_nothing_is_bad_usage_and_tracks_choose_nothing(out, cohort, judge_server):
    line = ("rejudge", "runs", *judge(judge_server, FIRST), "--dry-run")
    for options, message in BAD:
        code, _, err = out(*line, *options)
        assert (code, message in err) == (2, True), err
    code, _, err = out("rejudge", "runs", "--judge", "rules", "--again")
    assert (code, "say the same again" in err) == (2, True)
    _, _, err = out(*line, "--track", "vqa", "--tier", "lite")
    assert "--track vqa selects no runs: 2 of 2 runs name another track" in err
    assert "--tier" not in err


def test_runs_without_outputs_are_no_trouble_and_failures_are(out, tmp_path: Path, judge_server):
    """A scheduler can tell a cohort that is done from one that needs somebody."""
    turns = [
        {"role": "user", "content": "Fix the bug."},
        {"role": "assistant", "content": "I look at the code."},
    ]
    for name in ("a", "b"):
        file = tmp_path / "runs" / name / "conversation.json"
        file.parent.mkdir(parents=True)
        turns[1]["content"] += f" {name}"
        file.write_text(json.dumps(turns), encoding="utf-8")
    code, _, err = out("score", "runs", *judge(judge_server, "good"))
    assert (code, "2 of these for lack of outputs" in err) == (0, True), err
    judge_server.script = ["500"]
    code, _, err = out("score", "runs", *judge(judge_server, "lowest"))
    assert code in (1, 3), err
