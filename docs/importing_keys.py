"""Write the table of keys in importing.md from importing.yaml.

    python docs/importing_keys.py

A test holds the page to what this prints.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent
PAGE, KEYS = FOLDER / "importing.md", FOLDER / "importing.yaml"
BEGIN, END = "<!-- keys: begin -->", "<!-- keys: end -->"


def table(formats: Mapping[str, Mapping[str, Mapping[str, str]]]) -> str:
    """The table: for each format, keys that become something else, and keys that are ignored."""
    lines = ["| format | read, as something else | ignored |", "|---|---|---|"]
    for name, keys in formats.items():
        cells = (_cell(keys.get("becomes", {})), _cell(keys.get("ignored", {})))
        lines.append(f"| `{name}` | {cells[0]} | {cells[1]} |")
    return "\n".join(lines)


def _cell(reasons: Mapping[str, str]) -> str:
    """Keys with their reasons; keys of one reason stand together."""
    in_order = sorted(reasons.items(), key=lambda item: list(reasons.values()).index(item[1]))
    parts = []
    for reason, group in groupby(in_order, key=lambda item: item[1]):
        parts.append(f"{', '.join(f'`{key}`' for key, _ in group)}: {reason}")
    return "; ".join(parts) or "–"


def page(text: str, formats: Mapping[str, Any]) -> str:
    """The page with a new table between its two marks."""
    before, _, after = text.partition(BEGIN)
    _, _, after = after.partition(END)
    return f"{before}{BEGIN}\n{table(formats)}\n{END}{after}"


if __name__ == "__main__":
    written = page(PAGE.read_text("utf-8"), yaml.safe_load(KEYS.read_text("utf-8")))
    PAGE.write_text(written, "utf-8")
