"""The published JSON Schema of the scorecard: `python -m ambjudge.judge.card.json_schema FILE`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from .fields import SCHEMA
from .scorecard import ScoreCard


def scorecard_schema() -> dict[str, Any]:
    """The schema of `ScoreCard` as serialised; the summary of each docstring is one line."""
    schema = ScoreCard.model_json_schema(by_alias=True, mode="serialization")
    for model in (schema, *schema["$defs"].values()):
        _join_summary(model)
        for field in model.get("properties", {}).values():
            _join_summary(field)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA, **schema}


def _join_summary(described: dict[str, Any]) -> None:
    """Write the first paragraph of a description as one line."""
    if "description" in described:
        summary, blank, details = described["description"].partition("\n\n")
        described["description"] = " ".join(summary.split()) + blank + details


if __name__ == "__main__":
    text = json.dumps(scorecard_schema(), indent=1, ensure_ascii=False)
    Path(sys.argv[1]).write_text(text + "\n", encoding="utf-8")
