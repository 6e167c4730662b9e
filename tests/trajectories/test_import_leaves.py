"""Every leaf of every sample is carried over, or written down as something that is not."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
import yaml
from ambjudge.errors import InputError
from ambjudge.trajectories.importers import IMPORTERS
from ambjudge.trajectories.importers.files import documents
from ambjudge.trajectories.importers.recognise import recognise
from ambjudge.trajectories.importers.saving import save_run
from ambjudge.trajectories.reading.json_bytes import loads, number

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
KEYS: dict[str, Any] = yaml.safe_load((ROOT / "docs" / "importing.yaml").read_text("utf-8"))
_SHORT = 2
_ENDINGS = (".json", ".jsonl", ".traj")


def _samples() -> Iterator[tuple[str, Path]]:
    for folder in ("imports", "cases"):
        for path in sorted((DATA / folder).rglob("*")):
            if path.name.endswith(_ENDINGS) and path.is_file():
                yield recognise(path) or "", path


LEFT_OUT = "rollout-child.jsonl"
"""Its copied history is left out as a whole, and named: `expected.yaml` has its own part."""
SAMPLES = [pair for pair in _samples() if pair[0] and pair[1].name != LEFT_OUT]
FORMATS = sorted({format for format, _ in SAMPLES})


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The scalars in a value with their paths; lists add nothing to a path.

    OpenTelemetry's lists of keys and values count as objects.
    """
    if isinstance(value, dict) and set(value) == {"key", "value"} and isinstance(value["key"], str):
        typed = value["value"]
        inner = next(iter(typed.values()), None) if isinstance(typed, dict) else typed
        yield from _leaves(inner, f"{path}.{value['key']}")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item, path)
    elif value not in (None, ""):
        yield path, value


def _parsed(text: str) -> Any:
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return loads(text)
    except ValueError:
        return None


class _Imported:
    """All texts and numbers that the runs of a file hold."""

    def __init__(self, format: str, path: Path, out: Path) -> None:
        self.texts: set[str] = set()
        self.names: set[str] = set()
        """Keys of the runs: an outcome's name is one."""
        self.numbers: set[float] = set()
        self.files = [path]
        self.is_empty = True
        for position, draft in enumerate(IMPORTERS.get(format).read(path)):
            if isinstance(draft, InputError):
                continue
            self.is_empty = False
            self.files += [file for file in draft.files_beside if file not in self.files]
            folder = out / str(position)
            save_run(draft, folder, path, force=True)
            for file in folder.rglob("*.json*"):
                for document in documents(file):
                    assert not isinstance(document, InputError)
                    self._add(document.value)
            self.texts.update((draft.name, *draft.lost, *draft.notes()))

    def _add(self, value: Any) -> None:
        for path, leaf in _leaves(value):
            self.names.update((path, path.split(".", 1)[-1].rsplit(".", 1)[0]))
            if isinstance(leaf, str):
                self.texts.add(leaf)
                inner = _parsed(leaf)
                if inner is not None:
                    self._add(inner)
            elif not isinstance(leaf, bool):
                self.numbers.add(leaf)

    def holds(self, leaf: Any) -> bool:
        """Whether a leaf of the source stands in the runs, as a whole or within a longer text."""
        if isinstance(leaf, bool):
            return False
        if not isinstance(leaf, str):
            return leaf in self.numbers or str(leaf) in self.texts
        words = leaf.strip()
        if words in self.texts or words in self.names or number(leaf) in self.numbers:
            return True
        # A short word stands in any text by chance.
        return len(words) > _SHORT and any(words in text for text in self.texts)

    def missing(self, value: Any, path: str = "") -> Iterator[str]:
        """The paths of the leaves that do not stand in the runs; JSON kept as text is opened."""
        for key, leaf in _leaves(value, path):
            if self.holds(leaf):
                continue
            inner = _parsed(leaf) if isinstance(leaf, str) else None
            if inner is None:
                yield key
            else:
                yield from self.missing(inner, key)


def _missing(format: str, path: Path, out: Path) -> list[str]:
    """The paths in a file, and in those that are read beside it, that its runs do not hold."""
    imported = _Imported(format, path, out)
    if imported.is_empty:  # a part of a run that begins in another file
        return []
    missing: set[str] = set()
    for file in imported.files:
        if file.name.endswith(_ENDINGS):
            for document in documents(file):
                if not isinstance(document, InputError):
                    missing.update(imported.missing(document.value))
    return sorted(missing)


def _patterns(format: str) -> dict[str, str]:
    keys = KEYS[format]
    return {**keys.get("becomes", {}), **keys.get("ignored", {})}


def test_the_page_has_the_lists() -> None:
    """`python docs/importing_keys.py` writes it again."""
    spec = importlib.util.spec_from_file_location("keys", ROOT / "docs" / "importing_keys.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = module.PAGE.read_text("utf-8")
    assert module.page(text, KEYS) == text


def test_every_format_has_samples() -> None:
    """Parquet's rows are read like OpenAI's messages."""
    assert {*FORMATS, "parquet", "conversation"} == set(IMPORTERS.names)


@pytest.mark.parametrize("format", FORMATS)
def test_every_leaf_is_carried_over_or_in_the_list(format: str, tmp_path: Path) -> None:
    patterns = _patterns(format)
    used: set[str] = set()
    unexplained: list[str] = []
    for position, (sample_format, path) in enumerate(SAMPLES):
        if sample_format != format:
            continue
        for key in _missing(format, path, tmp_path / str(position)):
            matches = [pattern for pattern in patterns if fnmatchcase(key, pattern)]
            used.update(matches)
            if not matches:
                unexplained.append(f"{path.relative_to(DATA)}: {key}")
    assert unexplained == []
    assert set(patterns) - used == set(), "these are in the list, and no sample has them"
