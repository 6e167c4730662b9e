"""Runs that still go on: scored while agents write them, and again when they have ended."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from ambjudge import analysis
from ambjudge.cli import run as command
from ambjudge.error_codes.merge import Reading, merge
from ambjudge.errors import InputError
from ambjudge.judge.card.verify import rubric_of, verify
from ambjudge.judge.engine import make_scorecard, prepare
from ambjudge.judge.judges.api.messages import Messages
from ambjudge.judge.judges.rules import RulesJudge
from ambjudge.judge.session import ScoreOptions
from ambjudge.judge.watching import Watcher
from ambjudge.trajectories.models import Report
from ambjudge.trajectories.reading.load import load_conversation
from ambjudge.trajectories.reading.running import RunningRule
from ambjudge.trajectories.record.quotes import Evidence
from growing_runs import RUNS, Growing
from stored import RECORDED

GOES_ON = RunningRule(stated=True)
FEW = ("bccd-lite-04", "kidney-lite-02", "ldct-lite-02", "vqa-lite-01")


def growing(name: str, folder: Path) -> Growing:
    return Growing(RECORDED / "runs" / name, folder / name)


def paper(card) -> set[str]:
    return {code.code for code in card.codes if code.taxonomy == "paper"}


@pytest.mark.parametrize("name", FEW)
def test_nothing_that_needs_an_end_is_said_of_a_run_that_goes_on(name: str, tmp_path: Path) -> None:
    whole = make_scorecard(
        load_conversation(RECORDED / "runs" / name / "process/conversation.json")
    )
    run = growing(name, tmp_path)
    for turns in range(1, run.count):
        card = make_scorecard(GOES_ON.apply(load_conversation(run.write(turns))))
        assert card.status.ended == "running"
        assert (card.task, card.overall, card.agentic) == (None, None, None)
        assert {card.stages[stage].method for stage in ("S4", "S5")} == {"withheld"}
        assert paper(card) <= paper(whole) - {"E5"}
        assert set(card.codes_read.values()) <= {"present", "withheld"}
        scored = [item for stage in card.stages.values() for item in stage.criteria if item.judged]
        assert all(item.value == 1 for item in scored if item.status == "scored")
        assert not verify(card, rubric_of(card))
        assert not card.gist.incomplete
        assert not card.gist.unscored


def test_the_age_of_a_run_decides_unless_the_user_does(tmp_path: Path) -> None:
    files = growing("bccd-lite-01", tmp_path)
    path = files.write(3)
    run = load_conversation(path)
    written = path.stat().st_mtime
    report = run.model_copy(update={"report": Report()})
    ended = run.model_copy(update={"status": run.status.model_copy(update={"end_recorded": True})})
    handed_over = load_conversation(files.write(files.count))
    young = RunningRule(clock=lambda: written + 500)
    cases = {
        "young": (young, run, "running"),
        "old": (RunningRule(clock=lambda: written + 700), run, "cut"),
        "by a setting": (
            RunningRule(young_minutes=20, clock=lambda: written + 700),
            run,
            "running",
        ),
        "no clock": (RunningRule(), run, "cut"),
        "the user says so": (GOES_ON, run, "running"),
        "the user says no": (RunningRule(stated=False, clock=lambda: written), run, "cut"),
        "imported now": (young, run.model_copy(update={"imported": "codex"}), "cut"),
        "its harness recorded an end": (young, ended, "cut"),
        "it has a report, whatever the user says": (GOES_ON, report, "cut"),
        "handed over, whatever the user says": (GOES_ON, handed_over, "submitted"),
    }
    for case, (rule, each, expected) in cases.items():
        applied = rule.apply(each)
        assert applied.status.ended == expected, case
        assert (applied.content_sha256 == each.content_sha256) == (expected != "running"), case
        assert rule.apply(applied) == applied, case


def test_scored_again_after_its_end_a_run_has_the_card_of_one_that_never_ran(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMBJUDGE_YOUNG_MINUTES", "10")
    monkeypatch.setenv("AMBJUDGE_STORE", "cards.db")
    monkeypatch.chdir(tmp_path)
    runs = [growing(name, tmp_path / "runs") for name in FEW]

    def score(*flags: str) -> tuple[list[dict], str]:
        capsys.readouterr()
        command(["score", "runs", "--json", *flags])
        printed = capsys.readouterr()
        return [json.loads(line) for line in printed.out.splitlines()], printed.err

    for run in runs:
        run.write(4)
    cards, notes = score()
    assert [card["status"]["ended"] for card in cards] == ["running"] * 4
    assert "4 runs still go on" in notes
    assert command(["leaderboard", "runs"]) == 2  # nothing that could be ranked
    assert "4 runs still go on: not counted" in capsys.readouterr().err

    for run in runs:
        run.write(run.count)
    runs[0].write(6)  # this one is killed
    assert [card["status"]["ended"] for card in score()[0]].count("running") == 1
    command(["leaderboard", "runs", "--outcome", "agentic"])
    assert "1 run still goes on: not counted" in " ".join(capsys.readouterr().out.split())
    assert command(["site", "runs", "--out", "pages"]) == 0
    assert "1 run still goes on: not counted." in Path("pages/board.html").read_text("utf-8")
    assert '"running"' in Path("pages/runs.js").read_text("utf-8")
    table = analysis.frame(Path("cards.db"))
    assert table.filter(table["ended"] == "running")["agentic"].to_list() == [None]

    runs[0].age(3600)
    after, notes = score()
    assert "still go" not in notes
    never_running, _ = score("--store", "other.db", "--finished")
    assert after == never_running
    assert score()[0] == after


@pytest.mark.parametrize("name", ["bccd-lite-01", "ldct-lite-01"])
def test_a_conversation_that_breaks_off_is_read_up_to_there(name: str, tmp_path: Path) -> None:
    run = growing(name, tmp_path)
    content = run.files(run.count)["conversation.json"]
    path = run.write(run.count)
    whole = load_conversation(path)
    (path.parent / "trace.jsonl").unlink(missing_ok=True)
    (path.parent / "tool_calls.jsonl").unlink(missing_ok=True)
    turns = 0
    for end in range(0, len(content), 401):
        path.write_bytes(content[:end])
        try:
            read = load_conversation(path)
        except InputError:
            assert not turns  # only before the first message is complete
            continue
        assert "breaks off after" in read.warnings[0]
        assert len(read.turns) >= turns
        turns = len(read.turns)
        assert [turn.text for turn in read.turns] == [turn.text for turn in whole.turns[:turns]]
    assert turns >= len(whole.turns) - 1


BROKEN = {
    "an object that is closed twice": b'{"messages": [{"role": "user", "content": "x"}]}}',
    "a comma too many": b'[{"role": "user", "content": "x"},]',
    "words between two messages": b'[{"role": "user", "content": "x"} oops {"role": "user"}]',
    "two messages without a comma": b'[{"role": "user"} {"role": "user", "content": "%s"}]'
    % (b"y" * 99),
    "no message is complete": b'[{"role": "user", "content": "x',
    "messages have not begun": b'{"agent": "a", "messages": [',
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_conversation_is_not_taken_for_one_that_breaks_off(case: str, tmp_path) -> None:
    path = tmp_path / "conversation.json"
    path.write_bytes(BROKEN[case])
    with pytest.raises(InputError, match="is not JSON"):
        load_conversation(path)


def test_a_reader_is_told_that_the_run_goes_on(tmp_path: Path) -> None:
    loaded = load_conversation(growing("kidney-lite-02", tmp_path).write(5))
    messages = Messages(400_000, images=False, outputs=False, cache_breakpoint=False)
    for run, is_told in ((loaded, False), (GOES_ON.apply(loaded), True)):
        prepared = prepare(run)
        facts = " ".join(fact.text for fact in prepared.facts)
        assert ("The run ended cut off" in facts) != is_told
        assert ("Output format valid" in facts) != is_told
        for request in prepared.requests(RulesJudge()):
            prefix, question = messages.prefix(request), messages.question_text(request)
            assert ("The run had not ended" in question) == is_told
            assert ("the run still goes on" in prefix) == is_told
            assert ("ended: cut" in prefix) != is_told


def test_a_reading_about_the_delivery_fires_only_at_the_end(tmp_path: Path) -> None:
    loaded = load_conversation(growing("kidney-lite-02", tmp_path).write(5))
    quote = Evidence(turn=5, quote="argmax", check="verified")
    readings = [
        Reading(code=code, state=state, turns=(5,), quote=quote)
        for code, state in (("E1", "absent"), ("E3", "present"), ("E5", "present"))
    ]
    for run, expected in (
        (loaded, {"E1": "absent", "E3": "present", "E5": "present"}),
        (GOES_ON.apply(loaded), {"E1": "withheld", "E3": "present", "E5": "withheld"}),
    ):
        merged = merge(run, prepare(run).segmentation, (), readings)
        assert {code: merged.states[code] for code in expected} == expected


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_a_watch_tells_codes_and_endings_once(tmp_path: Path) -> None:
    """Torn files, a new run, one that vanishes, one that is killed, and a message that is
    answered after all."""
    clock = Clock()
    folder = tmp_path / "runs"
    folder.mkdir()
    options = ScoreOptions(running=RunningRule())
    watcher = Watcher(folder, options, clock)
    assert not list(watcher.look())
    names = {"killed": "bccd-lite-01", "torn": "bccd-lite-04", "late": "crc-lite-01"}
    runs = {name: growing(recorded, folder) for name, recorded in names.items()}
    gone = growing("vqa-lite-01", folder)

    def look() -> list[tuple[str, str | None]]:
        latest = max((path.stat().st_mtime for path in folder.rglob("*.json*")), default=0.0)
        clock.seconds = max(clock.seconds, latest + 1)
        return [(event.run, event.code or event.ended or event.event) for event in watcher.look()]

    gone.write(2)
    runs["killed"].write(3)
    seen = look()
    torn = runs["torn"]
    for turns in range(1, 7):
        for _ in torn.tear(turns):
            seen += look()
    assert seen == [("bccd-lite-04", "E4")]
    assert (watcher.running, watcher.ended) == (3, 0)

    for path in gone.folder.rglob("*.json*"):
        path.unlink()
    runs["late"].write(runs["late"].count)
    torn.write(torn.count)
    assert look() == [("bccd-lite-04", "submitted"), ("crc-lite-01", "submitted")]
    assert (watcher.tally.gone, watcher.running, watcher.errors) == (1, 1, ())
    assert look() == []

    clock.seconds += 601
    assert look() == [("bccd-lite-01", "E5"), ("bccd-lite-01", "cut")]
    assert watcher.is_done
    runs["killed"].write(4)
    os.utime(runs["killed"].folder / "process/conversation.json", (clock.seconds, clock.seconds))
    assert look() == [("bccd-lite-01", "resumed")]
    assert watcher.tally.codes == {"E4": 1, "E5": 1}


def test_a_closing_message_is_an_end_when_nobody_answers_it(tmp_path: Path) -> None:
    run = growing("kidney-lite-02", tmp_path)
    path = run.write(run.count)
    (path.parent / "trace.jsonl").unlink()  # its last line records the end
    watcher = Watcher(tmp_path, ScoreOptions(), lambda: path.stat().st_mtime)
    assert [event.event for event in watcher.look()] == []
    assert [event.event for event in watcher.look()] == ["code", "code", "ended"]
    assert list(watcher.look()) == []


def test_watch_hands_events_to_a_command_and_fails_if_a_code_fired(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "runs $(touch pwned)"
    run = growing("bccd-lite-04", folder)
    run.write(run.count)
    heard = tmp_path / "events.jsonl"
    flags = ["--until-done", "--json", "--every", "0.05", "--exec", f"tee -a {heard}"]
    assert command(["watch", str(folder), *flags]) == 1
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event["event"] for event in events] == ["code", "ended", "summary"]
    assert (events[0]["code"], events[0]["code_turns"]) == ("E4", [4, 5, 6])
    assert events[1]["scores"].keys() >= {"S1", "S5", "agentic", "task", "overall"}
    assert events[2]["codes"] == {"E4": 1}
    assert [json.loads(line) for line in heard.read_text().splitlines()] == events[:2]
    clean = growing("crc-lite-01", tmp_path / "clean")
    clean.write(clean.count)
    assert command(["watch", str(tmp_path / "clean"), "--until-done", "--every", "0.05"]) == 0
    assert "1 run ended; 0 still running; no code fired" in capsys.readouterr().out
    assert command(["watch", str(tmp_path / "nowhere")]) == 2
    assert command(["watch", str(folder), "--exec", "no-such-program"]) == 2


def test_every_recorded_run_can_grow() -> None:
    assert sum(Growing(path, Path()).count for path in RUNS) == 136
