"""How often a judge's readings of codes were right, where human labels say so: the confidence that
its codes carry."""

from __future__ import annotations

from collections import Counter

from ..store import Store
from .human_labels import stored_labels

LEAST = 5
"""Labelled readings of a code below which no share is stated."""


def shares_right(store: Store, judge: str) -> dict[str, float]:
    """By code, the share of this judge's *present* readings in the store that labels confirm; codes
    with too few are left out. A run with several annotators counts once an annotator; labels
    without a look for codes say nothing.
    """
    labels = [label for label in stored_labels(store) if "codes" in label.model_fields_set]
    if not labels:
        return {}
    runs = {label.run for label in labels}
    fired = {
        card["run"]["id"]: {
            code["code"] for code in card["codes"] if code["by"] == f"judge:{judge}"
        }
        for _, card in store.iter_card_data()
        if card["judge"]["name"] == judge and card["run"]["id"] in runs
    }
    said, right = Counter[str](), Counter[str]()
    for label in labels:
        for code in fired.get(label.run, ()):
            said[code] += 1
            right[code] += code in label.codes
    return {code: right[code] / count for code, count in said.items() if count >= LEAST}
