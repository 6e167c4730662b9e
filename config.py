"""Settings: flags win over AMBJUDGE_* variables, which win over ambjudge.toml or [tool.ambjudge] in
pyproject.toml."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from .errors import ConfigError

# setting -> (type, allowed values or None)
SETTINGS: dict[str, tuple[type, tuple[str, ...] | None]] = {
    "judge": (list, None),
    "rubric": (str, None),
    "store": (str, None),
    "public": (str, None),
    "concurrency": (int, None),
    "max_cost": (float, None),
    "calls_per_minute": (float, None),
    "tokens_per_minute": (float, None),
    "like": (str, ("paper", "harness")),
    "missing": (str, ("renormalize", "zero")),
    "breach": (str, ("zero-all", "from-stage")),
    "malformed": (str, ("formula", "zero")),
    "strict_evidence": (bool, None),
    "track": (str, None),
    "tier": (str, ("lite", "standard", "pro")),
    "api_base": (str, None),
    "taxonomy": (str, ("paper", "harness")),
    "temperature": (float, None),
    "samples": (int, None),
    "pictures": (bool, None),
    "timeout": (float, None),
    "price": (str, None),
    "rationale": (bool, None),
    "stages": (str, ("rules", "judge", "mixed")),
    "diagnosis": (bool, None),
}

_RANGES: dict[str, tuple[float, float]] = {
    "concurrency": (1, 1000),
    "samples": (1, 25),
    "temperature": (0, 2),
}
"""As the flags have them; other numbers are finite and at least 0."""


_MOST_DOTS = 2_000
"""Of a line: tomllib's memory grows with the square of a dotted key's parts, 3.5 GB for 60 kB."""
MAX_BYTES = 1 << 16
"""Of a settings file; tomllib takes time and memory far beyond the size of what it reads."""


class Settings:
    """Values with where each came from; `get` returns None for what nobody set."""

    def __init__(self, values: dict[str, Any], origins: dict[str, str], file: Path | None) -> None:
        self.values, self.origins, self.file = values, origins, file

    def get(self, name: str, flag: Any = None) -> Any:
        """The flag when it was given, else the setting."""
        return flag if flag not in (None, ()) else self.values.get(name)


def find_file(start: Path | None = None) -> Path | None:
    """The nearest ambjudge.toml, or pyproject.toml with [tool.ambjudge], at or above a folder (the
    working directory).

    None from within a run: whoever wrote the run could have put settings into it or, packed with
    it, above it.
    """
    from .trajectories.reading.layout import is_run

    folder = (start or Path.cwd()).absolute()
    places = (folder, *folder.parents)
    if any(is_run(place) for place in places):
        return None
    for place in places:
        if (place / "ambjudge.toml").is_file():
            return place / "ambjudge.toml"
        project = place / "pyproject.toml"
        if project.is_file() and b"[tool.ambjudge" in _bytes(project):
            return project
    return None


def _bytes(file: Path) -> bytes:
    """The file's beginning, one byte more than is taken; ConfigError when it cannot be read."""
    try:
        with file.open("rb") as stream:
            return stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise ConfigError(f"{file}: no such file", "check --config") from None
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}", "check the file") from None


def load(explicit: str | None = None) -> Settings:
    """The user's settings: the file named, else the nearest one from the working directory upward;
    never one that comes with the runs. ConfigError for unknown keys (with a suggestion) and for
    values out of range."""
    file = Path(explicit) if explicit else find_file()
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    if file is not None:
        for key, value in _read(file).items():
            name = key.replace("-", "_")
            values[name] = _beside(file, name, _checked(name, value, f"{file}: {key}"))
            origins[name] = str(file)
    for name in SETTINGS:
        text = os.environ.get(f"AMBJUDGE_{name.upper()}")
        if text:
            values[name] = _checked(name, text, f"AMBJUDGE_{name.upper()}")
            origins[name] = "environment"
    return Settings(values, origins, file)


def _beside(file: Path, name: str, value: Any) -> Any:
    """Paths in a settings file are meant from its folder, wherever the command is run. Others are
    left as they are."""
    if name == "judge":
        parts = (judge.partition(":") for judge in value)
        return tuple(
            f"{kind}:{file.parent / at}" if kind in ("local", "replay") else kind + colon + at
            for kind, colon, at in parts
        )
    is_path = (
        name == "public"
        or (name == "store" and value != "none" and "://" not in value)
        or (name == "rubric" and value.endswith((".yaml", ".yml")))
    )
    return str(file.parent / value) if is_path else value


def _read(file: Path) -> dict[str, Any]:
    import tomllib

    raw = _bytes(file)
    if len(raw) > MAX_BYTES:
        raise ConfigError(f"{file}: has more than {MAX_BYTES:,} bytes", "settings are a few lines")
    if max((line.count(b".") for line in raw.splitlines()), default=0) > _MOST_DOTS:
        raise ConfigError(
            f"{file}: a line has more than {_MOST_DOTS:,} dots", "settings are a few lines"
        )
    try:
        data = tomllib.loads(raw.decode("utf-8"))
    except RecursionError:
        raise ConfigError(f"{file}: is nested too deeply", "settings are a few lines") from None
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{file}: is not UTF-8 text at byte {error.start}", "save it as UTF-8"
        ) from None
    except ValueError as error:  # TOMLDecodeError, and what int() says of endless digits
        raise ConfigError(f"{file}: not TOML: {error}", "see README, Configuration") from None
    if file.name == "pyproject.toml":
        tools = data.get("tool", {})
        data = tools.get("ambjudge", {}) if isinstance(tools, dict) else {}
        if not isinstance(data, dict):
            raise ConfigError(f"{file}: tool.ambjudge is no table", "see README, Configuration")
    return dict(data)


def _checked(name: str, value: Any, where: str) -> Any:
    if name not in SETTINGS:
        from difflib import get_close_matches

        close = get_close_matches(name, SETTINGS, n=1)
        raise ConfigError(
            f"{where}: no such setting",
            f"did you mean {close[0]}?" if close else f"known: {', '.join(SETTINGS)}",
        )
    kind, allowed = SETTINGS[name]
    if kind is list:
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, list) or not all(isinstance(i, str) for i in items):
            raise ConfigError(
                f"{where}: must be a string or a list of strings", 'e.g. judge = "rules"'
            )
        return tuple(items)
    if kind is bool:
        words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
        if str(value).lower() not in words:
            raise ConfigError(f"{where}: {value!r} is neither true nor false", "give true or false")
        return words[str(value).lower()]
    if kind in (int, float):
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            raise ConfigError(f"{where}: {value!r} is not a number", "give a number") from None
        low, high = _RANGES.get(name, (0, sys.float_info.max))
        if isinstance(value, bool) or not low <= number <= high:
            wanted = f"from {low:g} to {high:g}" if name in _RANGES else ">= 0"
            raise ConfigError(f"{where}: {value!r} is not a number {wanted}", "give a number")
        if kind is int and number != int(number):
            raise ConfigError(f"{where}: {value!r} is not a whole number", "give a whole number")
        return kind(number)
    if not isinstance(value, str):
        raise ConfigError(f"{where}: must be a string", "put it in quotes")
    if allowed is not None and value not in allowed:
        raise ConfigError(
            f"{where}: {value!r} is not one of {', '.join(allowed)}", "choose one of them"
        )
    return value
