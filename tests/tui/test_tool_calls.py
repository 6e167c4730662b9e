"""Calls of foreign tools: edits are diffs and messages are text, by the shape of the arguments."""

from __future__ import annotations

import html
import os
import re
from pathlib import Path
from typing import Any

import pytest
from ambjudge.judge.engine import make_scorecard
from ambjudge.trajectories.models import Run
from ambjudge.trajectories.reading.load import load_run
from ambjudge.views.transcript_layout import Block, blocks_of
from ambjudge.views.transcript_search import locate
from ambjudge.web.site import Site
from tool_turns import call, run_of, shell

EXTERNAL = Path(
    os.environ.get(
        "AMBJUDGE_EXTERNAL_DATA", Path(__file__).parents[3] / "shared" / "data" / "external"
    )
)
OLD, NEW = "def f():\n    return 1\n", "def f():\n    return 2\n"
CHANGED = [" def f():", "-    return 1", "+    return 2"]
BEGIN_PATCH = (
    "*** Begin Patch\n*** Update File: a.py\n@@\n-    return 1\n+    return 2\n*** End Patch"
)
UNIFIED = "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n def f():\n-    return 1\n+    return 2\n"
SEARCH = "<<<<<<< SEARCH\n    return 1\n=======\n    return 2\n>>>>>>> REPLACE"
NEW_FILE = ["+def f():", "+    return 2"]

EDITS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "claude-edit": (call("Edit", file_path="a.py", old_string=OLD, new_string=NEW), CHANGED),
    "anthropic": (
        call("str_replace_editor", command="str_replace", path="a.py", old_str=OLD, new_str=NEW),
        CHANGED,
    ),
    "unknown-name": (call("tweak", path="a.py", old_text=OLD, new_text=NEW), CHANGED),
    "search-replace": (call("change", file="a.py", search=OLD, replace=NEW), CHANGED),
    "list-of-edits": (
        call("MultiEdit", file_path="a.py", edits=[{"old_string": OLD, "new_string": NEW}]),
        CHANGED,
    ),
    "nothing-replaced": (call("Edit", file_path="a.py", old_string="", new_string=NEW), NEW_FILE),
    "deleted": (
        call("Edit", file_path="a.py", old_string=OLD, new_string=""),
        ["-def f():", "-    return 1"],
    ),
    "write": (call("Write", file_path="a.py", content=NEW), NEW_FILE),
    "create": (call("create", path="a.py", file_text=NEW), NEW_FILE),
    "unknown-writer": (call("put", filename="a.py", contents=NEW), NEW_FILE),
    "insert": (call("insert", path="a.py", insert_line=3, new_str="x = 1\n"), ["+x = 1"]),
    "apply-patch": (
        call("apply_patch", input=BEGIN_PATCH),
        [
            " *** Begin Patch",
            " *** Update File: a.py",
            " @@",
            "--    return 1",
            "++    return 2",
            " *** End Patch",
        ],
    ),
    "unified-diff": (
        call("patch_it", diff=UNIFIED),
        [
            " --- a/a.py",
            " +++ b/a.py",
            " @@ -1,2 +1,2 @@",
            "  def f():",
            "--    return 1",
            "++    return 2",
        ],
    ),
    "search-blocks": (
        call("replace_in_file", path="a.py", diff=SEARCH),
        [
            " <<<<<<< SEARCH",
            "-    return 1",
            " =======",
            "+    return 2",
            " >>>>>>> REPLACE",
        ],
    ),
}
"""Calls, and the lines that are shown of them behind their signs."""

MESSAGES = {
    "finish": call("finish", None, message="All done."),
    "openhands-finish": call("finish", None, message="All done.", task_completed="true"),
    "final-answer": call("final_answer", answer="All done."),
    "camel-case": call("finalAnswer", None, value="All done."),
    "submit": call("submit", None, text="All done."),
    "message-user": call("message_user", message="All done."),
    "send-message": call("send_message_to_user", text="All done."),
    "mcp": call("mcp__chat__respond", response="All done."),
    "attempt-completion": call("attempt_completion", None, result="All done."),
}
NO_MESSAGES = {
    "bash": shell("echo done", "done"),
    "search": call("Grep", pattern="finish"),
    "a-tool-with-data": call("query_table", table="x", columns="a, b"),
    "a-file": call("report_file", path="report.md"),
    "todo": call("TodoWrite", todos=[{"content": "finish"}]),
}


def blocks(run: Run) -> list[Block]:
    return [block for block in blocks_of(run) if block.turn and block.kind != "turn"]


@pytest.mark.parametrize(("turn", "lines"), EDITS.values(), ids=EDITS)
def test_an_edit_is_a_diff(turn: Any, lines: list[str], tmp_path: Path) -> None:
    change, *others = blocks(run_of(tmp_path, turn, "Done."))
    assert change.kind in ("diff", "patch")
    assert [sign + line for sign, line in zip(change.signs, change.lines, strict=True)] == lines
    assert change.title.startswith(turn["tool"])
    assert not any("return" in line for block in others for line in block.lines), "shown once"


@pytest.mark.parametrize("turn", MESSAGES.values(), ids=MESSAGES)
def test_what_a_call_says_is_text(turn: Any, tmp_path: Path) -> None:
    run = run_of(tmp_path, shell("ls"), turn)
    said = [block for block in blocks(run) if block.turn == 2]
    assert (said[0].kind, said[0].lines) == ("text", ["All done."])
    assert not any(block.failed or block.kind == "error" for block in said)
    assert run.status.ended in ("stopped", "submitted"), "a closing message ends a run"


@pytest.mark.parametrize("turn", NO_MESSAGES.values(), ids=NO_MESSAGES)
def test_other_calls_are_no_messages(turn: Any, tmp_path: Path) -> None:
    run = run_of(tmp_path, turn)
    assert [block.kind for block in blocks(run) if block.kind == "text"] == []
    assert run.status.ended == "cut"


def test_words_of_both_sides_of_a_diff_are_found(tmp_path: Path) -> None:
    (change, *_) = blocks(run_of(tmp_path, EDITS["claude-edit"][0], "Done."))
    for quote, lines in (("def f():\n    return 2", [0, 2]), ("def f():\n return 1", [0, 1])):
        assert [span.line for span in locate(quote, [change], [0])] == lines


def test_a_page_draws_them_and_has_no_empty_box(tmp_path: Path) -> None:
    turns = [*(turn for turn, _ in EDITS.values()), call("LS"), MESSAGES["finish"]]
    site = Site(tmp_path / "site", near=[tmp_path])
    site.add(make_scorecard(run_of(tmp_path / "run", *turns)))
    site.finish()
    (file,) = (tmp_path / "site" / "pages").iterdir()
    page = file.read_text("utf-8")
    assert '<span class="removed">    return 1\n</span>' in page
    assert '<span class="added">    return 2\n</span>' in page
    assert "<pre></pre>" not in page
    *_, last = re.findall(r'<details class="turn.*?</details>', page, re.DOTALL)
    assert "All done." in html.unescape(last)
    assert "failed" not in last


@pytest.mark.skipif(not EXTERNAL.is_dir(), reason=f"NOT RUN: no external runs at {EXTERNAL}")
def test_real_runs_of_other_agents() -> None:
    """Every edit of 58 recorded runs of coding agents is a diff with all that the agent wrote."""
    paths = [*EXTERNAL.glob("codetracer_tb/*"), *EXTERNAL.glob("mlrbench/*")]
    edits = 0
    for folder in sorted(path for path in paths if path.is_dir()):
        run = load_run(folder)
        shown = [block for block in blocks(run) if block.kind in ("diff", "patch")]
        calls = [action for _, action in run.actions() if action.tool in _FILE_TOOLS]
        assert len(shown) == len(calls), run.id
        edits += len(calls)
        for block, action in zip(shown, calls, strict=True):
            lines = [line for line, sign in zip(block.lines, block.signs, strict=True)]
            assert len(lines) == len(block.signs)
            assert {*action.code.removesuffix("\n").split("\n")} - {""} <= {*lines}, run.id
    assert edits > 400


_FILE_TOOLS = {"Write", "Edit", "apply_patch"}
