"""When a criterion counts, in words: tier credits, tiers, requirements and weight."""

from __future__ import annotations

from .model import Criterion


def conditions(criterion: Criterion, tier: str | None = None) -> list[str]:
    """What decides whether and how much a criterion counts; with a tier, only what concerns it."""
    texts = []
    if tier and tier in criterion.credit:
        texts.append(f"credited in {tier}")
    elif criterion.credit and not tier:
        texts.append(f"credited in {', '.join(criterion.credit)}")
    if criterion.tiers is not None:
        if tier and tier not in criterion.tiers:
            texts.append("left out")
        else:
            texts.append(f"only in {', '.join(criterion.tiers)}")
    if criterion.requires:
        texts.append(f"0 without {', '.join(criterion.requires)}")
    if criterion.weight != 1:
        texts.append(f"weight {criterion.weight:g}")
    return texts
