"""List prices: known, unknown, and never guessed."""

from __future__ import annotations

import pytest
from ambjudge.errors import ConfigError
from ambjudge.judge.judges.api.prices import Price, builtin_prices, effective_api_base, price_of
from ambjudge.judge.select import parse_price


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE"):
        monkeypatch.delenv(name, raising=False)


def test_every_entry_is_complete() -> None:
    prices = builtin_prices()
    assert len(prices) > 30
    for price in prices.values():
        assert 0 < price.input <= price.output < 100
        assert price.source
        assert len(price.date) == 10
        assert price.cached is None or 0 < price.cached < price.input
        assert price.cache_write is None or price.input <= price.cache_write <= 2 * price.input
    assert sum(price.cached is not None for price in prices.values()) > 30


@pytest.mark.parametrize(
    ("model", "api_base", "known"),
    [
        ("gpt-4o-mini", None, True),
        ("openai/gpt-4o-mini", None, True),
        ("anthropic/claude-haiku-4-5", None, True),
        ("gemini/gemini-2.5-pro", None, True),
        ("gpt-4o-mini", "https://api.openai.com/v1", True),
        ("gpt-4o-mini", "http://127.0.0.1:8000/v1", False),
        ("gpt-4o-mini", "https://api.openai.com.example.org/v1", False),
        ("azure/gpt-4o-mini", None, False),
        ("openrouter/openai/gpt-4o-mini", None, False),
        ("gpt-4o-mini-something", None, False),
        ("my-model", None, False),
        ("", None, False),
    ],
)
def test_who_has_a_price(model: str, api_base: str | None, known: bool) -> None:
    assert (price_of(model, api_base) is not None) is known


def test_an_address_from_the_environment_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    assert effective_api_base("openai/gpt-4o", None) == "http://127.0.0.1:1/v1"
    assert price_of("openai/gpt-4o") is None
    assert price_of("anthropic/claude-haiku-4-5") is not None


def test_cost_by_hand() -> None:
    price = price_of("gpt-4o")
    assert price is not None
    assert price.cost(1_000_000, 100_000) == pytest.approx(price.input + price.output / 10)
    assert price.cost(None, 5) is None
    assert price.cost(5, None) is None


def test_cost_of_cached_input_by_hand() -> None:
    claude = price_of("claude-haiku-4-5")
    assert claude is not None
    assert (claude.input, claude.output, claude.cached, claude.cache_write) == (1.0, 5.0, 0.1, 1.25)
    # Of 100,000 tokens in, 80,000 from the cache and 15,000 into it: 5,000 plain.
    assert claude.cost(100_000, 1_000, 80_000, 15_000) == pytest.approx(
        0.005 + 0.008 + 0.01875 + 0.005
    )
    assert (
        claude.cost(100_000, 1_000, None, None)
        == claude.cost(100_000, 1_000)
        == pytest.approx(0.105)
    )
    assert claude.cost(None, 1_000, 80_000, 0) is None


def test_without_a_rate_of_its_own_cached_input_is_plain_input() -> None:
    price = Price(2.0, 8.0, "", "")
    assert price.cost(1_000_000, 0, 900_000, 50_000) == 2.0


@pytest.mark.parametrize(
    ("text", "price"),
    [
        ("0.25,2", (0.25, 2, None, None)),
        ("3,15,0.3", (3, 15, 0.3, None)),
        ("3, 15, 0.3, 3.75", (3, 15, 0.3, 3.75)),
        ("0,0,0,0", (0, 0, 0, 0)),
    ],
)
def test_a_price_that_the_user_states(text: str, price: tuple[float | None, ...]) -> None:
    stated = parse_price(text)
    assert (stated.input, stated.output, stated.cached, stated.cache_write) == price


@pytest.mark.parametrize(
    "text",
    ["", "1", "1,", "1,2,", "1,2,3,4,5", "1,2,-3", "1,2,nan", "1,2,3,inf", "1,2,3,x", "1," * 99],
)
def test_a_stated_price_that_is_none(text: str) -> None:
    with pytest.raises(ConfigError, match=r"IN,OUT\[,CACHED"):
        parse_price(text)
