"""What a call costs, from a table of list prices that ships with the package. An unknown price is None, never a guess.

`prices.json` maps model names to USD per million input and output tokens with source and date, and to those of input
read from and written into the provider's cache where these differ. Prices hold at the provider's own address only: the
same model name behind another `api_base` costs whatever its owner asks.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ...errors import ConfigError

_OWN_HOSTS = (
    "api.openai.com", "api.anthropic.com", "generativelanguage.googleapis.com", "api.deepseek.com", "api.mistral.ai",
    "api.x.ai", "api.z.ai", "api.minimax.io", "api.moonshot.ai", "api.groq.com",
)  # fmt: skip
_PREFIXES = ("openai/", "anthropic/")
_BASE_VARIABLES = {"openai": ("OPENAI_BASE_URL", "OPENAI_API_BASE"), "anthropic": ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE")}  # fmt: skip


@dataclass(frozen=True)
class Price:
    """USD per million tokens, with where and when (ISO date) the price was read."""

    input: float
    output: float
    source: str
    date: str
    cached: float | None = None
    """Of input read from the provider's cache; None where no rate is known: charged as plain input, an upper bound."""
    cache_write: float | None = None
    """Of input written into it; None where that costs what plain input does."""

    def cost(
        self,
        input_tokens: int | None,
        output_tokens: int | None,
        cached_tokens: int | None = 0,
        cache_write_tokens: int | None = 0,
    ) -> float | None:
        """USD of a call; None when its tokens are unknown. `input_tokens` include the cached ones, read and written.

        Where only these are unknown, all input is charged as plain.
        """
        if input_tokens is None or output_tokens is None:
            return None
        read, written = cached_tokens or 0, cache_write_tokens or 0
        dollars = (input_tokens - read - written) * self.input + output_tokens * self.output
        dollars += read * (self.input if self.cached is None else self.cached)
        dollars += written * (self.input if self.cache_write is None else self.cache_write)
        return dollars / 1e6


def price_of(model: str, api_base: str | None = None, table: dict[str, Price] | None = None) -> Price | None:
    """The price of a model as litellm names it, or None when it is unknown or served from elsewhere.

    A `table` of the user's own holds wherever the model is served: who wrote it knows what that address asks.
    """
    base = effective_api_base(model, api_base)
    if table is None and base is not None and (urlsplit(base).hostname or "") not in _OWN_HOSTS:
        return None
    known = builtin_prices() if table is None else table
    for prefix in ("", *_PREFIXES):
        if model.startswith(prefix) and (found := known.get(model[len(prefix) :])) is not None:
            return found
    return None


def effective_api_base(model: str, api_base: str | None) -> str | None:
    """The address that will be called: the given one, or the one the environment sets for the model's provider."""
    if api_base is not None:
        return api_base
    provider = "anthropic" if model.startswith(("anthropic/", "claude")) else "openai" if "/" not in model or model.startswith("openai/") else ""  # fmt: skip
    return next((os.environ[name] for name in _BASE_VARIABLES.get(provider, ()) if os.environ.get(name)), None)


@cache
def builtin_prices() -> dict[str, Price]:
    """The table that ships with the package."""
    return _table(json.loads(files(__package__).joinpath("prices.json").read_text(encoding="utf-8")), "prices.json")


def load_prices(path: str | Path) -> dict[str, Price]:
    """A table of the user's own, in the form of prices.json. ConfigError when it cannot be read as one."""
    try:
        return _table(json.loads(Path(path).read_text(encoding="utf-8")), str(path))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: no price table: {error}", "see prices.json of the package for the form") from None


def _table(data: Any, where: str) -> dict[str, Price]:
    models = data.get("models") if isinstance(data, dict) else None
    if not isinstance(models, dict):
        raise ConfigError(f"{where}: no object `models`", "see prices.json of the package for the form")
    found = {}
    for name, entry in models.items():
        given, made, read, written = (_dollars(entry, key) for key in ("input", "output", "cached", "cache_write"))
        if given is None or made is None:
            raise ConfigError(
                f"{where}: {name}: input and output must be USD per million tokens", "two numbers of at least 0"
            )
        if (read is None and entry.get("cached") is not None) or (
            written is None and entry.get("cache_write") is not None
        ):
            raise ConfigError(
                f"{where}: {name}: cached and cache_write must be USD per million tokens",
                "numbers of at least 0, or none",
            )
        source, date = str(entry.get("source", "")), str(entry.get("date") or data.get("date", ""))
        found[name] = Price(given, made, source, date, read, written)
    return found


def _dollars(entry: Any, key: str) -> float | None:
    value = entry.get(key) if isinstance(entry, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and value >= 0 else None
