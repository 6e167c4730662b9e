"""Settings from flags, the environment and a settings file.

Flags win over AMBJUDGE_* variables, which win over ambjudge.toml or [tool.ambjudge] in
pyproject.toml.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

from .errors import ConfigError


class Setting(NamedTuple):
    """The type of a setting and the values that it may have."""

    kind: type
    choices: tuple[str, ...] = ()
    """All values of a string; empty: any."""
    low: float = 0
    high: float = sys.float_info.max
    """The range of a number, as that of its flag."""

    @property
    def is_bounded(self) -> bool:
        """Whether there is an upper limit that a user could meet."""
        return self.high < sys.float_info.max


SETTINGS: dict[str, Setting] = {
    "judge": Setting(list),
    "rubric": Setting(list),
    "store": Setting(str),
    "public": Setting(str),
    "policy": Setting(str),
    "track": Setting(str),
    "tier": Setting(str, ("lite", "standard", "pro")),
    "young_minutes": Setting(float),
    "stages": Setting(str, ("rules", "judge", "mixed")),
    "diagnosis": Setting(bool),
    "ask_all": Setting(bool),
    "taxonomy": Setting(str, ("paper", "harness")),
    "api_base": Setting(str),
    "temperature": Setting(float, high=2),
    "samples": Setting(int, low=1, high=25),
    "pictures": Setting(bool),
    "rationale": Setting(bool),
    "timeout": Setting(float),
    "max_tokens": Setting(int, low=1, high=1_000_000),
    "price": Setting(str),
    "batch_rate": Setting(float, high=1),
    "concurrency": Setting(int, low=1, high=1000),
    "max_cost": Setting(float),
    "max_cost_month": Setting(float),
    "calls_per_minute": Setting(float),
    "tokens_per_minute": Setting(float),
    "wait": Setting(float),
    "workers": Setting(int, low=1, high=256),
    "engine": Setting(str, ("processes", "ray")),
    "address": Setting(str),
    "shard": Setting(str),
    "theme": Setting(str),
}

_MAX_DOTS = 2_000
"""Of a line: tomllib's memory grows with the square of a dotted key's parts, 3.5 GB for 60 kB."""
MAX_BYTES = 1 << 16
"""Of a settings file; tomllib takes time and memory far beyond the size of what it reads."""
_BOOLEANS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_NAMED_POLICIES = ("paper", "harness")


class Settings:
    """The values that are set, with the origin of each."""

    def __init__(self, values: dict[str, Any], origins: dict[str, str], file: Path | None) -> None:
        self.values = values
        self.origins = origins
        self.file = file

    def get(self, name: str, flag: Any = None) -> Any:
        """The flag if it was given, otherwise the setting, otherwise None."""
        return flag if flag not in (None, ()) else self.values.get(name)


def find_file(start: Path | None = None) -> Path | None:
    """The nearest settings file from the working directory upward.

    That is an ambjudge.toml, or a pyproject.toml with [tool.ambjudge]. None inside a run: whoever
    wrote the run could have put settings into it or, packed with it, above it.
    """
    from .trajectories.reading.layout import is_run

    start = (start or Path.cwd()).absolute()
    folders = (start, *start.parents)
    if any(is_run(folder) for folder in folders):
        return None
    for folder in folders:
        if (folder / "ambjudge.toml").is_file():
            return folder / "ambjudge.toml"
        project = folder / "pyproject.toml"
        if project.is_file() and b"[tool.ambjudge" in _read_start(project):
            return project
    return None


def load(explicit: str | None = None) -> Settings:
    """Load the user's settings from a settings file and the environment.

    The file is the named one or, without one, the nearest (`find_file`). ConfigError for unknown
    keys (with a suggestion) and for values out of range.
    """
    file = Path(explicit) if explicit else find_file()
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    if file is not None:
        for key, value in _read_settings(file).items():
            name = key.replace("-", "_")
            values[name] = _resolve_paths(file, name, _parse(name, value, f"{file}: {key}"))
            origins[name] = str(file)
    for name in SETTINGS:
        variable = f"AMBJUDGE_{name.upper()}"
        if text := os.environ.get(variable):
            values[name] = _parse(name, text, variable)
            origins[name] = "environment"
    return Settings(values, origins, file)


def read_toml(file: Path) -> dict[str, Any]:
    """Parse a small TOML file. ConfigError if it is unreadable, too large, or not TOML."""
    import tomllib

    data = _read_start(file)
    if len(data) > MAX_BYTES:
        raise ConfigError(
            f"{file}: has more than {MAX_BYTES:,} bytes",
            "settings need only a few lines: check the file",
        )
    if max((line.count(b".") for line in data.splitlines()), default=0) > _MAX_DOTS:
        raise ConfigError(
            f"{file}: a line has more than {_MAX_DOTS:,} dots",
            "settings need only a few lines: check the file",
        )
    try:
        return tomllib.loads(data.decode("utf-8"))
    except RecursionError:
        raise ConfigError(
            f"{file}: is nested too deeply", "settings need only a few lines: check the file"
        ) from None
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{file}: is not UTF-8 text at byte {error.start}", "save it as UTF-8"
        ) from None
    except ValueError as error:  # TOMLDecodeError, and what int() says of endless digits
        raise ConfigError(f"{file}: is not TOML: {error}", "see README, Configuration") from None


def suggestion(name: str, names: tuple[str, ...]) -> str:
    """The hint for an unknown name: the closest one that exists, or all of them."""
    from difflib import get_close_matches

    close = get_close_matches(name, names, n=1)
    return f"did you mean {close[0]}?" if close else f"known: {', '.join(names)}"


def _read_start(file: Path) -> bytes:
    """The first MAX_BYTES + 1 bytes of a file. ConfigError if it cannot be read."""
    try:
        with file.open("rb") as stream:
            return stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise ConfigError(f"{file}: no such file", "check the path") from None
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}", "check the file") from None


def _read_settings(file: Path) -> dict[str, Any]:
    """The settings of a file; of pyproject.toml those in [tool.ambjudge]."""
    data = read_toml(file)
    if file.name != "pyproject.toml":
        return data
    tools = data.get("tool", {})
    section = tools.get("ambjudge", {}) if isinstance(tools, dict) else {}
    if not isinstance(section, dict):
        raise ConfigError(f"{file}: tool.ambjudge is not a table", "see README, Configuration")
    return section


def _resolve_paths(file: Path, name: str, value: Any) -> Any:
    """The value of a setting with its paths resolved from the settings file's folder.

    They thus mean the same wherever the command is run.
    """
    if name == "judge":
        return tuple(_resolve_judge(file, judge) for judge in value)
    if name == "public":
        is_path = True
    elif name == "store":
        is_path = value != "none" and "://" not in value
    elif name == "rubric":
        return tuple(_resolve_rubric(file, rubric) for rubric in value)
    else:
        is_path = name == "policy" and value not in _NAMED_POLICIES
    return str(file.parent / value) if is_path else value


def _resolve_rubric(file: Path, rubric: str) -> str:
    """A file, or a folder of files, with an absolute path; an id unchanged."""
    is_path = rubric.endswith((".yaml", ".yml", "/")) or (file.parent / rubric).is_dir()
    return str(file.parent / rubric) if is_path else rubric


def _resolve_judge(file: Path, judge: str) -> str:
    """`local:PATH` and `replay:PATH` with an absolute path; any other judge unchanged."""
    kind, _, path = judge.partition(":")
    return f"{kind}:{file.parent / path}" if kind in ("local", "replay") else judge


def _parse(name: str, value: Any, source: str) -> Any:
    """Check a value and give it the setting's type; ConfigError names the `source`."""
    setting = SETTINGS.get(name)
    if setting is None:
        raise ConfigError(f"{source}: no such setting", suggestion(name, tuple(SETTINGS)))
    if setting.kind is list:
        return _parse_names(value, source)
    if setting.kind is bool:
        if str(value).lower() not in _BOOLEANS:
            raise ConfigError(
                f"{source}: {value!r} is neither true nor false", "give true or false"
            )
        return _BOOLEANS[str(value).lower()]
    if setting.kind in (int, float):
        return _parse_number(setting, value, source)
    if not isinstance(value, str):
        raise ConfigError(f"{source}: must be a string", "put it in quotes")
    if setting.choices and value not in setting.choices:
        raise ConfigError(
            f"{source}: {value!r} is not one of {', '.join(setting.choices)}", "choose one of them"
        )
    return value


def _parse_names(value: Any, source: str) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ConfigError(
            f"{source}: must be a string or a list of strings", 'e.g. judge = "rules"'
        )
    return tuple(names)


def _parse_number(setting: Setting, value: Any, source: str) -> int | float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ConfigError(f"{source}: {value!r} is not a number", "give a number") from None
    if isinstance(value, bool) or not setting.low <= number <= setting.high:
        limits = f"from {setting.low:g} to {setting.high:g}" if setting.is_bounded else ">= 0"
        raise ConfigError(f"{source}: {value!r} is not a number {limits}", "give a number")
    if setting.kind is int:
        if number != int(number):
            raise ConfigError(f"{source}: {value!r} is not a whole number", "give a whole number")
        return int(number)
    return number
