"""The doors by which packages add to ambjudge: tracks, detectors, judges, importers, exporters,
commands.

- `Door`: the names behind one door, ours and those of installed packages, each loaded when it is
  first used
- `installed()`: what packages declare as entry points `ambjudge.<door>`, without importing any of
  it
- `stamps(...)`: who of them took part, for verdict keys and scorecards

What a package adds runs with the user's rights: installing it is the user's choice, and nothing is
loaded from the current folder, which may be a run's. `AMBJUDGE_PLUGINS` names the packages that may
add something; empty: none.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, reduce
from importlib import import_module
from typing import Any, Generic, NamedTuple, TypeVar, cast

from .errors import ConfigError

SWITCH = "AMBJUDGE_PLUGINS"
_GROUP = "ambjudge."
_OWN = f"{__package__}."
_MAX_BYTES = 1_000_000
T = TypeVar("T")


class Plugin(NamedTuple):
    """One name behind a door: `target` is `package.module:attribute` or a module, `package` empty
    for what is ours."""

    door: str
    name: str
    target: str
    package: str = ""
    version: str = ""

    def __str__(self) -> str:
        return f"{self.package} {self.version}" if self.package else "ambjudge"

    def load(self) -> Any:
        module, _, attribute = self.target.partition(":")
        return reduce(getattr, attribute.split(".") if attribute else (), import_module(module))

    @property
    def stamp(self) -> str:
        """Door, name, package, version and SHA-256 of the source of the module behind the name,
        which has been loaded."""
        import hashlib
        from pathlib import Path

        file = getattr(sys.modules.get(self.target.partition(":")[0]), "__file__", None)
        data = Path(file).read_bytes() if file and os.path.isfile(file) else b""
        return f"{self.door}:{self.name} {self} sha256:{hashlib.sha256(data).hexdigest()[:16]}"


class Door(Generic[T]):
    """The names behind the door `group`, `what` being one of them in words.

    What is ours stands in a table of the shape of entry points, not in the package's own: a source
    tree whose installed metadata is older than its files works too. `fits` says what is wrong with
    something loaded, "" if nothing is.
    """

    def __init__(
        self,
        group: str,
        what: str,
        built_in: Mapping[str, str],
        fits: Callable[[str, Any], str] = lambda name, loaded: "",
        foreign: Callable[[], Iterable[Plugin]] | None = None,
    ) -> None:
        self.group, self.what, self._fits = group, what, fits
        self._built_in = {name: Plugin(group, name, target) for name, target in built_in.items()}
        self._foreign = foreign or installed
        self._entries: dict[str, Plugin] | None = None
        self._loaded: dict[str, T | ConfigError] = {}

    @property
    def entries(self) -> Mapping[str, Plugin]:
        """Name -> where it is loaded from: ours, then those of packages in the order of their
        names."""
        if self._entries is None:
            found = dict(self._built_in)
            for plugin in self._foreign():
                if plugin.door == self.group and plugin.name in found:
                    warn(
                        f"{self.what} {plugin.name!r} of {plugin} left out: {found[plugin.name]}"
                        " has one of this name"
                    )
                elif plugin.door == self.group:
                    found[plugin.name] = plugin
            self._entries = found
        return self._entries

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.entries)

    @property
    def foreign(self) -> tuple[Plugin, ...]:
        """Those of packages that can be loaded."""
        return tuple(
            p for p in self.entries.values() if p.package and self.find(p.name) is not None
        )

    def get(self, name: str) -> T:
        """What stands behind a name; ConfigError for an unknown name and for one that cannot be
        loaded."""
        if name not in self.entries:
            raise ConfigError(
                f"unknown {self.what} {name[:80]!r}", f"known: {', '.join(self.names)}"
            )
        if name not in self._loaded:
            self._loaded[name] = self._load(self.entries[name])
        loaded = self._loaded[name]
        if isinstance(loaded, ConfigError):
            raise loaded
        return loaded

    def find(self, name: str | None) -> T | None:
        """The same, None for an unknown name, and with one warning for one that cannot be loaded."""
        if name is None or name not in self.entries:
            return None
        known = name in self._loaded
        try:
            return self.get(name)
        except ConfigError as error:
            if not known:
                warn(str(error))
            return None

    def __iter__(self) -> Iterator[T]:
        """All that can be loaded."""
        return (found for name in self.entries if (found := self.find(name)) is not None)

    def _load(self, plugin: Plugin) -> T | ConfigError:
        try:
            loaded = plugin.load()
            problem = self._fits(plugin.name, loaded)
        # whatever somebody else's module does when it is imported
        except (Exception, SystemExit) as error:
            if not plugin.package:
                raise
            problem = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        if not problem:
            return cast(T, loaded)
        advice = f"update or remove {plugin.package}, or leave it out with {SWITCH}"
        return ConfigError(
            f"{self.what} {plugin.name!r} of {plugin} cannot be used: {problem}", advice
        )


@cache
def installed() -> tuple[Plugin, ...]:
    """Everything that installed packages add, in the order of their names."""
    return scan(sys.path, os.environ.get(SWITCH))


def scan(folders: Iterable[str], allowed: str | None) -> tuple[Plugin, ...]:
    """What the packages in these folders declare for our doors; `allowed` as in `AMBJUDGE_PLUGINS`,
    None for all.

    A look for our groups in the text of each package's entry points comes first, as most programs
    start without any plugin, and importlib.metadata alone takes longer to import than all the rest
    of `--help`.
    """
    names = (
        None if allowed is None else {_plain(part) for part in allowed.split(",") if part.strip()}
    )
    if names is not None and not names:
        return ()
    found: dict[str, list[Plugin]] = {}
    for place in _places(folders):
        from importlib.metadata import Distribution

        try:
            package = Distribution.at(place)
            title, version = str(package.metadata["Name"]), str(package.version)
            if _plain(title) in found or (names is not None and _plain(title) not in names):
                continue  # as for importlib, the first folder of the path wins
            found[_plain(title)] = [
                Plugin(
                    entry.group.removeprefix(_GROUP),
                    entry.name,
                    entry.value.partition("[")[0].strip(),
                    title,
                    version,
                )
                for entry in package.entry_points
                if entry.group.startswith(_GROUP) and entry.name.isprintable()
            ]
        except Exception as error:  # metadata that is none
            warn(f"{place} left out: {type(error).__name__}: {error} (reinstall that package)")
    return tuple(plugin for name in sorted(found) for plugin in found[name])


def _places(folders: Iterable[str]) -> Iterator[str]:
    """Metadata folders of packages that speak of one of our doors."""
    here = os.path.realpath(".")
    for folder in folders:
        if os.path.realpath(folder or ".") == here or not os.path.isdir(folder):
            continue
        for name in sorted(os.listdir(folder)):
            if name.endswith((".dist-info", ".egg-info")):
                try:
                    with open(os.path.join(folder, name, "entry_points.txt"), "rb") as file:
                        if f"[{_GROUP}".encode() in file.read(_MAX_BYTES):
                            yield os.path.join(folder, name)
                except OSError:
                    continue


def _plain(name: str) -> str:
    """A package's name as the index compares it."""
    return name.strip().lower().replace("_", "-").replace(".", "-")


def is_ours(module: str) -> bool:
    """Whether a module of this name belongs to this package."""
    return module.startswith(_OWN)


def stamps(door: Door[Any]) -> tuple[str, ...]:
    """The stamps of what packages have behind a door, loaded for it."""
    return tuple(plugin.stamp for plugin in door.foreign)


def warn(text: str) -> None:
    """One line on stderr."""
    import logging

    from .sanitize import sanitize_line

    logging.getLogger("ambjudge").warning(sanitize_line(text))
