"""E2: a model that could not be loaded, and deliverables that were made without it.

Only names count: the weight files and hub ids in code that failed to obtain or load them, and in
the code that ran afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from ...trajectories.models import Run
from ...trajectories.turns.actions import split
from ...trajectories.turns.failures import Failure
from ...trajectories.turns.turn_features import TurnFeatures
from ..context import CodeContext
from ..episodes import short_cause
from ..package_names import is_general
from ..registry import Finding, detector

_ACCESS = re.compile("package|network|model|memory|device|disk|permission|shell|path|killed")
"""Families of failures in which something could not be had."""
_WEIGHTS = re.compile(
    r"(?<![\w.-])[A-Za-z][\w.-]{1,80}?"
    r"\.(?:pth?|onnx|ckpt|safetensors|h5|keras|pkl|joblib|bin|tflite|gguf)\b"
)
_HUB_ID = re.compile(
    r"(?:from_pretrained|hf_hub_download|snapshot_download|hub\.load|pipeline)\([^)\n]{0,200}?"
    r"['\"][A-Za-z][\w.-]{1,60}/([A-Za-z][\w.-]{1,80})['\"]"
)
_PACKAGE = re.compile(r"(?:No module named|found for|requirement) '?([A-Za-z][\w-]{1,40})\b")
_COMMENT = re.compile(r"(?m)(?:^|\s)#[^\n'\"]{0,400}$")
MAX_CODE = 400_000
MIN_ATTEMPTS = 3
MAX_BRIEF = 8_000
"""Characters at the end of a brief in which weight files are looked for."""


class OutOfReach(NamedTuple):
    """A model that could not be loaded, with the turns of the attempts and the first error."""

    name: str
    turns: tuple[int, ...]
    message: str


def out_of_reach(ctx: CodeContext) -> OutOfReach | None:
    """The attempts at models and packages that no later code uses; None without enough of them.

    Three failed attempts are enough, or one at the only model that the brief names.
    """
    final = ctx.final_write
    if final is None:
        return None
    attempts: dict[str, list[Failure]] = {}
    for failure in ctx.failures:
        if failure.turn <= final and _is_access_failure(failure):
            for name in _names(ctx, failure):
                attempts.setdefault(name, []).append(failure)
    turns_naming = _turns_naming(ctx, attempts, final)
    unused = {
        name: failures
        for name, failures in sorted(attempts.items())
        if not _is_used(ctx, failures[-1].turn, turns_naming[name])
    }
    turns = sorted(
        {turn for name in unused for turn in _attempts(ctx, unused[name], turns_naming[name])}
    )
    prescribed = [name for name in unused if _is_prescribed(ctx, name, unused[name])]
    if len(turns) < MIN_ATTEMPTS and not prescribed:
        return None
    name, failures = max(unused.items(), key=lambda item: (item[0] in prescribed, len(item[1])))
    return OutOfReach(name, tuple(turns), failures[0].message)


def _attempts(
    ctx: CodeContext, failures: Sequence[Failure], turns_naming: Sequence[int]
) -> Iterable[int]:
    """Turns in which a model could not be loaded, and later turns whose code used it in vain."""
    yield from (failure.turn for failure in failures)
    for turn in turns_naming:
        if failures[0].turn < turn < (ctx.final_write or 0) and _is_try(ctx.feature(turn)):
            yield turn


def _is_try(feature: TurnFeatures) -> bool:
    return feature.executed and feature.has("loads_model", "forward_pass")


def _is_prescribed(ctx: CodeContext, name: str, failures: Sequence[Failure]) -> bool:
    """Whether the brief names this model and no other weight file.

    The lack of a package is left out: it may concern another part of the code than the model.
    """
    brief = ctx.run.brief[-MAX_BRIEF:]
    named = re.search(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", brief) is not None
    alone = not set(_WEIGHTS.findall(brief)) - {name}
    return named and alone and any(failure.family != "package" for failure in failures)


def _is_access_failure(failure: Failure) -> bool:
    accessed = failure.environment and _ACCESS.fullmatch(failure.family) is not None
    return accessed and failure.kind != "look-up" and failure.confidence >= 0.6


def _names(ctx: CodeContext, failure: Failure) -> set[str]:
    """What a failed action lacked: weight files and hub ids in its code and errors, or a package.

    A missing package says nothing of the models in the code; packages of general use are left out.
    """
    packages = set(_PACKAGE.findall(failure.message))
    if packages:
        return {name for name in packages if not is_general(name)}
    action = ctx.turn(failure.turn).actions[failure.action]
    output = action.observation.text[-20_000:] if action.observation is not None else ""
    code = [part.text for part in split(action) if part.kind != "file"]
    quoted = [
        line[:600]
        for above, line in pairwise(output.splitlines())
        if above.lstrip().startswith('File "') and "-packages/" not in above
    ]
    text = "\n".join([*code, failure.message, *quoted])[:MAX_CODE]
    return {*_WEIGHTS.findall(text), *_HUB_ID.findall(text)}


def _is_used(ctx: CodeContext, after: int, turns_naming: Sequence[int]) -> bool:
    """Whether code that wrote deliverables later, without failing, names the model."""
    return any(
        turn > after and turn in ctx.write_turns and turn not in ctx.failed_turns
        for turn in turns_naming
    )


def _turns_naming(ctx: CodeContext, names: Iterable[str], until: int) -> dict[str, list[int]]:
    """By model, the turns up to this one that name it in code which tried it or wrote outputs."""
    patterns = {name: _name_pattern(name) for name in names}
    turns: dict[str, list[int]] = {name: [] for name in patterns}
    if not patterns:
        return turns
    modules = _written_modules(ctx.run, until)
    for feature in ctx.features[:until]:
        if _is_try(feature) or feature.turn in ctx.write_turns:
            code = _executed_code(ctx, feature.turn, modules)
            for name, pattern in patterns.items():
                if pattern.search(code):
                    turns[name].append(feature.turn)
    return turns


def _name_pattern(name: str) -> re.Pattern[str]:
    """The full name, or in quotes or a path its stem, as the extension may be added later."""
    stem = re.escape(name.rpartition(".")[0] or name)
    return re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-])|['\"/]{stem}['\"/]")


def _written_modules(run: Run, until: int) -> dict[str, str]:
    """Stem -> text of every file that the run wrote up to this turn."""
    modules: dict[str, str] = {}
    for turn in run.turns[:until]:
        for part in (part for action in turn.actions for part in split(action)):
            stem = part.path.rpartition("/")[2].partition(".")[0]
            if part.kind == "file" and part.path.endswith(".py") and stem:
                before = modules.get(stem, "") if part.append else ""
                modules[stem] = f"{before}\n{part.text}"
    return modules


def _executed_code(ctx: CodeContext, turn: int, modules: Mapping[str, str]) -> str:
    """The code of a turn with the run's modules that it names, at any depth.

    Comments and the texts of written files are left out.
    """
    parts = [part for action in ctx.turn(turn).actions for part in split(action)]
    code = "\n".join(part.text for part in parts if part.kind != "file")
    for part in parts:
        if part.kind == "file":
            code = code.replace(part.text, "")
    texts, remaining = [code], dict(modules)
    for text in texts:  # grows while it is read
        words = set(re.findall(r"[A-Za-z_]\w*", text[:MAX_CODE]))
        texts += [remaining.pop(stem) for stem in sorted(words & remaining.keys())]
    return _COMMENT.sub("", "\n".join(texts)[:MAX_CODE])


@detector("model_out_of_reach", code="E2", stage="S2", independence="from_trace")
def model_out_of_reach(ctx: CodeContext) -> Iterable[Finding]:
    """A model could not be obtained or loaded, and the deliverables were made without it."""
    model = out_of_reach(ctx)
    if model is not None:
        cause = short_cause(model.message)
        why = (
            f"{model.name} could not be obtained or brought to work ({cause}), and the outputs"
            " were made without it."
        )
        yield Finding(model.turns, why, 0.75)
