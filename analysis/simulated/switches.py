"""Checks the values of the simulator's switches, and gives one number the form of its switch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ...errors import ConfigError
from ...trajectories.models import TIERS

SIZES = {"agents": "n_agents", "tasks": "n_tasks", "tracks": "n_tracks", "repeats": "n_rep"}
"""Sizes of a cohort by their plain names, which are understood as well."""
MAX_SIZE = 1_000_000


class Range(NamedTuple):
    """The values that a switch may have, ends included."""

    low: float
    high: float


PARAMETERS = Range(-50, 50)
"""Logits and shifts; beyond 50 a probability is 0 or 1 to the last digit."""
SPREADS = Range(0, 10)
PROBABILITIES = Range(0, 1)
RANGES: Mapping[str, Range] = {
    **dict.fromkeys(SIZES.values(), Range(1, MAX_SIZE)),
    **dict.fromkeys(("task_sd", "cell_sd", "slope_sd"), SPREADS),
    **dict.fromkeys(("sens", "spec", "circ_thr"), PROBABILITIES),
}
"""All other switches have PARAMETERS."""


def checked_switches(
    switches: Mapping[str, Any], defaults: Mapping[str, Any], *, max_tracks: int
) -> dict[str, Any]:
    """The switches with values of the kind of their defaults.

    A number stands for a vector of equal values, and for tiers it is their number. ConfigError with
    the name of the switch for any other value.
    """
    ranges = {**RANGES, "n_tracks": Range(1, max_tracks)}
    checked: dict[str, Any] = {}
    for name, value in switches.items():
        field = SIZES.get(name, name)
        if field not in defaults:
            raise ConfigError(f"unknown switch {name!r}", f"choose from {_names(defaults)}")
        default, limits = defaults[field], ranges.get(field, PARAMETERS)
        if field == "tiers":
            checked[field] = _tiers(value)
        elif isinstance(default, bool):
            checked[field] = bool(_whole(name, value, Range(0, 1)))
        elif isinstance(default, int):
            checked[field] = _whole(name, value, limits)
        elif isinstance(default, tuple):
            # Agents may be any number; vectors over codes have one length.
            length = None if field == "ability" else len(default)
            checked[field] = _vector(name, value, limits, length)
        else:
            checked[field] = _real(name, value, limits)
    if isinstance(switches.get("ability"), int | float):
        checked["ability"] *= checked.get("n_agents", defaults["n_agents"])
    return checked


def _names(fields: Iterable[str]) -> str:
    """The names of the switches, those of sizes plain."""
    plain = {field: name for name, field in SIZES.items()}
    return ", ".join(plain.get(field, field) for field in fields)


def _tiers(value: Any) -> tuple[str, ...]:
    if isinstance(value, int | float):
        return TIERS[: _whole("tiers", value, Range(1, len(TIERS)))]
    names = tuple(value)
    unknown = [name for name in names if name not in TIERS]
    if unknown or not names or len(set(names)) < len(names):
        raise ConfigError(
            f"tiers={value!r} are not one or more different tiers",
            f"choose from {', '.join(TIERS)}",
        )
    return names


def _vector(name: str, value: Any, limits: Range, length: int | None) -> tuple[float, ...]:
    """A sequence of `length` numbers (None: one or more); one number stands for all of them."""
    if isinstance(value, int | float):
        return (_real(name, value, limits),) * (length or 1)
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise ConfigError(f"{name}={value!r} is no number", "give a number, or one for each")
    if not value or length not in (None, len(value)):
        raise ConfigError(f"{name} has {len(value)} values", f"give one, or {length or 'more'}")
    return tuple(_real(name, item, limits) for item in value)


def _real(name: str, value: Any, limits: Range) -> float:
    # Comparisons are exact for integers of any size, and false for NaN.
    if not isinstance(value, int | float) or not limits.low <= value <= limits.high:
        raise _outside(name, value, "a number", limits)
    return float(value) + 0.0  # a negative zero has no logarithm


def _whole(name: str, value: Any, limits: Range) -> int:
    is_number = isinstance(value, int | float)
    if not is_number or not limits.low <= value <= limits.high or value % 1:
        raise _outside(name, value, "a whole number", limits)
    return int(value)


def _outside(name: str, value: Any, kind: str, limits: Range) -> ConfigError:
    text = str(value) if len(str(value)) <= 20 else f"{str(value)[:20]}…"
    return ConfigError(
        f"{name}={text}: is not {kind} from {limits.low:,} to {limits.high:,}",
        "give one in that range",
    )
