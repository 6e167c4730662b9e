"""E2: a model that could not be had, and other code that made the deliverables in its place.

Read off what failed (weights, hub names and packages that code and traceback name) and off the code that wrote the files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ...trajectories.actions import split
from ...trajectories.failures import Failure, find_errors
from ...trajectories.models import Run, Turn
from ..context import CodeContext
from ..episodes import short
from ..lacks import GENERAL, WEIGHTS, models_in, names_of
from ..registry import Finding, detector

_ACCESS = frozenset(
    {"package", "network", "model", "memory", "device", "disk", "permission", "shell", "path", "killed"}
)
_LOADS = re.compile(
    r"torch\.(?:jit\.)?load|load_state_dict|from_pretrained|InferenceSession|joblib\.load|load_model|pickle\.load|\bpipeline\(|load_file\(|\.pth?\b"
)
_FILE_OF_PROSE = re.compile(r"\.(?:md|rst|txt|log|json|csv)$", re.IGNORECASE)
_COMMENT = re.compile(r"(?m)(?:^|\s)#[^\n'\"]{0,400}$")
MAX_CODE = 400_000
MAX_LINES = 400
"""Lines of one output that are read for errors which code caught and printed, from the end."""


class OutOfReach(NamedTuple):
    """A model that was tried for in vain. `turns` are the attempts, `name` is how the run calls it."""

    name: str
    turns: tuple[int, ...]
    message: str


class _Lack(NamedTuple):
    """One failure of access: what came back, how many different errors, and what it was about."""

    turn: int
    message: str
    errors: int
    models: frozenset[str]
    packages: frozenset[str]


def out_of_reach(ctx: CodeContext) -> OutOfReach | None:
    """The model that was tried for most and that no code which worked ever applied; None without one.

    Enough is one attempt at the only model that the brief names, two at one that it names, three at another. A package
    stands for a model where brief or plan names it and none of the brief's weights served.
    """
    final = ctx.final_write
    if final is None:
        return None
    lacks = sorted((*_ended(ctx, final), *_printed(ctx, final)), key=lambda lack: lack.turn)
    if not lacks:
        return None
    modules = written_modules(ctx.run, final)
    last = lacks[-1].turn
    writes = {t for t in ctx.write_turns if t > last and t not in ctx.failed_turns} | {final}
    serving = "\n".join(run_code(ctx.turn(t), modules) for t in sorted(writes))[:MAX_CODE]
    models = frozenset(name for lack in lacks for name in lack.models)
    wanted = ctx.run.brief[-8_000:] + (ctx.run.plan.text or "")
    served = any(names_weights(serving, w) for w in WEIGHTS.findall(ctx.run.brief[-8_000:]))
    found = [
        blocked
        for name in dict.fromkeys(name for lack in lacks for name in (*sorted(lack.models), *sorted(lack.packages)))
        if (name in models or (not served and name.lower() not in GENERAL and _named(name, wanted)))
        and (blocked := _blocked(ctx, name, lacks, serving, modules)) is not None
    ]
    return max(found, key=lambda b: (_named(b.name, wanted), len(b.turns)), default=None)


def _blocked(
    ctx: CodeContext, name: str, lacks: list[_Lack], serving: str, modules: Mapping[str, str]
) -> OutOfReach | None:
    mine = [lack for lack in lacks if name in lack.models | lack.packages]
    if mine[-1].turn != ctx.final_write:
        if names_weights(serving, name):
            return None
        for feature in ctx.features[mine[-1].turn : (ctx.final_write or 0) - 1]:
            code = run_code(ctx.turn(feature.turn), modules)
            if not feature.executed or feature.turn in ctx.failed_turns or not names_weights(code, name):
                continue
            saved = any(w != name and names_weights(serving, w) for w in WEIGHTS.findall(code))
            if feature.forward_pass or saved:
                return None  # it was had in the end, or serves under another name
    # What failed together with the model (its tokenizer, its wheel) was tried for its sake; where no model serves at
    # all, every model that was tried for counts.
    group = {name} | {n for lack in mine for n in lack.models | lack.packages if n.lower() not in GENERAL}
    no_model = not _LOADS.search(serving)
    about = [x for x in lacks if group & (x.models | x.packages) or (no_model and x.models)]
    attempts: dict[int, int] = {}
    for lack in about:
        attempts[lack.turn] = max(attempts.get(lack.turn, 0), lack.errors)
    for feature in ctx.features[
        min(attempts) : (ctx.final_write or 1) - 1
    ]:  # tried, and what came back was no error of access
        tries = feature.executed and feature.has("loads_model", "forward_pass", "loads_inputs")
        if tries and any(names_weights(run_code(ctx.turn(feature.turn), modules), n) for n in group):
            attempts.setdefault(feature.turn, 1)
    others = [w for w in WEIGHTS.findall(serving) if w not in group]
    brief = ctx.run.brief[-8_000:]
    wanted = [w for w in dict.fromkeys(WEIGHTS.findall(brief)) if w not in group]
    named = any(_named(n, brief) for n in group)
    enough = (2 if wanted else 1) if named else 3
    if sum(attempts.values()) < enough or not (others or no_model):
        return None
    return OutOfReach(name, tuple(sorted(attempts)), about[0].message)


def _ended(ctx: CodeContext, final: int) -> Iterable[_Lack]:
    """Executions that ended in a failure of access."""
    for failure in ctx.failures:
        sure = failure.confidence >= (0.5 if failure.turn == final else 0.6) and failure.kind != "look-up"
        if failure.turn <= final and failure.family in _ACCESS and failure.environment and sure:
            action = ctx.turn(failure.turn).actions[failure.action]
            yield _Lack(failure.turn, failure.message, _errors(ctx, failure), *names_of(action, failure))


def _errors(ctx: CodeContext, failure: Failure) -> int:
    """1 or 2: different kinds of errors that one action ended in; several sources tried in one go are several attempts."""
    seen = ctx.turn(failure.turn).actions[failure.action].observation
    kinds = {e.kind for e in find_errors(seen.text[-8_000:]) if e.confidence >= 0.6} if seen else set()
    return 2 if len(kinds) > 1 else 1


def _printed(ctx: CodeContext, final: int) -> Iterable[_Lack]:
    """Errors that code caught and printed while it opened models: of the model on the same line, else of the only one."""
    for turn in ctx.run.turns[: final - 1]:
        for action in turn.actions:
            seen = action.observation
            if action.kind != "execute" or seen is None or seen.kind not in ("ok", "unknown"):
                continue
            code = "\n".join(p.text for p in split(action) if p.kind != "file")[:60_000]
            opened = models_in(code)
            kinds: dict[frozenset[str], dict[str, str]] = {}
            for line in seen.text.splitlines()[-MAX_LINES:] if opened and _LOADS.search(code) else ():
                errors = [e for e in find_errors(line[:600]) if e.confidence >= 0.5]
                on_line = frozenset(name for name in opened if _named(name, line[:600])) if errors else frozenset()
                if on_line or (len(opened) == 1 and any(e.family in ("model", "network") for e in errors)):
                    kinds.setdefault(on_line or opened, {})[errors[-1].kind] = errors[-1].message
            for models, came_back in kinds.items():
                message = next(iter(came_back.values()))
                yield _Lack(turn.index, message, min(len(came_back), 2), models, frozenset())


def _named(name: str, text: str) -> bool:
    return re.search(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", text, re.IGNORECASE) is not None


def names_weights(code: str, stem: str) -> bool:
    """Whether code names a weight file: `stem.ext`, or the stem alone in quotes or a path (an extension added later)."""
    if stem not in code:
        return False
    name = re.escape(stem)
    return re.search(rf"(?<![\w.-]){name}\.[a-z]\w{{1,11}}\b|['\"/]{name}['\"/]", code) is not None


def written_modules(run: Run, until: int) -> dict[str, str]:
    """Stem -> text of every module that the run wrote up to this turn."""
    files: dict[str, str] = {}
    for turn in run.turns[:until]:
        for action in turn.actions:
            for part in split(action):
                stem = part.path.removesuffix("/__init__.py").rpartition("/")[2].partition(".")[0]
                if part.kind == "file" and stem and not _FILE_OF_PROSE.search(part.path):
                    files[stem] = files.get(stem, "") + "\n" + part.text if part.append else part.text
    return files


def run_code(turn: Turn, modules: Mapping[str, str]) -> str:
    """What a turn runs without comments, with the modules of the run's own that it names, and those that they name."""
    added = "\n".join(p.text for a in turn.actions for p in split(a) if p.kind != "file")
    waiting, found = dict(modules), [added]
    while used := [stem for stem in waiting if re.search(rf"(?<![A-Za-z0-9]){re.escape(stem)}(?![A-Za-z0-9])", added)]:
        added = "\n".join(waiting.pop(stem) for stem in used)
        found.append(added)
    return _COMMENT.sub("", "\n".join(found)[:MAX_CODE])


@detector("model_out_of_reach", code="E2", stage="S2", independence="from_trace")
def model_out_of_reach(ctx: CodeContext) -> Iterable[Finding]:
    """A model could not be obtained, installed or loaded in two or more attempts, and another method served."""
    blocked = out_of_reach(ctx)
    if blocked is not None:
        said = short(blocked.message)
        why = f"{blocked.name} could not be obtained or brought to work ({said}), and the outputs were made without it."
        yield Finding(blocked.turns, why, 0.75)
