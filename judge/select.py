"""From the names of judges (`rules`, `reported`, a model, `local:PATH`, ...) to a judge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import AmbjudgeError, ConfigError, JudgeError
from ..plugins import Door, Plugin
from .base import Judge, JudgeWrapper
from .card.fields import REPORTED, Policy
from .judges.api.prices import Price
from .judges.rules import RULES

_HIGHEST_PRICE = 1e6
"""USD per million tokens: a dollar a token."""
_MAX_SHOWN = 80
_JUDGE_PARTS = (
    "name",
    "members",
    "prompt_sha256",
    "parameters",
    "evidence_sha256",
    "judge",
)
"""What a judge of another package must have (`base.Judge`)."""


@dataclass(frozen=True)
class JudgeOptions:
    """Options of judges that call a model; None leaves the judge's own default."""

    api_base: str | None = None
    temperature: float | None = None
    samples: int = 1
    pictures: bool = False
    """Also send a picture of one output of each kind, to a model that takes images."""
    timeout: float | None = None
    max_tokens: int | None = None
    """The most output tokens of a reply."""
    rationale: bool = False
    """A local judge also writes a turn, a quote and a reason for each verdict (slow on a CPU)."""
    price: str | None = None
    """`IN,OUT[,CACHED[,WRITE]]`: USD per million tokens of input, of output, and of input read from
    and written into a provider's cache, for models that the built-in table lacks."""
    batch_rate: float | None = None
    """The share of the price that calls through the provider's batches cost."""


def make_judge(names: Sequence[str] = (), options: JudgeOptions | None = None) -> Judge:
    """The judge of this name, or a panel of several; the rules judge if none is named.

    JudgeError if a judge cannot be made at all (a missing extra, an empty name); ConfigError if one
    is named twice.
    """
    options = options or JudgeOptions()
    if len(set(names)) < len(names):
        raise ConfigError(
            f"a judge is named twice: {', '.join(names)[:_MAX_SHOWN]}",
            "name each judge once; --samples asks each several times",
        )
    judges = [_judge_of(name, options) for name in names or (RULES,)]
    if len(judges) == 1:
        return judges[0]
    from .judges.panel import Panel

    return Panel(judges)


def make_rules(argument: str, options: JudgeOptions) -> Judge:
    """The judge without a model."""
    from .judges.rules import RulesJudge

    if argument:
        raise JudgeError(
            f"judge rules takes no {argument[:_MAX_SHOWN]!r}",
            "give rules, a model name, or local:PATH",
        )
    return RulesJudge()


def make_local(argument: str, options: JudgeOptions) -> Judge:
    """A model on this machine, from its folder or name."""
    from .judges.local.judge import LocalJudge

    if not argument:
        raise JudgeError(
            "judge local needs a model",
            "give local:PATH; a served model of that name is openai/local",
        )
    return LocalJudge(argument, rationale=options.rationale)


def make_reported(argument: str, options: JudgeOptions) -> Judge:
    """The harness's own judge, as reports state it."""
    from .judges.reported import ReportedJudge

    if argument:
        raise JudgeError(
            f"judge reported takes no {argument[:_MAX_SHOWN]!r}", "give reported alone"
        )
    return ReportedJudge()


def default_judges(policy: Policy, conversations: Iterable[Path]) -> tuple[str, ...]:
    """Who judges these runs unless the user names a judge; empty for the rules.

    By the harness's policy its own judge, if a report of any of them states its scores.
    """
    if policy.like != "harness":
        return ()
    from .judges.reported import any_reported

    return (REPORTED,) if any_reported(conversations) else ()


def make_replay(argument: str, options: JudgeOptions) -> Judge:
    """Recorded answers, from their folder."""
    from .judges.replay import ReplayJudge

    return ReplayJudge(argument)


JudgeMaker = Callable[[str, JudgeOptions], Judge]
"""Makes a judge from the text after the first colon of its name, and the options."""


def _maker_problem(name: str, loaded: Any) -> str:
    return "" if callable(loaded) else "it is not a function"


JUDGES: Door[JudgeMaker] = Door(
    "judges",
    "judge",
    {
        "rules": f"{__name__}:make_rules",
        "heuristic": f"{__name__}:make_rules",  # the former name of rules
        "local": f"{__name__}:make_local",
        "replay": f"{__name__}:make_replay",
        "reported": f"{__name__}:make_reported",
    },
    _maker_problem,
)


class PluginJudge(JudgeWrapper):
    """A judge of another package, under the name that the user gave.

    The package is one of its parameters.
    """

    def __init__(self, inner: Judge, name: str, plugin: Plugin) -> None:
        super().__init__(inner)
        self._name, self._plugin = name, plugin

    @property
    def name(self) -> str:
        return self._name

    @property
    def parameters(self) -> Mapping[str, str | int | float | bool | None]:
        return {**self.inner.parameters, "plugin": self._plugin.stamp}


def _judge_of(name: str, options: JudgeOptions) -> Judge:
    """One judge: of a kind in JUDGES, else a model that is called by its name."""
    if not name.strip():
        raise JudgeError(
            "a judge's name is empty", f"give a model name, or one of {', '.join(JUDGES.names)}"
        )
    kind, _, argument = name.partition(":")
    if kind not in JUDGES.entries:
        return _api_judge(name, options)
    plugin = JUDGES.entries[kind]
    try:
        maker = JUDGES.get(kind)
    except ConfigError as error:
        raise JudgeError(error.message, error.hint) from error
    if plugin.package:
        return _plugin_judge(maker, name, argument, options, plugin)
    return maker(argument, options)


def _api_judge(name: str, options: JudgeOptions) -> Judge:
    from .judges.api.judge import ApiJudge

    # An option that is not given leaves the judge's own default.
    given: dict[str, Any] = {}
    if options.temperature is not None:
        given["temperature"] = options.temperature
    if options.timeout is not None:
        given["timeout"] = options.timeout
    if options.max_tokens is not None:
        given["max_tokens"] = options.max_tokens
    if options.price is not None:
        given["price"] = parse_price(options.price)
    if options.batch_rate is not None:
        given["batch_rate"] = options.batch_rate
    judge = ApiJudge(name, options.api_base, outputs=options.pictures, **given)
    if options.samples == 1:
        return judge
    from .judges.panel import Samples

    return Samples(judge, options.samples)


def _plugin_judge(
    maker: JudgeMaker, name: str, argument: str, options: JudgeOptions, plugin: Plugin
) -> Judge:
    label = f"judge {name[:_MAX_SHOWN]} of {plugin}"
    try:
        judge = maker(argument, options)
    except AmbjudgeError:
        raise
    except Exception as error:
        raise JudgeError(f"{label} cannot be made: {type(error).__name__}: {error}") from error
    missing = [part for part in _JUDGE_PARTS if not hasattr(judge, part)]
    if missing:
        raise JudgeError(
            f"{label} is not a judge: it has no {', '.join(missing)}", "see docs/extending.md"
        )
    return PluginJudge(judge, name, plugin)


def parse_price(text: str) -> Price:
    """The price that a user states as `IN,OUT[,CACHED[,WRITE]]`.

    ConfigError unless it is two to four numbers from 0 to a million.
    """
    try:
        rates = [float(part) for part in text.split(",", 4)]
    except ValueError:
        rates = []
    if not 2 <= len(rates) <= 4 or not all(0 <= rate <= _HIGHEST_PRICE for rate in rates):
        raise ConfigError(
            f"price {text!r} is not IN,OUT[,CACHED[,WRITE]]",
            "USD per million tokens: input, output, and input read from and written into a cache,"
            " e.g. 0.25,2 or 3,15,0.3,3.75",
        )
    return Price(
        rates[0],
        rates[1],
        source="stated by the user",
        date="",
        cached=rates[2] if len(rates) > 2 else None,
        cache_write=rates[3] if len(rates) > 3 else None,
    )
