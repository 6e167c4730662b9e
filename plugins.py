"""Doors: the entry-point groups by which packages extend ambjudge.

Packages can add tracks, detectors, judges, importers, exporters, tables and commands.

- `Door`: the names behind one door, built in or from packages, each loaded at its first use
- `installed()`: what packages declare as entry points `ambjudge.<door>`; imports none of it
- `stamps(...)`: which packages took part, for verdict keys and scorecards

A plugin runs with the user's rights: installing it is the user's choice, and nothing is loaded from
the working directory, which may belong to a run. `AMBJUDGE_PLUGINS` names the packages that may add
something; if it is empty, none may.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast

from .errors import ConfigError

if TYPE_CHECKING:
    from importlib.metadata import Distribution

SWITCH = "AMBJUDGE_PLUGINS"
"""The variable that names the allowed packages."""
_GROUP = "ambjudge."
_OWN_PREFIX = f"{__package__}."
_MAX_BYTES = 1_000_000
"""Of the text of a package's entry points."""
_METADATA_SUFFIXES = (".dist-info", ".egg-info")
T = TypeVar("T")


class Plugin(NamedTuple):
    """One name behind a door."""

    door: str
    name: str
    target: str
    """`package.module:attribute`, or a module."""
    package: str = ""
    """The package that declares it; empty if it is built in."""
    version: str = ""

    def __str__(self) -> str:
        return f"{self.package} {self.version}" if self.package else "ambjudge"

    def load(self) -> Any:
        """Import the target."""
        module, _, attribute = self.target.partition(":")
        value: Any = import_module(module)
        for name in attribute.split(".") if attribute else ():
            value = getattr(value, name)
        return value

    @property
    def stamp(self) -> str:
        """Door, name, package, version and the SHA-256 of the module's source.

        The module must have been loaded.
        """
        import hashlib
        from pathlib import Path

        module = sys.modules.get(self.target.partition(":")[0])
        file = getattr(module, "__file__", None)
        data = Path(file).read_bytes() if file and os.path.isfile(file) else b""
        return f"{self.door}:{self.name} {self} sha256:{hashlib.sha256(data).hexdigest()[:16]}"


class Door(Generic[T]):
    """The names behind one entry-point group.

    Built-in names stand in a table of the shape of entry points instead of the package's own entry
    points, so that a source tree works even if its installed metadata is older than its files.
    """

    def __init__(
        self,
        group: str,
        noun: str,
        built_in: Mapping[str, str],
        find_problem: Callable[[str, Any], str] = lambda name, loaded: "",
        foreign: Callable[[], Iterable[Plugin]] | None = None,
    ) -> None:
        """Declare the names behind an entry-point group.

        `noun` names one plugin in messages. `find_problem` says why a loaded object cannot be used;
        "" if it can. `foreign`: the plugins of packages (default: `installed`).
        """
        self.group = group
        self.noun = noun
        self._find_problem = find_problem
        self._built_in = {name: Plugin(group, name, target) for name, target in built_in.items()}
        self._list_foreign = foreign or installed
        self._entries: dict[str, Plugin] | None = None
        self._loaded: dict[str, T | ConfigError] = {}

    @property
    def entries(self) -> Mapping[str, Plugin]:
        """All plugins by name.

        The built-in ones come first, then those of packages in the order of their names.
        """
        if self._entries is None:
            self._entries = dict(self._built_in)
            for plugin in self._list_foreign():
                if plugin.door == self.group:
                    self._add(plugin, self._entries)
        return self._entries

    def _add(self, plugin: Plugin, entries: dict[str, Plugin]) -> None:
        """Add a plugin; warn and leave it out if its name is in use."""
        if plugin.name in entries:
            warn(
                f"{self.noun} {plugin.name!r} of {plugin} left out: {entries[plugin.name]} has one"
                " of this name"
            )
        else:
            entries[plugin.name] = plugin

    @property
    def names(self) -> tuple[str, ...]:
        """All names, loadable or not."""
        return tuple(self.entries)

    @property
    def foreign(self) -> tuple[Plugin, ...]:
        """The plugins of packages that can be loaded."""
        return tuple(
            plugin
            for plugin in self.entries.values()
            if plugin.package and self.find(plugin.name) is not None
        )

    def get(self, name: str) -> T:
        """Load the object of a name.

        ConfigError for an unknown name or one that cannot be loaded.
        """
        if name not in self.entries:
            raise ConfigError(
                f"unknown {self.noun} {name[:80]!r}", f"known: {', '.join(self.names)}"
            )
        if name not in self._loaded:
            self._loaded[name] = self._load(self.entries[name])
        loaded = self._loaded[name]
        if isinstance(loaded, ConfigError):
            raise loaded
        return loaded

    def find(self, name: str | None) -> T | None:
        """Load the object of a name, or return None.

        None for an unknown name and, with one warning, for one that cannot be loaded.
        """
        if name is None or name not in self.entries:
            return None
        is_first_try = name not in self._loaded
        try:
            return self.get(name)
        except ConfigError as error:
            if is_first_try:
                warn(str(error))
            return None

    def __iter__(self) -> Iterator[T]:
        """All objects that can be loaded."""
        for name in self.entries:
            loaded = self.find(name)
            if loaded is not None:
                yield loaded

    def _load(self, plugin: Plugin) -> T | ConfigError:
        try:
            loaded = plugin.load()
            problem = self._find_problem(plugin.name, loaded)
        except (Exception, SystemExit) as error:
            # A package's module may do anything when it is imported; ours must not fail.
            if not plugin.package:
                raise
            problem = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        if not problem:
            return cast(T, loaded)
        return ConfigError(
            f"{self.noun} {plugin.name!r} of {plugin} cannot be used: {problem}",
            f"update or remove {plugin.package}, or leave it out with {SWITCH}",
        )


@cache
def installed() -> tuple[Plugin, ...]:
    """Everything that installed packages add, in the order of their names."""
    return scan(sys.path, os.environ.get(SWITCH))


def scan(folders: Iterable[str], allowed: str | None) -> tuple[Plugin, ...]:
    """What the packages in these folders declare for our doors.

    `allowed`: names of packages as in `AMBJUDGE_PLUGINS`; None allows all. The text of each
    package's entry points is searched for our groups before any is parsed: most programs start
    without plugins, and importing importlib.metadata takes longer than all the rest of `--help`.
    """
    allowed_names = None
    if allowed is not None:
        allowed_names = {_normalised(part) for part in allowed.split(",") if part.strip()}
        if not allowed_names:
            return ()
    by_package: dict[str, list[Plugin]] = {}
    for folder in _metadata_folders(folders):
        from importlib.metadata import Distribution

        try:
            package = Distribution.at(folder)
            name = _normalised(str(package.metadata["Name"]))
            is_allowed = allowed_names is None or name in allowed_names
            # The first folder of the path wins, as for importlib.
            if is_allowed and name not in by_package:
                by_package[name] = list(_plugins_of(package))
        except Exception as error:  # broken metadata
            warn(f"{folder} left out: {type(error).__name__}: {error} (reinstall that package)")
    return tuple(plugin for name in sorted(by_package) for plugin in by_package[name])


def _plugins_of(package: Distribution) -> Iterator[Plugin]:
    """What one package declares for our doors."""
    name, version = str(package.metadata["Name"]), str(package.version)
    for entry in package.entry_points:
        if entry.group.startswith(_GROUP) and entry.name.isprintable():
            door = entry.group.removeprefix(_GROUP)
            target = entry.value.partition("[")[0].strip()  # without the extras
            yield Plugin(door, entry.name, target, name, version)


def _metadata_folders(folders: Iterable[str]) -> Iterator[str]:
    """Metadata folders of packages that name one of our doors."""
    working_directory = os.path.realpath(".")
    for folder in folders:
        if os.path.realpath(folder or ".") == working_directory or not os.path.isdir(folder):
            continue
        for name in sorted(os.listdir(folder)):
            if not name.endswith(_METADATA_SUFFIXES):
                continue
            try:
                with open(os.path.join(folder, name, "entry_points.txt"), "rb") as file:
                    text = file.read(_MAX_BYTES)
            except OSError:
                continue
            if f"[{_GROUP}".encode() in text:
                yield os.path.join(folder, name)


def _normalised(name: str) -> str:
    """A package's name in the spelling by which package indexes compare names."""
    return name.strip().lower().replace("_", "-").replace(".", "-")


def is_ours(module: str) -> bool:
    """Whether a module of this name belongs to this package."""
    return module.startswith(_OWN_PREFIX)


def stamps(door: Door[Any]) -> tuple[str, ...]:
    """The stamps of the packages' plugins behind a door, which are loaded for it."""
    return tuple(plugin.stamp for plugin in door.foreign)


def warn(text: str) -> None:
    """Print one warning on stderr."""
    import logging

    from .sanitize import sanitize_line

    logging.getLogger("ambjudge").warning(sanitize_line(text))
