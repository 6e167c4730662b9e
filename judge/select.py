"""From what a user names (`rules`, a model, `local:PATH`, or several of them) to a judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from ..errors import ConfigError, JudgeError
from .api.prices import Price
from .base import Judge
from .rules import RULES, RulesJudge

_DEAREST = 1e6
"""USD per million tokens: a dollar a token."""


@dataclass(frozen=True)
class JudgeOptions:
    """Options of judges that call a model; None leaves the judge's own default."""

    api_base: str | None = None
    temperature: float | None = None
    samples: int = 1
    pictures: bool = False
    """Also send a picture of one output of each kind, to a model that takes images."""
    timeout: float | None = None
    rationale: bool = False
    """A local judge also writes a turn, a quote and a reason for each verdict (slow on a CPU)."""
    price: str | None = None
    """`IN,OUT[,CACHED[,WRITE]]`: USD per million input and output tokens, and of input read from and written into a
    provider's cache, where the built-in table does not know."""


def make_judge(names: Sequence[str] = (), options: JudgeOptions | None = None) -> Judge:
    """The judge of this name, a panel of several, the rules judge (`rules`, or `heuristic` as it was called) for none.

    JudgeError when a judge cannot be built at all (a missing extra, an empty name).
    """
    options = options or JudgeOptions()
    judges = [_one(name, options) for name in (names or (RULES,))]
    if len(judges) == 1:
        return judges[0]
    from .panel import Panel

    return Panel(judges)


def _one(name: str, options: JudgeOptions) -> Judge:
    if not name.strip():
        raise JudgeError("a judge's name is empty", "give rules, a model name, or local:PATH")
    if name in (RULES, "heuristic"):
        return RulesJudge()
    if name.startswith("local:"):
        from .local.judge import LocalJudge

        return LocalJudge(name.removeprefix("local:"), rationale=options.rationale)
    from .api.judge import ApiJudge

    make: Callable[..., ApiJudge] = partial(
        ApiJudge, name, options.api_base, samples=options.samples, outputs=options.pictures
    )
    if options.temperature is not None:
        make = partial(make, temperature=options.temperature)
    if options.timeout is not None:
        make = partial(make, timeout=options.timeout)
    if options.price is not None:
        make = partial(make, price=parse_price(options.price))
    return make()


def parse_price(text: str) -> Price:
    """The price that a user states as `IN,OUT[,CACHED[,WRITE]]`; ConfigError for anything but two to four numbers from 0
    to a million."""
    try:
        given, made, *cached = (float(part) for part in text.split(",", 4))
    except ValueError:
        given, made, cached = -1.0, -1.0, []
    if len(cached) > 2 or not all(0 <= rate <= _DEAREST for rate in (given, made, *cached)):
        raise ConfigError(
            f"price {text!r} is not IN,OUT[,CACHED[,WRITE]]",
            "USD per million tokens: input, output, and input read from and written into a cache, e.g. 0.25,2 or 3,15,0.3,3.75",
        )
    read, written = (*cached, None, None)[:2]
    return Price(given, made, source="stated by the user", date="", cached=read, cache_write=written)
