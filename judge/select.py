"""From what a user names (`rules`, a model, `local:PATH`, `replay:FOLDER`, or several of them) to a
judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import AmbjudgeError, ConfigError, JudgeError
from ..plugins import Door, Plugin
from .base import Around, Judge
from .judges.api.prices import Price
from .judges.rules import RULES

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
    """`IN,OUT[,CACHED[,WRITE]]`: USD per million input and output tokens, and of input read from
    and written into a provider's cache, where the built-in table does not know."""


def make_judge(names: Sequence[str] = (), options: JudgeOptions | None = None) -> Judge:
    """The judge of this name, a panel of several, the rules judge (`rules`, or `heuristic` as it
    was called) for none.

    JudgeError when a judge cannot be built at all (a missing extra, an empty name).
    """
    options = options or JudgeOptions()
    judges = [_one(name, options) for name in names or (RULES,)]
    if len(judges) == 1:
        return judges[0]
    from .judges.panel import Panel

    return Panel(judges)


def make_rules(rest: str, options: JudgeOptions) -> Judge:
    """The judge without a model."""
    from .judges.rules import RulesJudge

    if rest:
        raise JudgeError(
            f"judge rules takes no {rest[:80]!r}", "give rules, a model name, or local:PATH"
        )
    return RulesJudge()


def make_local(rest: str, options: JudgeOptions) -> Judge:
    """A model on this machine, from its folder or name."""
    from .judges.local.judge import LocalJudge

    if not rest:
        raise JudgeError(
            "judge local needs a model",
            "give local:PATH; a served model of that name is openai/local",
        )
    return LocalJudge(rest, rationale=options.rationale)


def make_replay(rest: str, options: JudgeOptions) -> Judge:
    """Answers that were given before, from their folder."""
    from .judges.replay import ReplayJudge

    return ReplayJudge(rest)


Maker = Callable[[str, JudgeOptions], Judge]
"""From what stands behind the first colon of a judge's name, and the options, to the judge."""
JUDGES: Door[Maker] = Door(
    "judges",
    "judge",
    {
        "rules": f"{__name__}:make_rules",
        "heuristic": f"{__name__}:make_rules",
        "local": f"{__name__}:make_local",
        "replay": f"{__name__}:make_replay",
    },
    lambda name, loaded: "" if callable(loaded) else "it is no function",
)


class PluginJudge(Around):
    """A judge of another package, under the name that the user gave; the package is one of its
    parameters."""

    def __init__(self, inner: Judge, name: str, plugin: Plugin) -> None:
        super().__init__(inner)
        self._name, self._plugin = name, plugin

    @property
    def name(self) -> str:
        return self._name

    @property
    def parameters(self) -> Mapping[str, str | int | float | bool | None]:
        return {**self.inner.parameters, "plugin": self._plugin.stamp}


def _one(name: str, options: JudgeOptions) -> Judge:
    if not name.strip():
        raise JudgeError(
            "a judge's name is empty", f"give a model name, or one of {', '.join(JUDGES.names)}"
        )
    kind, _, rest = name.partition(":")
    if kind in JUDGES.entries:
        plugin = JUDGES.entries[kind]
        try:
            maker = JUDGES.get(kind)
        except ConfigError as error:
            raise JudgeError(error.message, error.hint) from error
        return (
            _of_package(maker, name, rest, options, plugin)
            if plugin.package
            else maker(rest, options)
        )
    from .judges.api.judge import ApiJudge

    given = {
        "temperature": options.temperature,
        "timeout": options.timeout,
        "price": None if options.price is None else parse_price(options.price),
    }
    named: dict[str, Any] = {option: value for option, value in given.items() if value is not None}
    return ApiJudge(
        name, options.api_base, samples=options.samples, outputs=options.pictures, **named
    )


def _of_package(make: Maker, name: str, rest: str, options: JudgeOptions, plugin: Plugin) -> Judge:
    try:
        judge = make(rest, options)
    except AmbjudgeError:
        raise
    except Exception as error:
        raise JudgeError(
            f"judge {name[:80]} of {plugin} cannot be made: {type(error).__name__}: {error}"
        ) from error
    lacks = [
        part
        for part in ("name", "members", "prompt_sha256", "parameters", "evidence_sha256", "judge")
        if not hasattr(judge, part)
    ]
    if lacks:
        raise JudgeError(
            f"judge {name[:80]} of {plugin} is no judge: it has no {', '.join(lacks)}",
            "see docs/extending.md",
        )
    return PluginJudge(judge, name, plugin)


def parse_price(text: str) -> Price:
    """The price that a user states as `IN,OUT[,CACHED[,WRITE]]`; ConfigError for anything but two
    to four numbers from 0 to a million."""
    try:
        given, made, *cached = (float(part) for part in text.split(",", 4))
    except ValueError:
        given, made, cached = -1.0, -1.0, []
    if len(cached) > 2 or not all(0 <= rate <= _DEAREST for rate in (given, made, *cached)):
        raise ConfigError(
            f"price {text!r} is not IN,OUT[,CACHED[,WRITE]]",
            "USD per million tokens: input, output, and input read from and written into a cache,"
            " e.g. 0.25,2 or 3,15,0.3,3.75",
        )
    read, written = (*cached, None, None)[:2]
    return Price(
        given, made, source="stated by the user", date="", cached=read, cache_write=written
    )
