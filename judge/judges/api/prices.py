"""What a call costs, from a table of list prices that ships with ambjudge.

`prices.json` maps model names to USD per million input and output tokens, with source and date, and
to those of input read from and written into the provider's cache where these differ. An unknown
price is None, never a guess. Prices hold at the provider's own address only: the same model name
behind another `api_base` costs whatever its owner asks.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from urllib.parse import urlsplit

_PROVIDER_HOSTS = (
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
_HOST_OF_PROVIDER = {
    "openai": "api.openai.com",
    "anthropic": "api.anthropic.com",
    "gemini": "generativelanguage.googleapis.com",
    "deepseek": "api.deepseek.com",
    "mistral": "api.mistral.ai",
    "xai": "api.x.ai",
    "groq": "api.groq.com",
}
_OMITTED_PREFIXES = ("", "openai/", "anthropic/")
"""Prefixes of a model's name that prices.json leaves out."""
KEY_VARIABLE = "AMBJUDGE_API_KEY"
"""Environment variable with the key for an `api_base` that the user names. A provider's own key is
sent to that provider alone."""
_BASE_VARIABLES = {
    "openai": ("OPENAI_BASE_URL", "OPENAI_API_BASE"),
    "anthropic": ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE"),
}


BATCH_RATE = 0.5
"""Of the list price, what most providers ask for calls through their batches."""


@dataclass(frozen=True)
class Price:
    """USD per million tokens, with where and when (ISO date) the price was read."""

    input: float
    output: float
    source: str
    date: str
    cached: float | None = None
    """Input read from the provider's cache. None if no rate is known: such input is charged as
    plain input, an upper bound."""
    cache_write: float | None = None
    """Input written into the provider's cache; None if it costs what plain input does."""
    batch: float = BATCH_RATE
    """The share of these prices that a call through the provider's batches costs."""

    def in_batches(self) -> Price:
        """The price of calls through the provider's batches."""
        rates = (self.cached, self.cache_write)
        cached, cache_write = (None if rate is None else rate * self.batch for rate in rates)
        return replace(
            self,
            input=self.input * self.batch,
            output=self.output * self.batch,
            cached=cached,
            cache_write=cache_write,
            batch=1.0,
        )

    def cost(
        self,
        input_tokens: int | None,
        output_tokens: int | None,
        cached_tokens: int | None = 0,
        cache_write_tokens: int | None = 0,
    ) -> float | None:
        """USD of a call; None if its tokens are unknown.

        `input_tokens` include those read from and written into the cache. If only these are
        unknown, all input is charged as plain.
        """
        if input_tokens is None or output_tokens is None:
            return None
        cached, cache_write = cached_tokens or 0, cache_write_tokens or 0
        cached_price = self.input if self.cached is None else self.cached
        cache_write_price = self.input if self.cache_write is None else self.cache_write
        dollars = (input_tokens - cached - cache_write) * self.input + output_tokens * self.output
        dollars += cached * cached_price
        dollars += cache_write * cache_write_price
        return dollars / 1e6


def price_of(model: str, api_base: str | None = None) -> Price | None:
    """The price of a model as litellm names it; None if unknown or served from elsewhere."""
    base = effective_api_base(model, api_base)
    if base is not None and (urlsplit(base).hostname or "") not in _PROVIDER_HOSTS:
        return None
    prices = builtin_prices()
    for prefix in _OMITTED_PREFIXES:
        if model.startswith(prefix):
            price = prices.get(model.removeprefix(prefix))
            if price is not None:
                return price
    return None


def key_for(model: str, api_base: str | None) -> str | None:
    """The API key for a model at an address that the user named.

    None where litellm looks up the provider's own key: without an address, and at the provider's
    own. To any other address goes `AMBJUDGE_API_KEY`, or "none", which servers without keys accept:
    whoever can name an address must not be sent the provider's key.
    """
    if api_base is None:
        return None
    host = urlsplit(api_base).hostname or ""
    provider = model.partition("/")[0]
    if api_base.startswith("https://") and host == _HOST_OF_PROVIDER.get(provider):
        return None
    return os.environ.get(KEY_VARIABLE) or "none"


def effective_api_base(model: str, api_base: str | None) -> str | None:
    """The address that will be called: `api_base`, or the environment's for the provider."""
    if api_base is not None:
        return api_base
    if model.startswith(("anthropic/", "claude")):
        variables = _BASE_VARIABLES["anthropic"]
    elif "/" not in model or model.startswith("openai/"):
        variables = _BASE_VARIABLES["openai"]
    else:
        return None
    for name in variables:
        if os.environ.get(name):
            return os.environ[name]
    return None


@cache
def builtin_prices() -> dict[str, Price]:
    """The table that ships with ambjudge, by model."""
    data = json.loads(files(__package__).joinpath("prices.json").read_text(encoding="utf-8"))
    return {
        name: Price(**{"date": data["date"], **entry}) for name, entry in data["models"].items()
    }
