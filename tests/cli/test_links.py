"""Folders that commands write into: no link there leads them to another file, and what they did
not write stays."""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
CARDS = TESTS / "data" / "tui" / "cards.jsonl"
LABELS = TESTS / "data" / "recorded" / "labels"
RUN = TESTS / "data" / "recorded" / "runs" / "bccd-lite-01"
WRITTEN = {
    "table": (("analyze", CARDS, "--out", "made"), "tables/runs.csv"),
    "page": (("site", CARDS, "--no-report", "--out", "made"), "index.html"),
    "pages": (("site", CARDS, "--no-report", "--out", "made"), "pages"),
    "data": (("site", CARDS, "--no-report", "--out", "made"), "runs.js"),
    "labels": (("label", "export", "--store", "labels.db", "--out", "made"), "a1"),
    "shard": (("score", RUN, "--shard", "1/1", "--out", "made"), "part-00001-of-00001.jsonl"),
}


@pytest.mark.parametrize("case", WRITTEN)
def test_no_link_in_a_folder_leads_to_another_file(case: str, out, tmp_path: Path) -> None:
    command, name = WRITTEN[case]
    victims = tmp_path / "victims"
    victims.mkdir()
    is_folder = "." not in name
    victim = victims if is_folder else victims / "thesis.txt"
    (victims / "thesis.txt").write_text("mine", encoding="utf-8")
    link = tmp_path / "made" / name
    link.parent.mkdir(parents=True)
    link.symlink_to(victim)
    if command[0] == "site" and name != "runs.js":
        (tmp_path / "made" / "runs.js").write_text("// a site", encoding="utf-8")
    if command[0] == "label":
        assert out("label", "import", LABELS, "--store", "labels.db")[0] == 0
    code, _, err = out(*command)
    assert code == 2
    assert "is a link" in err or "holds other files" in err, err
    assert [path.name for path in victims.iterdir()] == ["thesis.txt"]
    assert (victims / "thesis.txt").read_text("utf-8") == "mine"


def test_a_site_removes_only_its_own_pages(out, tmp_path: Path) -> None:
    few = tmp_path / "few.jsonl"
    lines = CARDS.read_text("utf-8").splitlines()
    few.write_text("\n".join(lines[:2]), encoding="utf-8")
    site = ("site", few, "--no-report", "--out", "made")
    assert out(*site)[0] == 0
    pages = tmp_path / "made" / "pages"
    others = [
        pages / "notes.html",
        pages / "notes-0a1b2c3d.html",
        tmp_path / "made" / "report.html",
    ]
    for path in others:
        path.write_text("mine", encoding="utf-8")
    few.write_text(lines[0], encoding="utf-8")
    assert out(*site)[0] == 0
    assert len([*pages.iterdir()]) == 1 + 2
    assert all(path.read_text("utf-8") == "mine" for path in others)
