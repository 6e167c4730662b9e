"""docs/rubrics.md, "A rubric of your own", as a user types it: begin, judge, look, judge again,
compare, verify."""

from __future__ import annotations

import json
from pathlib import Path

from ambjudge.testing import tiny_run


def test_from_nothing_to_verdicts_on_runs_of_any_kind(out, judge_server, tmp_path: Path) -> None:
    for name in ("a", "b"):
        tiny_run(tmp_path / "runs" / name)
    judge_server.script = ["good"]
    code, text, _ = out("rubric", "new")
    mine = tmp_path / "mine.yaml"
    mine.write_text(text, "utf-8")
    assert (code, out("rubric", "validate", mine)) == (0, (0, f"{mine}: valid\n", ""))
    assert "preamble: The record is of an agent" in out("rubric", "show", mine)[1]
    judge = ("--judge", "m", "--api-base", judge_server.url, "--store", "s.db", "--no-diagnosis")
    common = ("runs", "--rubric", mine, *judge)

    code, text, err = out("score", *common, "--out", "cards.jsonl")
    assert code == 0, err
    heads = text.split("\n")[0].split()
    assert heads.index("honesty") == heads.index("care") + 1
    assert not {"S1", "S4", "S5"} & set(heads)
    assert 2 <= judge_server.count <= 4, (
        "two groups; runs of equal bytes are asked of once or twice, as they meet"
    )
    code, text, _ = out("verify", "cards.jsonl", "--rubric", mine)
    assert code == 0, text
    assert "0 calls" in out("rejudge", *common, "--dry-run")[1]
    # Its groups and the titles of its criteria go with the scorecards to whoever looks at them.
    assert out("site", "cards.jsonl", "--out", "site", "--no-report")[0] == 0
    data = (tmp_path / "site" / "runs.js").read_text("utf-8")
    assert '{"care":1.0,"honesty":1.0}' in data
    title = json.loads((tmp_path / "cards.jsonl").read_text("utf-8").split("\n")[0])["rubric"][
        "titles"
    ]["checked"]
    page = next((tmp_path / "site" / "pages").glob("*.html")).read_text("utf-8")
    assert f'<b class="id">checked</b> {title}' in page

    mine.write_text(
        mine.read_text("utf-8").replace("Listing the folder", "Listing a folder"), "utf-8"
    )
    code, text, _ = out("rejudge", *common, "--dry-run", "--json")
    assert json.loads(text)["calls"] == 1, "one criterion, two runs of equal bytes"
    code, text, _ = out("export", "s.db", "--what", "verdicts", "--format", "jsonl")
    rows = [json.loads(line) for line in text.splitlines()]
    assert sorted({(row["stage"], row["criterion"]) for row in rows}) == [
        ("care", "checked"),
        ("honesty", "labels"),
    ]

    # A new version replaces the scorecards, and is compared with the old ones on the same runs.
    mine.write_text(mine.read_text("utf-8").replace('version: "1.0"', 'version: "9.0"'), "utf-8")
    assert out("score", *common)[0] == 0
    code, text, err = out(
        "compare", "1.0", "9.0", "s.db", "--by", "rubric", "--outcome", "agentic", "--json"
    )
    assert code == 0, err
    assert [(side["name"], side["runs"]) for side in json.loads(text)["sides"]] == [
        ("1.0", 1),
        ("9.0", 1),
    ], "equal bytes"
    lines = out("export", "s.db", "--what", "runs", "--format", "jsonl")[1].splitlines()
    assert len(lines) == 1, "runs of equal bytes are one run"


def test_what_is_written_out_can_be_read_back(out, tmp_path: Path) -> None:
    code, text, _ = out("rubric", "show", "vqa", "--yaml")
    (tmp_path / "vqa2.yaml").write_text(text, "utf-8")
    assert code == 0
    assert out("rubric", "diff", "vqa", "vqa2.yaml")[1].strip() == ""
    (tmp_path / "heavy.yaml").write_text(text.replace("weight: 0.25", "weight: 0.3"), "utf-8")
    code, text, _ = out("rubric", "validate", "heavy.yaml")
    assert code == 0
    assert "note: stages: the weights add up to 1.05, not to 1 (S1 0.3 counts 0.286" in text
    assert out("rubric", "new", "vqua")[0] == 2
