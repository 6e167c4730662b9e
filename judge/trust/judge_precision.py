"""Precision of a judge's readings of codes, by human labels: the confidence of its codes."""

from __future__ import annotations

from collections import Counter

from ..card.choice import ALL_JUDGES, CardChoice
from ..store import Store
from .human_labels import stored_labels

MIN_READINGS = 5
"""Labelled readings of a code below which no precision is stated."""


def precision_by_code(store: Store, judge: str) -> dict[str, float]:
    """Code -> the share of this judge's *present* readings in the store that labels confirm.

    Codes with too few readings are left out. A run with several annotators counts once for each;
    labels of annotators who did not look for codes do not count.
    """
    labels = [label for label in stored_labels(store) if "codes" in label.model_fields_set]
    if not labels:
        return {}
    labelled_runs = {label.run for label in labels}
    read_codes: dict[str, set[str]] = {}
    seqs = [
        stored.seq
        for stored in store.in_force(choice=CardChoice(ALL_JUDGES))
        if stored.head.judge == judge and stored.head.run_id in labelled_runs
    ]
    for _, _, card in store.card_data_at(seqs):
        own_codes = (code for code in card["codes"] if code["by"] == f"judge:{judge}")
        read_codes[card["run"]["id"]] = {code["code"] for code in own_codes}
    readings, confirmed = Counter[str](), Counter[str]()
    for label in labels:
        for code in read_codes.get(label.run, ()):
            readings[code] += 1
            confirmed[code] += code in label.codes
    return {
        code: confirmed[code] / count for code, count in readings.items() if count >= MIN_READINGS
    }
