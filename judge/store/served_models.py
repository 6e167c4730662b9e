"""Notices when a provider answers with another model than before, which no name of ours shows."""

from __future__ import annotations

from collections.abc import Iterable

from ..base import Reply
from . import Store


class ServedModels:
    """The models that answered a judge's calls in a store."""

    def __init__(self, store: Store, judge: str) -> None:
        self._store, self._judge = store, judge
        self._earlier: set[str] | None = None
        """None until the store was asked."""

    def warnings(self, reply: Reply) -> tuple[str, ...]:
        """A warning if a model answered that gave none of the store's earlier verdicts.

        It is given once for each such model; the first model of a store is none.
        """
        if self._earlier is None:
            self._earlier = self._store.served_models(self._judge)
        earlier = sorted(self._earlier)
        new = [model for model in reply.served_models if model not in self._earlier]
        self._earlier.update(new)
        if not earlier or not new:
            return ()
        return (
            f"{self._judge}: {_joined(new)} answered; {_joined(earlier)} gave the earlier verdicts"
            " in this store",
        )


def _joined(names: Iterable[str]) -> str:
    return ", ".join(names)
