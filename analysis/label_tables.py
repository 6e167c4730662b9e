"""Human labels in the format of the labelling guideline, as tables: criteria values and fired codes by run and annotator."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from ..errors import InputError
from ..judge.trust.human_labels import LABEL_FIELDS, parse_labels
from .card_sources import is_store
from .codes_read import CODES

CRITERIA: dict[str, Any] = {"run_id": pl.String, "annotator": pl.String, "criterion": pl.String, "value": pl.Float64}
FIRED: dict[str, Any] = {"run_id": pl.String, "annotator": pl.String, **dict.fromkeys(CODES, pl.Boolean)}


@dataclass(frozen=True)
class Labels:
    """`criteria`: run_id, annotator, criterion, value; `codes`: run_id, annotator, E1..E5 (fired or not; null: not read)."""

    criteria: pl.DataFrame
    codes: pl.DataFrame

    def of(self, annotator: str) -> Labels:
        """The labels of one annotator."""
        keep = pl.col("annotator") == annotator
        return Labels(self.criteria.filter(keep), self.codes.filter(keep))

    @property
    def annotators(self) -> list[str]:
        names = pl.concat([self.criteria["annotator"], self.codes["annotator"]]).unique().sort()
        return [str(name) for name in names.to_list()]

    @property
    def usual(self) -> str:
        """The annotator who counts where none is named: `gold`, else the first by name."""
        names = self.annotators
        return "gold" if "gold" in names or not names else names[0]


def read_labels(source: str | Path | Iterable[str | Path | Mapping[str, Any]]) -> Labels:
    """Label files, folders of them (read recursively), JSON Lines files, a verdict store, or label objects.

    Raises InputError for a file that is no label, naming file and field.
    """
    criteria: list[tuple[Any, ...]] = []
    codes: list[tuple[Any, ...]] = []
    for item, where in _items(source):
        # Absent codes were not looked for; empty ones say that none fired.
        looked = item.get("codes") is not None
        known = {key: item[key] for key in LABEL_FIELDS if item.get(key) is not None}
        said = parse_labels({"annotator": "a1", **known}, where)
        criteria += [(said.run, said.annotator, id, float(v)) for id, v in said.criteria.items() if v is not None]
        if looked:
            codes.append((said.run, said.annotator, *(code in said.codes for code in CODES)))
    return Labels(
        pl.DataFrame(criteria, schema=CRITERIA, orient="row"), pl.DataFrame(codes, schema=FIRED, orient="row")
    )


def _items(source: Any) -> Iterable[tuple[Mapping[str, Any], Path]]:
    if isinstance(source, Mapping):
        yield source, Path("label")
        return
    if not isinstance(source, str | Path):
        for part in source:
            yield from _items(part)
        return
    if is_store(source):
        from ..judge.store import open_store

        with open_store(source, create=False) as store:
            for run, annotator, body in store.labels():
                yield json.loads(body), Path(f"{source}: {annotator}'s labels of {run}")
        return
    path = Path(source)
    if path.is_dir():
        for file in sorted([*path.rglob("*.json"), *path.rglob("*.jsonl")]):
            yield from _items(file)
        return
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise InputError("cannot be read", "give label files", path) from error
    texts = [line for line in text.splitlines() if line.strip()] if path.suffix == ".jsonl" else [text]
    for number, part in enumerate(texts, 1):
        try:
            data = json.loads(part)
        except (ValueError, RecursionError) as error:
            raise InputError(f"not JSON (record {number})", "see the label format", path) from error
        for item in data if isinstance(data, list) else [data]:
            if not isinstance(item, Mapping):
                raise InputError(f"record {number} is no object", "see the label format", path)
            yield item, Path(f"{path}:{number}")
