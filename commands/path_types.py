"""Types of arguments and options that name a place: on this machine, or also at an address."""

from __future__ import annotations

import os
from typing import Any

import click

_STORE_SCHEMES = ("postgresql", "postgres", "sqlite")


class LocalPath(click.Path):
    """A path on this machine.

    An address such as `s3://bucket/x` is refused; as a path it would be a folder `s3:` below the
    working directory. Addresses of stores pass.
    """

    schemes: tuple[str, ...] = ()
    """Schemes of addresses that are accepted."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        scheme, separator, _ = str(value).partition("://")
        is_address = bool(separator) and "/" not in scheme
        accepted = scheme in (*_STORE_SCHEMES, *self.schemes)
        if is_address and not accepted and not os.path.exists(value):
            self.fail(
                f"{scheme}:// addresses are not understood here; {self._advice()}", param, ctx
            )
        return super().convert(value, param, ctx)

    def _advice(self) -> str:
        if not self.schemes:
            return "give a file or folder of this machine"
        return f"give {', '.join(f'{scheme}://' for scheme in self.schemes)} or a path"


class PathOrAddress(LocalPath):
    """A path on this machine, or the address of a file, a run or a collection."""

    schemes = ("s3", "gs", "memory")
