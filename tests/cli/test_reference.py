"""The reference is written from the program, and every link of the documentation leads
somewhere."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
from ambjudge.commands.registry import COMMANDS
from ambjudge.config import SETTINGS

ROOT = Path(__file__).parents[2]
_LINK = re.compile(r"\]\((?!https?:)([^)\s#]*)(?:#([^)\s]+))?\)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the site is built from."""
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    folder = tmp_path_factory.mktemp("site") / "docs"
    module.write(folder)
    return folder


def test_the_reference_has_what_the_program_has(site: Path) -> None:
    pages = {page.stem: page.read_text("utf-8") for page in (site / "reference").glob("*.md")}
    assert not [name for name in COMMANDS if f"## {name}\n" not in pages["commands"]]
    assert not [name for name in SETTINGS if f"AMBJUDGE_{name.upper()}" not in pages["settings"]]
    assert not re.findall(r"^.*needed\. \|$", pages["scorecard"], re.MULTILINE), (
        "every field says what it holds"
    )
    assert "| `overall` | number 0 to 100 or null, needed. " in pages["scorecard"]
    assert "### paper E3: verification and recovery" in pages["error-codes"]
    assert "score_many(paths: Paths" in pages["python"]
    assert "`--policy`" in pages["commands"]


@pytest.mark.parametrize("where", ["repository", "site"])
def test_links_lead_somewhere(site: Path, where: str) -> None:
    pages = [*(ROOT / "docs").glob("*.md")] if where == "repository" else [*site.rglob("*.md")]
    for page in pages:
        for target, anchor in _LINK.findall(re.sub(r"`[^`]*`", "", page.read_text("utf-8"))):
            file = page.parent / target if target else page
            assert file.exists(), f"{page.name}: {target}"
            if anchor and file.suffix == ".md":
                heads = re.findall(r"^#+ (.+)$", file.read_text("utf-8"), re.MULTILINE)
                named = [
                    re.sub(r"[^\w\- ]", "", head).strip().lower().replace(" ", "-")
                    for head in heads
                ]
                assert anchor in named, f"{page.name}: {target}#{anchor}"


def test_readme_has_no_link_that_a_package_page_lacks() -> None:
    assert _LINK.findall((ROOT / "README.md").read_text("utf-8")) == []


def test_every_page_is_in_the_navigation(site: Path) -> None:
    shown = (ROOT / "docs" / "mkdocs.yml").read_text("utf-8")
    missing = [
        str(page.relative_to(site))
        for page in site.rglob("*.md")
        if str(page.relative_to(site)) not in shown
    ]
    assert missing == []
