"""What keeps the browser fast, as limits: the figures are from benchmarks/tui.py, the limits are those of the design.

The best of three counts, as other processes may have the processor.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
_spec = importlib.util.spec_from_file_location("benchmark_tui", ROOT / "benchmarks" / "tui.py")
assert _spec is not None
assert _spec.loader is not None
benchmark = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(benchmark)


async def best(measure: Any, limits: dict[str, float]) -> None:
    """Measure up to three times, until every limit was kept at least once."""
    lowest: dict[str, float] = {}
    for _ in range(3):
        for name, value in (await measure()).items():
            lowest[name] = min(value, lowest.get(name, value))
        if all(lowest[name] < limit for name, limit in limits.items()):
            return
    pytest.fail(str({name: (round(lowest[name], 1), limit) for name, limit in limits.items() if lowest[name] >= limit}))


async def test_ten_thousand_runs() -> None:
    limits = {"mount_ms": 150, "down_cpu_ms": 60, "page_cpu_ms": 60, "sort_ms": 100, "filter_ms": 100}
    await best(benchmark.table, limits)


async def test_a_transcript_of_ten_megabytes(tmp_path: Path) -> None:
    limits = {"open_ms": 250, "page_cpu_ms": 60, "page_unfolded_cpu_ms": 60, "search_ms": 250, "memory_mb": 80}
    await best(lambda: benchmark.transcript(10, tmp_path), limits)


def test_the_command_loads_nothing_heavy_and_the_first_screen_no_models() -> None:
    code = (
        "import sys, ambjudge.cli, ambjudge.commands.browse; first = set(sys.modules)\n"
        "assert not {'textual', 'pydantic', 'rich', 'sqlalchemy'} & first, first\n"
        "import ambjudge.tui.app\n"
        "heavy = {'pydantic', 'sqlalchemy', 'numpy', 'polars', 'yaml', 'markdown_it', 'pygments.lexers', 'litellm'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_reading_a_run_needs_no_slow_widget() -> None:
    code = (
        "import sys, ambjudge.tui.run_screen, ambjudge.tui.compare_screen, ambjudge.tui.label_screen\n"
        "slow = [n for n in sys.modules if n.startswith('textual.widgets._') and n.rsplit('_', 1)[-1] in ('markdown', 'table')]\n"
        "slow += [n for n in ('textual.widgets._rich_log', 'textual.widgets._text_area') if n in sys.modules]\n"
        "assert not slow, slow\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
