"""Settings: flags win over AMBJUDGE_* variables, which win over ambjudge.toml or [tool.ambjudge] in pyproject.toml."""

from __future__ import annotations

import os
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
    "missing": (str, ("renormalize", "zero")),
    "breach": (str, ("zero-all", "from-stage")),
    "malformed": (str, ("formula", "zero")),
    "track": (str, None),
    "tier": (str, ("lite", "standard", "pro")),
    "api_base": (str, None),
    "taxonomy": (str, ("paper", "harness")),
    "temperature": (float, None),
    "samples": (int, None),
    "timeout": (float, None),
    "price": (str, None),
    "rationale": (bool, None),
}


class Settings:
    """Values with where each came from; `get` returns None for what nobody set."""

    def __init__(self, values: dict[str, Any], origins: dict[str, str], file: Path | None) -> None:
        self.values, self.origins, self.file = values, origins, file

    def get(self, name: str, flag: Any = None) -> Any:
        """The flag when it was given, else the setting."""
        return flag if flag not in (None, ()) else self.values.get(name)


def find_file(start: Path) -> Path | None:
    """The nearest ambjudge.toml, or pyproject.toml with [tool.ambjudge], at or above a path."""
    folder = start.absolute() if start.is_dir() else start.absolute().parent
    for place in (folder, *folder.parents):
        if (place / "ambjudge.toml").is_file():
            return place / "ambjudge.toml"
        project = place / "pyproject.toml"
        if project.is_file() and "[tool.ambjudge" in project.read_text("utf-8", "replace"):
            return project
    return None


def load(start: Path, explicit: str | None = None) -> Settings:
    """Settings in force for a path. ConfigError for unknown keys (with a suggestion) and for values out of range."""
    file = Path(explicit) if explicit else find_file(start)
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    if file is not None:
        for key, value in _read(file).items():
            name = key.replace("-", "_")
            values[name] = _checked(name, value, f"{file}: {key}")
            origins[name] = str(file)
    for name in SETTINGS:
        text = os.environ.get(f"AMBJUDGE_{name.upper()}")
        if text:
            values[name] = _checked(name, text, f"AMBJUDGE_{name.upper()}")
            origins[name] = "environment"
    return Settings(values, origins, file)


def _read(file: Path) -> dict[str, Any]:
    import tomllib

    try:
        data = tomllib.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{file}: no such file", "check --config") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: cannot be read: {error}", "check the file") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file}: not TOML: {error}", "see README, Configuration") from None
    if file.name == "pyproject.toml":
        data = data.get("tool", {}).get("ambjudge", {})
    return dict(data)


def _checked(name: str, value: Any, where: str) -> Any:
    if name not in SETTINGS:
        from difflib import get_close_matches

        close = get_close_matches(name, SETTINGS, n=1)
        raise ConfigError(
            f"{where}: no such setting", f"did you mean {close[0]}?" if close else f"known: {', '.join(SETTINGS)}"
        )
    kind, allowed = SETTINGS[name]
    if kind is list:
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, list) or not all(isinstance(i, str) for i in items):
            raise ConfigError(f"{where}: must be a string or a list of strings", 'e.g. judge = "heuristic"')
        return tuple(items)
    if kind is bool:
        words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
        if str(value).lower() not in words:
            raise ConfigError(f"{where}: {value!r} is neither true nor false", "give true or false")
        return words[str(value).lower()]
    if kind in (int, float):
        try:
            number = kind(value)
        except (TypeError, ValueError):
            raise ConfigError(f"{where}: {value!r} is not a number", "give a number") from None
        if isinstance(value, bool) or number < 0 or number != number:
            raise ConfigError(f"{where}: {value!r} is not a number >= 0", "give a number")
        return number
    if not isinstance(value, str):
        raise ConfigError(f"{where}: must be a string", "put it in quotes")
    if allowed is not None and value not in allowed:
        raise ConfigError(f"{where}: {value!r} is not one of {', '.join(allowed)}", "choose one of them")
    return value
