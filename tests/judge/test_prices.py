"""List prices: known, unknown, and never guessed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ambjudge.errors import ConfigError
from ambjudge.judge.prices import builtin_prices, effective_api_base, load_prices, price_of


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


def test_a_table_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    path.write_text(json.dumps({"date": "2026-01-01", "models": {"house/model": {"input": 0, "output": 1.5}}}))
    price = price_of("house/model", table=load_prices(path))
    assert price is not None
    assert price.cost(10, 1_000_000) == 1.5


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"models": []}', '{"models": {"a": {"input": -1, "output": 1}}}', '{"models": {"a": {"input": true, "output": 1}}}',
     '{"models": {"a": {"input": NaN, "output": 1}}}', '{"models": {"a": 3}}'],
)  # fmt: skip
def test_broken_tables_are_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "prices.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"prices\.json"):
        load_prices(path)
