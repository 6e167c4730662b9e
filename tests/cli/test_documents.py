"""Every command that README and docs show: all are understood, and those that need no model or
foreign log are run."""

from __future__ import annotations

import re
import shlex
import shutil
import tomllib
from pathlib import Path

import click
import pytest
import yaml
from ambjudge.analysis.report.report_tables import TABLES
from ambjudge.analysis.tables.grouping import AGENTS
from ambjudge.cli import app
from ambjudge.commands import import_
from ambjudge.trajectories.importers import IMPORTERS
from ambjudge.version import __version__

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
_FENCE = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_MODEL = re.compile(r" --judge (MODEL|\w+/\S+|local:\S+)")
NOT_RUN = (
    "tasks read",
    "browse",
    "watch",
    "ask",
    "import",
    "demo",
    "selftest --judge",
    "score runs/ --shard",
    "site cards.jsonl",
    "leaderboard parts/",
)
"""A screen, a watch that Ctrl-C ends, a question that only a model answers, logs of others, and
what the tests of shards and of the site run."""


def shown(page: Path) -> list[str]:
    """The command lines of a page, without what is said about them; a synopsis is none."""
    lines = [
        line.removeprefix("$ ")
        for block in _FENCE.findall(page.read_text("utf-8"))
        for line in block.splitlines()
    ]
    found = [re.split(r"\s{2,}|\s#\s", line)[0] for line in lines if line.startswith("ambjudge ")]
    return [
        line.removeprefix("ambjudge ") for line in found if "..." not in line and "|" not in line
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_the_pages_show_is_understood(page: Path) -> None:
    for line in shown(page):
        args = shlex.split(line.split(" > ")[0])
        command: click.Command | None = app
        # With the group's own settings: click keeps the names of --help that a command meets first.
        context = app.make_context("ambjudge", [], resilient_parsing=True)
        while isinstance(command, click.Group):
            name = args.pop(0)
            command = command.get_command(context, name)
            assert command is not None, f"{page.name}: {line}: no command {name}"
        try:
            command.make_context(line, args, parent=context)
        except click.UsageError as error:
            pytest.fail(f"{page.name}: {line}: {error.format_message()}")


def test_the_pages_walk_from_the_demo_to_a_finding_with_its_quote(
    out, tmp_path, monkeypatch
) -> None:
    """All commands once, in their order, in the folder that `ambjudge demo` writes."""
    code, text, _ = out("demo")
    assert code == 0
    suggested = [
        re.split(r"\s{2,}", line)[0] for line in text.splitlines() if line.startswith("ambjudge ")
    ]
    demo = tmp_path / "ambjudge-demo"
    for run in (demo / "runs").iterdir():
        if not run.name.endswith(("-1", "-2")):  # a part is enough to run the commands, and faster
            shutil.rmtree(run)
    monkeypatch.chdir(demo)
    monkeypatch.setenv("AMBJUDGE_STORE", str(demo / "s.db"))
    shutil.copytree(ROOT / "examples", "examples")
    shutil.copy(ROOT / "rubrics" / "vqa.yaml", "my-vqa.yaml")
    shutil.copytree("runs", "moved")
    cards = out("score", "runs", "--json")[1]
    for name in ("old", "new", "pilot"):
        Path(f"{name}.jsonl").write_text(cards, encoding="utf-8")
    pages = sorted(PAGES, key=lambda page: page.name != "tutorial.md")
    lines = [line.removeprefix("ambjudge ") for line in suggested] + [
        line for page in pages for line in shown(page)
    ]
    (demo / "public").mkdir()
    done: dict[str, str] = {}
    kinds = set()
    walk = shown(ROOT / "docs" / "tutorial.md")
    for line in lines:
        wanted, _, target = _MODEL.sub(
            "", line.replace("--workers 8", "--workers 1").replace("--engine ray ", "")
        ).partition(" > ")
        plain = wanted.strip()
        # once is enough, but on the walk
        kind = (plain.split()[0], *sorted(re.findall(r" (--?\w[\w-]*)", plain)))
        if (
            line.startswith(NOT_RUN)
            or "://" in plain
            or (kind in kinds and (plain in done or line not in walk) and kind[0] != "rubric")
        ):
            continue
        kinds.add(kind)
        code, text, err = out(*shlex.split(plain))
        assert code in (0, 1), f"{line}: {err}"
        assert "internal error" not in err
        if target:
            Path(target).write_text(text, encoding="utf-8")
        done[plain] = text
    assert len(done) > 25
    assert (
        "turn 3: “RuntimeError: stack expects each tensor to be equal size”"
        in done["score runs/elm-chest-1"]
    )
    assert "agent-ash" in done["leaderboard runs/"]
    assert any(
        "The batch was run at once" in page.read_text("utf-8")
        for page in (demo / "site" / "pages").rglob("*.html")
    )
    assert (demo / "report" / "report.html").is_file()


def test_the_page_and_the_help_name_every_format_that_is_imported() -> None:
    page = (ROOT / "docs" / "importing.md").read_text("utf-8")
    documented = re.findall(r"^ambjudge import ([\w-]+) \S+ --", page, re.MULTILINE)
    assert sorted(documented) == sorted(IMPORTERS.names), "one command for each in its first block"
    in_table = set(re.findall(r"^\| `([\w-]+)` \| ", page, re.MULTILINE))
    assert in_table == {*IMPORTERS.names} - {"conversation"}, "one row for each in its table"
    named_in_help = re.findall(r"[\w-]+", import_.command.help or "")
    unnamed = set(IMPORTERS.names) - set(named_in_help)
    assert not unnamed, "name it in the help: commands/import_.py"


def test_the_page_names_every_table() -> None:
    page = (ROOT / "docs" / "analysis.md").read_text("utf-8")
    section = page.partition("\n## Tables\n")[2].partition("\n## ")[0]
    documented = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", section, re.MULTILINE))
    titles = {
        name: AGENTS.fill(TABLES.get(name).title.replace("{score}", "the score"))
        for name in TABLES.names
    }
    assert documented == {name: title[:1].upper() + title[1:] for name, title in titles.items()}


def test_the_citation_has_the_package_s_version_and_licence() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == __version__
    assert citation["license"] == project["license"]
    assert citation["abstract"] == project["description"]
    assert citation["authors"]
    assert citation["message"]
