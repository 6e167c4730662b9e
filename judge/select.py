"""From what a user names (`heuristic`, a model, `local:PATH`, or several of them) to a judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from ..errors import JudgeError
from .base import Judge


@dataclass(frozen=True)
class JudgeOptions:
    """Options of judges that call a model; None leaves the judge's own default."""

    api_base: str | None = None
    temperature: float | None = None
    samples: int = 1
    timeout: float | None = None


def make_judge(names: Sequence[str] = (), options: JudgeOptions | None = None) -> Judge:
    """The judge of this name, a panel of several, the heuristic judge for none.

    JudgeError when a judge cannot be built at all (a missing extra, an empty name).
    """
    options = options or JudgeOptions()
    judges = [_one(name, options) for name in (names or ("heuristic",))]
    if len(judges) == 1:
        return judges[0]
    from .panel import Panel

    return Panel(judges)


def _one(name: str, options: JudgeOptions) -> Judge:
    if not name.strip():
        raise JudgeError("a judge's name is empty", "give heuristic, a model name, or local:PATH")
    if name == "heuristic":
        from .heuristic import HeuristicJudge

        return HeuristicJudge()
    if name.startswith("local:"):
        from .local import LocalJudge

        return LocalJudge(name.removeprefix("local:"))
    from .api import ApiJudge

    make: Callable[..., ApiJudge] = partial(ApiJudge, name, options.api_base, samples=options.samples)
    if options.temperature is not None:
        make = partial(make, temperature=options.temperature)
    if options.timeout is not None:
        make = partial(make, timeout=options.timeout)
    return make()
