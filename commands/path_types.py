"""Types of arguments that name places: on this machine, or also at an address."""

from __future__ import annotations

import os
from typing import Any

import click

_STORES = ("postgresql", "postgres", "sqlite")


class LocalPath(click.Path):
    """A path on this machine: `s3://bucket/x` would be a folder `s3:` below the current one. Stores
    have addresses."""

    understood: tuple[str, ...] = ()
    """Schemes of addresses that may stand here."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        scheme, found, _ = str(value).partition("://")
        if (
            found
            and "/" not in scheme
            and scheme not in (*_STORES, *self.understood)
            and not os.path.exists(value)
        ):
            known = ", ".join(f"{name}://" for name in self.understood)
            here = f"give {known} or a path" if known else "give a file or folder of this machine"
            self.fail(f"{scheme}:// addresses are not understood here; {here}", param, ctx)
        return super().convert(value, param, ctx)


class PathOrAddress(LocalPath):
    """The same, or an address of a file, of a run or of a collection."""

    understood = ("s3", "gs", "memory")
