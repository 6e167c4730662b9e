"""From the hashes that scorecards and verdicts name to the texts that a store keeps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..config import load
from ..errors import InputError
from .sessions import store_place

if TYPE_CHECKING:
    from ..judge.store import Store
    from ..rubrics.model import Rubric

_HASH = re.compile("[0-9a-f]{6,64}")
_SHOWN_DIGITS = 12


def rubric_of(
    obj: dict[str, Any], name: str, paths: Sequence[str] = (), store: str | None = None
) -> Rubric:
    """The rubric of this id, in this file, or with this hash in the store of the paths."""
    found = rubric_or_text(obj, name, paths, store)
    if isinstance(found, str):
        raise InputError(f"{name} is the hash of a criterion or prompt", "give that of a rubric")
    return found


def rubric_or_text(
    obj: dict[str, Any], name: str, paths: Sequence[str] = (), store: str | None = None
) -> Rubric | str:
    """The rubric of this id, in this file or with this hash; of another hash, its text."""
    from ..rubrics.load import builtin_ids, load_rubric

    if name in builtin_ids() or not _HASH.fullmatch(name) or Path(name).exists():
        return load_rubric(name)
    from ..judge.store import open_store

    place = store_place(load(obj["config"]), paths or (".",), store)
    if place is None:
        raise InputError(f"{name}: a hash is looked up in a store", "leave out --store none")
    with open_store(place, create=False) as opened:
        found = _texts_of(opened, name)
        if not found:
            raise InputError(
                f"{opened.location} has no rubric, criterion, code or prompt whose hash begins with"
                f" {name}",
                "`ambjudge export --what texts` lists those that it has",
            )
    if len(found) > 1:
        hashes = ", ".join(sha256[:_SHOWN_DIGITS] for sha256 in found)
        raise InputError(f"several hashes begin with {name}: {hashes}", "give more digits")
    return next(iter(found.values()))


def _texts_of(store: Store, beginning: str) -> dict[str, Rubric | str]:
    """By hash, the rubrics and texts whose hash begins like this."""
    from ..judge.questions.texts import item_texts
    from ..rubrics.load import criterion_sha256

    found: dict[str, Rubric | str] = {}
    for rubric in store.rubrics():
        if rubric.sha256.startswith(beginning):
            found[rubric.sha256] = rubric
        for criterion in rubric.criteria():
            if criterion_sha256(criterion).startswith(beginning):
                (text,) = item_texts([criterion])
                found[text.sha256] = text.readable()
    for text in store.texts(beginning):
        found[text.sha256] = text.readable()
    return found
