"""A cache for functions of a run: each result is computed once and dropped with the run."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from ..models import Run

T = TypeVar("T")


def once_a_run(function: Callable[[Run], T]) -> Callable[[Run], T]:
    """Cache a pure function's result for as long as the run object lives.

    Keyed by identity, not by equality: comparing two runs costs as much as reading them, and a
    changed copy of a run is another run. Two threads may compute the same result twice; both get
    the same value.
    """
    cache: dict[int, tuple[weakref.ref[Run], T]] = {}

    @wraps(function)
    def cached(run: Run) -> T:
        key = id(run)
        entry = cache.get(key)
        if entry is not None and entry[0]() is run:
            return entry[1]
        result = function(run)
        cache[key] = (weakref.ref(run, lambda _: cache.pop(key, None)), result)
        return result

    return cached
