"""The raw bytes that a real terminal gets from every screen, for runs that try to steer it.

A headless test cannot see this kind of fault, as nothing is ever written.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import payloads
import pytest
import terminal

DATA = Path(__file__).parents[1] / "data"

_POINTER = re.compile(rb"\x1b\]22;[a-z-]*\x07")
"""Textual sets the shape of the mouse pointer; the one sequence of its own that ends in a bell."""


def _check(output: bytes) -> None:
    drawn = _POINTER.sub(b"", output)
    found = [name for name, bad in payloads.FORBIDDEN.items() if bad in drawn]
    assert found == [], f"{found} reached the terminal"


TABLE = "space Mark"
"""In the footer while the table of runs takes the keys; the other names likewise."""
RUN = "f Next failure"
LABELS = "e Cite this turn"
COMPARISON = "v All criteria"
WINDOW = "escape: close"
PROMPT = "enter: accept"


def _play(tty: terminal.Terminal, steps: list[tuple[str, str, str]]) -> None:
    """Press keys; after each step wait until the screen shows what the next key needs.

    A step is (keys, what is shown then, what is no longer shown). Windows are left by `q`: an
    escape and a letter at once are Alt and the letter.
    """
    for keys, present, absent in steps:
        tty.press(keys)
        tty.wait_until(_screen_shows(present, absent), f"after {keys!r}: {present!r}")


def _screen_shows(present: str, absent: str) -> Callable[[str], bool]:
    return lambda text: present in text and not (absent and absent in text)


def test_no_screen_lets_a_payload_through(tmp_path: Path) -> None:
    runs = payloads.hostile_run(tmp_path)
    environment = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    steps = [
        ("A", "Analysis of the runs", ""),
        ("q", TABLE, WINDOW),
        ("/", "/ Filter", TABLE),
        ("evil\r", TABLE, ""),
        ("\r", "turn 1 of 2", "reading …"),
        ("]", "S1a: evidence 1", ""),
        ("e", "plan.md from the file", ""),
        ("d", "E4: evidence 1", "plan.md from the file"),
        ("Z", RUN, ""),
        ("G", "turn 2 of 2", ""),
        ("x", "spelled out", ""),
        ("q", RUN, WINDOW),
        ("/", "search this run", RUN),
        ("failed\r", "· hit ", "search this run"),
        ("v", "plan.md from the file", ""),
        ("v", "Delivered", ""),
        ("v", '"schema"', ""),
        ("v", "Agentic", '"schema"'),
        ("?", WINDOW, ""),
        ("q", RUN, WINDOW),
        ("a", "no stage yet", RUN),
        ("1", "turn 2 of 2", ""),
        ("r", "You and ", ""),
        ("r", LABELS, "You and "),
        ("]+e", "★2", ""),
        ("\x13", "· saved", ""),
        ("q", RUN, LABELS),
        ("q", TABLE, RUN),
        ("c", "Only one", ""),
        ("R", "its cost is shown first", ""),
    ]
    with terminal.Terminal(
        ["-v", "browse", str(runs), "--annotator", "a\x1b[2J"], env=environment, size=(110, 32)
    ) as tty:
        tty.wait_until(_screen_shows(" sub ", "scoring, "), "the run is listed and scored")
        _play(tty, steps)
        assert tty.leave("\x1bq") == 0
        _check(tty.output)
        assert "␛[2J".encode() in tty.output
        assert b"[red]" in tty.output
    assert not list(tmp_path.glob("*.svg"))


@pytest.mark.slow
def test_compare_and_the_notes_prompt_let_no_payload_through(tmp_path: Path) -> None:
    """Two hostile runs that differ, side by side; then notes that another program left in the label
    file."""
    from ambjudge.judge.trust.human_labels import Labels, export_labels

    runs = payloads.hostile_run(tmp_path)
    first = next(runs.iterdir())
    second = shutil.copytree(first, runs / f"{first.name} again")
    shutil.rmtree(second / "outputs")
    hostile = payloads.ALL.replace("\ud800", "")
    export_labels(
        [Labels(run=run.name, annotator="a", notes=hostile) for run in (first, second)],
        tmp_path / "labels",
    )
    steps = [
        (" ", "1 marked", ""),
        ("j", TABLE, ""),
        (" ", "2 marked", ""),
        ("c", COMPARISON, "reading …"),
        ("]", COMPARISON, ""),
        ("e", COMPARISON, ""),
        ("]", COMPARISON, ""),
        ("e", COMPARISON, ""),
        ("v", COMPARISON, ""),
        ("]", COMPARISON, ""),
        ("e", COMPARISON, ""),
        ("G", COMPARISON, ""),
        ("\t", COMPARISON, ""),
        ("G", COMPARISON, ""),
        ("\t", COMPARISON, ""),
        ("G", COMPARISON, ""),
        ("1", COMPARISON, ""),
        ("?", WINDOW, ""),
        ("q", COMPARISON, WINDOW),
        ("q", TABLE, COMPARISON),
        ("\r", "turn 1 of 2", "reading …"),
        ("a", LABELS, RUN),
        ("m", PROMPT, ""),
        ("\x1b[H", PROMPT, ""),
        ("\x1b[F", PROMPT, ""),
        ("!\r", "not saved", PROMPT),
        ("G", "please continue", ""),
        ("u", LABELS, ""),
        ("m", PROMPT, ""),
        ("\x1b[200~pasted\u202e\u200b\x07\x9b31m\x1b[201~", "pasted", ""),
        ("\r", "not saved", PROMPT),
        ("u", LABELS, ""),
        ("q", RUN, LABELS),
        ("q", TABLE, RUN),
    ]
    arguments = [
        "browse",
        str(runs),
        "--store",
        "none",
        "--annotator",
        "a",
        "--labels",
        str(tmp_path / "labels"),
    ]
    with terminal.Terminal(
        arguments, env={"XDG_CONFIG_HOME": str(tmp_path / "config")}, size=(110, 40)
    ) as tty:
        tty.wait_until(_screen_shows(" sub ", "scoring, "), "the runs are listed and scored")
        _play(tty, steps)
        assert tty.leave("q") == 0
        _check(tty.output)
        assert "␛[2J".encode() in tty.output


@pytest.mark.slow
def test_hostile_scorecards_are_drawn_safely(tmp_path: Path) -> None:
    """A scorecard is a file like any other: rationales, quotes, names and problems may hold
    anything."""
    import json

    text = payloads.ALL.replace("\ud800", "")
    card = json.loads((DATA / "tui" / "cards.jsonl").read_text().splitlines()[1])
    for key in ("id", "agent", "model", "task"):
        card["run"][key] = f"{key}{text}"
    card["judge"]["name"] = f"j{text}"
    card["rubric"]["id"] = f"r{text}"
    for stage in card["stages"].values():
        stage["cap_reason"], stage["cap"] = text, 0.5
        for criterion in stage["criteria"]:
            criterion["rationale"], criterion["id"] = text, criterion["id"] + text
            criterion["evidence"] = [{"turn": 1, "quote": text, "check": "not_found"}]
        if stage.get("checks"):
            stage["checks"]["problems"] = [text]
    card["codes"][0] |= {"code": f"E3{text}", "why": text, "by": f"detector:{text}"}
    card["warnings"], card["contradictions"] = (
        [text],
        [{"criterion": text, "fact": text, "turns": [1]}],
    )
    file = tmp_path / "cards.jsonl"
    file.write_text(json.dumps(card) + "\n")
    with terminal.Terminal(
        ["browse", str(file), "--store", "none"], env={"XDG_CONFIG_HOME": str(tmp_path)}
    ) as tty:
        tty.wait_until(_screen_shows("1 runs", ""), "the run is listed")
        steps = [
            ("\r", "Agentic", "reading …"),
            ("]", ": evidence 1", ""),
            ("]", ": evidence 1", ""),
            ("d", "E4: evidence", ""),
            ("vvvv", "Agentic", '"schema"'),
            ("?", WINDOW, ""),
            ("q", RUN, WINDOW),
            ("q", TABLE, RUN),
            ("A", "Analysis", ""),
            ("q", TABLE, WINDOW),
            ("R", TABLE, ""),
        ]
        _play(tty, steps)
        assert tty.leave("\x1bq") == 0
        _check(tty.output)
        assert "␛[2J".encode() in tty.output


def test_the_terminal_is_left_as_it_was(tmp_path: Path) -> None:
    arguments = [
        "browse",
        str(DATA / "recorded" / "runs"),
        "--cards",
        str(DATA / "tui" / "cards.jsonl"),
        "--store",
        "none",
    ]
    with terminal.Terminal(arguments, env={"XDG_CONFIG_HOME": str(tmp_path)}) as tty:
        tty.wait_for(b"15 runs")
        assert tty.leave("q") == 0
        assert b"\x1b[?1049l" in tty.output
        assert b"\x1b[?25h" in tty.output


@pytest.mark.parametrize(
    ("arguments", "settings", "says"),
    [
        (["browse", "nowhere"], {}, b"nowhere: no such file or folder"),
        (["browse", "."], {"AMBJUDGE_THEME": "pink"}, b"unknown theme 'pink'"),
        (["browse", "."], {"AMBJUDGE_TRACK": "golf"}, b"unknown track 'golf'"),
    ],
    ids=["no path", "no theme", "no track"],
)
def test_mistakes_are_told_before_the_screen_is_taken(
    arguments: list[str], settings: dict[str, str], says: bytes
) -> None:
    with terminal.Terminal(arguments, env=settings) as tty:
        tty.wait_for(says)
        tty.read(0.2)
        assert b"\x1b[?1049h" not in tty.output
        assert tty.process.wait(5) == 2


def test_without_a_terminal_it_says_so() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ambjudge.cli", "browse", "."],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 2
    assert b"browse needs a terminal" in done.stderr
    assert done.stdout == b""


@pytest.mark.skipif(
    shutil.which("tmux") is None,
    reason="tmux is not installed: the end-to-end test of the browser is NOT run",
)
def test_in_a_real_terminal_from_the_table_to_the_words(tmp_path: Path) -> None:
    """The whole way in tmux at 80x24: find a run, open it, follow a criterion to its words, come
    back, quit."""
    name = f"ambjudge-{uuid.uuid4().hex[:8]}"
    runs, cards = DATA / "recorded" / "runs", DATA / "tui" / "cards.jsonl"
    command = (
        f"env XDG_CONFIG_HOME={tmp_path} {sys.executable} -m ambjudge.cli browse {runs} --cards"
        f" {cards} --store none; echo ended $?; sleep 30"
    )
    tmux = ["tmux", "-L", name, "-f", "/dev/null"]

    def screen(*words: str, seconds: float = 20) -> str:
        end = time.monotonic() + seconds
        while True:
            shown = subprocess.run(
                [*tmux, "capture-pane", "-p"], capture_output=True, text=True, check=True
            ).stdout
            if all(word in shown for word in words):
                return shown
            assert time.monotonic() < end, f"{words} never on the screen:\n{shown}"
            time.sleep(0.1)

    def press(*keys: str) -> None:
        subprocess.run([*tmux, "send-keys", *keys], check=True)

    subprocess.run([*tmux, "new-session", "-d", "-x", "80", "-y", "24", command], check=True)
    try:
        screen("15 runs", "bccd-lite-01", "100.0")
        press("/", "code:E3 track:det", "Enter")
        screen("15 runs · 2 shown")
        press("Enter")
        screen("bccd-lite-04", "Turn 1 · S1", "S1a plan.md exists")
        press("]")
        screen("Looked for")
        press("d")
        screen("E4: evidence 3")
        press("3")
        screen("S3 Validate")
        press("L")
        screen("bccd-std-01")
        press("q")
        screen("15 runs · 2 shown")
        press("q")
        screen("ended 0")
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)
