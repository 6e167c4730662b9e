"""Commands start in a blink because nothing heavy is imported until it is needed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = (
    "litellm",
    "torch",
    "transformers",
    "statsmodels",
    "sklearn",
    "textual",
    "polars",
    "numpy",
    "scipy",
    "pandas",
    "matplotlib",
    "nibabel",
    "PIL",
    "yaml",
    "jsonschema",
    "sqlalchemy",
    "tenacity",
    "rich",
    "httpx",
    "openai",
)
NOT_FOR_BROWSING = (
    "pydantic",
    "sqlalchemy",
    "numpy",
    "polars",
    "yaml",
    "markdown_it",
    "pygments.lexers",
    "litellm",
)
SLOW_WIDGETS = (
    "textual.widgets._markdown",
    "textual.widgets._data_table",
    "textual.widgets._rich_log",
    "textual.widgets._text_area",
)
NOT_FOR_HELP = (*HEAVY, "pydantic", "asyncio", "importlib.metadata")

HELPED = ("score", "ask", "analyze", "leaderboard", "agreement", "simulate", "export", "site")

CASES = [
    pytest.param("import ambjudge", HEAVY, id="import ambjudge"),
    pytest.param("from ambjudge.cli import run; run(['--help'])", NOT_FOR_HELP, id="--help"),
    pytest.param("from ambjudge.cli import run; run(['--version'])", NOT_FOR_HELP, id="--version"),
    pytest.param(
        f"from ambjudge.cli import run\nfor name in {HELPED!r}: run([name, '--help'])",
        HEAVY,
        id="help of commands",
    ),
    pytest.param("import ambjudge; ambjudge.load_run", HEAVY, id="load_run"),
    pytest.param("import ambjudge; ambjudge.analysis", HEAVY, id="analysis"),
    pytest.param(
        "import ambjudge.analysis.figures", ("matplotlib", "polars", "numpy"), id="names of figures"
    ),
    pytest.param(
        "import ambjudge.cli, ambjudge.commands.browse",
        ("textual", "pydantic", "rich", "sqlalchemy"),
        id="browse",
    ),
    pytest.param(
        "import ambjudge.commands.browse, ambjudge.tui.app", NOT_FOR_BROWSING, id="the first screen"
    ),
    pytest.param(
        "import ambjudge.tui.run_screen, ambjudge.tui.compare_screen, ambjudge.tui.label_screen",
        SLOW_WIDGETS,
        id="the screens of a run",
    ),
]


@pytest.mark.parametrize(("statement", "forbidden"), CASES)
def test_loads_nothing_heavy(statement: str, forbidden: tuple[str, ...]) -> None:
    code = f"import sys, json\n{statement}\nprint('\\n' + json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stdout.rsplit("\n", 2)[1]))
    assert not loaded & set(forbidden)
