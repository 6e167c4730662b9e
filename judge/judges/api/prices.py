"""What a call costs, from a table of list prices that ships with the package. An unknown price is
None, never a guess.

`prices.json` maps model names to USD per million input and output tokens with source and date, and
to those of input read from and written into the provider's cache where these differ. Prices hold at
the provider's own address only: the same model name behind another `api_base` costs whatever its
owner asks.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from urllib.parse import urlsplit

_OWN_HOSTS = (
    "api.openai.com",
    "api.anthropic.com",
    "generativelanguage.googleapis.com",
    "api.deepseek.com",
    "api.mistral.ai",
    "api.x.ai",
    "api.z.ai",
    "api.minimax.io",
    "api.moonshot.ai",
    "api.groq.com",
)
_HOST_OF = {
    "openai": "api.openai.com",
    "anthropic": "api.anthropic.com",
    "gemini": "generativelanguage.googleapis.com",
    "deepseek": "api.deepseek.com",
    "mistral": "api.mistral.ai",
    "xai": "api.x.ai",
    "groq": "api.groq.com",
}
_PREFIXES = ("openai/", "anthropic/")
KEY_VARIABLE = "AMBJUDGE_API_KEY"
"""The key for an `api_base` that is named to us. A provider's own key goes to that provider alone.
"""
_BASE_VARIABLES = {
    "openai": ("OPENAI_BASE_URL", "OPENAI_API_BASE"),
    "anthropic": ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE"),
}


@dataclass(frozen=True)
class Price:
    """USD per million tokens, with where and when (ISO date) the price was read."""

    input: float
    output: float
    source: str
    date: str
    cached: float | None = None
    """Of input read from the provider's cache; None where no rate is known: charged as plain input,
    an upper bound."""
    cache_write: float | None = None
    """Of input written into it; None where that costs what plain input does."""

    def cost(
        self,
        input_tokens: int | None,
        output_tokens: int | None,
        cached_tokens: int | None = 0,
        cache_write_tokens: int | None = 0,
    ) -> float | None:
        """USD of a call; None when its tokens are unknown. `input_tokens` include the cached ones,
        read and written.

        Where only these are unknown, all input is charged as plain.
        """
        if input_tokens is None or output_tokens is None:
            return None
        read, written = cached_tokens or 0, cache_write_tokens or 0
        dollars = (input_tokens - read - written) * self.input + output_tokens * self.output
        dollars += read * (self.input if self.cached is None else self.cached)
        dollars += written * (self.input if self.cache_write is None else self.cache_write)
        return dollars / 1e6


def price_of(model: str, api_base: str | None = None) -> Price | None:
    """The price of a model as litellm names it, or None when it is unknown or served from
    elsewhere."""
    base = effective_api_base(model, api_base)
    if base is not None and (urlsplit(base).hostname or "") not in _OWN_HOSTS:
        return None
    known = builtin_prices()
    for prefix in ("", *_PREFIXES):
        if model.startswith(prefix) and (found := known.get(model[len(prefix) :])) is not None:
            return found
    return None


def key_for(model: str, api_base: str | None) -> str | None:
    """The API key for a model at an address that was named; None where litellm looks up the
    provider's own.

    That is so without an address, and at the provider's own: whoever can name an address must not
    be sent its key. To any other goes `AMBJUDGE_API_KEY`, or "none", which servers that want no key
    accept.
    """
    host = (urlsplit(api_base).hostname or "") if api_base is not None else ""
    if api_base is None or (
        api_base.startswith("https://") and host == _HOST_OF.get(model.partition("/")[0])
    ):
        return None
    return os.environ.get(KEY_VARIABLE) or "none"


def effective_api_base(model: str, api_base: str | None) -> str | None:
    """The address that will be called: the given one, or the one the environment sets for the
    model's provider."""
    if api_base is not None:
        return api_base
    provider = (
        "anthropic"
        if model.startswith(("anthropic/", "claude"))
        else "openai"
        if "/" not in model or model.startswith("openai/")
        else ""
    )
    return next(
        (os.environ[name] for name in _BASE_VARIABLES.get(provider, ()) if os.environ.get(name)),
        None,
    )


@cache
def builtin_prices() -> dict[str, Price]:
    """The table that ships with the package, by model."""
    data = json.loads(files(__package__).joinpath("prices.json").read_text(encoding="utf-8"))
    return {
        name: Price(**{"date": data["date"], **entry}) for name, entry in data["models"].items()
    }
