"""E2: a model that could not be had, and other code that made the deliverables in its place.

Read off names alone: weight files, hub ids and packages that failed code, its message and its
traceback name, held against the names in the code that wrote the files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

from ...trajectories.models import Action, Run, Turn
from ...trajectories.turns.actions import split
from ...trajectories.turns.failures import Failure, find_errors
from ..context import CodeContext
from ..episodes import short_cause
from ..package_names import general
from ..registry import Finding, detector

_ACCESS = frozenset(
    {
        "package",
        "network",
        "model",
        "memory",
        "device",
        "disk",
        "permission",
        "shell",
        "path",
        "killed",
    }
)
_EXTENSION = r"(?:pth?|onnx|ckpt|safetensors|h5|hdf5|keras|pkl|joblib|bin|tflite|pb|msgpack|torchscript|gguf|whl)"
_WEIGHTS = re.compile(rf"(?<![\w.-])([A-Za-z][\w.-]{{1,80}}?)\.{_EXTENSION}\b")
_HUB_CALL = re.compile(
    r"from_pretrained|hf_hub_download|snapshot_download|hub\.load\b|\bpipeline\("
)
_HUB_NAME = re.compile(r"['\"][A-Za-z][\w.-]{1,60}/([A-Za-z][\w.-]{1,80})['\"]")
_PACKAGE = re.compile(r"(?:No module named|found for|requirement) '?([A-Za-z][\w-]{1,40})\b")
_LOADS = re.compile(
    r"torch\.(?:jit\.)?load|load_state_dict|from_pretrained|InferenceSession|joblib\.load|load_model|pickle\.load|\bpipeline\(|load_file\(|\.pth?\b"
)
_NO_CODE = (".md", ".rst", ".txt", ".log", ".json", ".csv")
_COMMENT = re.compile(r"(?m)(?:^|\s)#[^\n'\"]{0,400}$")
MAX_CODE = 400_000
_BRIEF = 8_000
"""Characters at the end of a brief in which a model is named."""


class OutOfReach(NamedTuple):
    """A model that was tried for in vain. `turns` are the attempts, `name` is how the run calls it."""

    name: str
    turns: tuple[int, ...]
    message: str


class _Lack(NamedTuple):
    """One failure of access: what came back, and the models and packages that it names."""

    turn: int
    message: str
    models: frozenset[str]
    packages: frozenset[str] = frozenset()

    @property
    def names(self) -> frozenset[str]:
        return self.models | self.packages


def out_of_reach(ctx: CodeContext) -> OutOfReach | None:
    """The model that was tried for most and that no code which worked ever applied; None without
    one.

    Enough is one attempt at the only model that the brief names, two at one that it names, three at
    another. A package stands for a model where brief or plan names it and none of the brief's
    weights served.
    """
    final = ctx.final_write
    lacks = sorted(_lacks(ctx, final), key=lambda lack: lack.turn) if final else []
    if final is None or not lacks:
        return None
    modules = written_modules(ctx.run, final)
    writes = {t for t in ctx.write_turns if t > lacks[-1].turn and t not in ctx.failed_turns} | {
        final
    }
    serving = "\n".join(run_code(ctx.turn(t), modules) for t in sorted(writes))[:MAX_CODE]
    models = {name for lack in lacks for name in lack.models}
    brief = ctx.run.brief[-_BRIEF:]
    wanted = brief + (ctx.run.plan.text or "")
    served = any(names_weights(serving, weights) for weights in _WEIGHTS.findall(brief))
    found = []
    for name in sorted({name for lack in lacks for name in lack.names}):
        stands = name in models or (not served and not general(name) and _named(name, wanted))
        if stands and (blocked := _blocked(ctx, name, lacks, serving, modules)) is not None:
            found.append(blocked)
    return max(
        found, key=lambda b: (_named(b.name, wanted), len(b.turns), -b.turns[0]), default=None
    )


def _blocked(
    ctx: CodeContext, name: str, lacks: list[_Lack], serving: str, modules: Mapping[str, str]
) -> OutOfReach | None:
    final = ctx.final_write or 0
    mine = [lack for lack in lacks if name in lack.names]
    if mine[-1].turn != final:
        later = [
            f
            for f in ctx.features[mine[-1].turn : final - 1]
            if f.executed and f.turn not in ctx.failed_turns
        ]
        codes = [
            (f, code)
            for f in later
            if names_weights(code := run_code(ctx.turn(f.turn), modules), name)
        ]
        saved = {weights for _, code in codes for weights in _WEIGHTS.findall(code)} - {name}
        if names_weights(serving, name) or any(f.forward_pass for f, _ in codes):
            return None
        if any(names_weights(serving, weights) for weights in saved):
            return None  # it serves under another name
    # What failed together with the model (its tokenizer, its wheel) was tried for its sake.
    group = {name} | {n for lack in mine for n in lack.names if not general(n)}
    about = [lack for lack in lacks if group & lack.names]
    attempts = {lack.turn for lack in about}
    # tried, and what came back was no error of access
    for feature in ctx.features[min(attempts) : final - 1]:
        tries = feature.executed and feature.has("loads_model", "forward_pass", "loads_inputs")
        if tries and any(
            names_weights(run_code(ctx.turn(feature.turn), modules), n) for n in group
        ):
            attempts.add(feature.turn)
    others = set(_WEIGHTS.findall(serving)) - group
    brief = ctx.run.brief[-_BRIEF:]
    enough = 3
    if any(_named(n, brief) for n in group):
        enough = 2 if set(_WEIGHTS.findall(brief)) - group else 1
    if len(attempts) < enough or (not others and _LOADS.search(serving)):
        return None
    return OutOfReach(name, tuple(sorted(attempts)), about[0].message)


def _lacks(ctx: CodeContext, final: int) -> Iterable[_Lack]:
    """Executions that ended in a failure of access."""
    for failure in ctx.failures:
        sure = (
            failure.confidence >= (0.5 if failure.turn == final else 0.6)
            and failure.kind != "look-up"
        )
        if failure.turn <= final and failure.family in _ACCESS and failure.environment and sure:
            action = ctx.turn(failure.turn).actions[failure.action]
            yield _Lack(failure.turn, failure.message, *_names_of(action, failure))


def _models_in(code: str) -> frozenset[str]:
    """Weight files and hub names that code names."""
    return frozenset(
        {*_WEIGHTS.findall(code), *(_HUB_NAME.findall(code) if _HUB_CALL.search(code) else ())}
    )


def _names_of(action: Action, failure: Failure) -> tuple[frozenset[str], frozenset[str]]:
    """Models (files, hub names) and packages that a failed action was about."""
    text = action.observation.text if action.observation is not None else ""
    said = "\n".join([failure.message, *(e.message for e in find_errors(text[-8_000:]))])
    code = "\n".join(p.text for p in split(action) if p.kind != "file")[:60_000]
    models = _models_in(code) | frozenset(_WEIGHTS.findall(said))
    if not models:  # the call stands in a module; the traceback quotes it
        models = frozenset(model for line in _quoted(text) for model in _models_in(line))
    return models, frozenset(_PACKAGE.findall(said))


def _quoted(text: str) -> list[str]:
    """Lines of the agent's own code that tracebacks quote."""
    lines = text[-20_000:].splitlines()
    return [
        after[:600]
        for line, after in pairwise(lines)
        if line.lstrip().startswith('File "') and "-packages/" not in line
    ]


def _named(name: str, text: str) -> bool:
    return (
        re.search(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", text, re.IGNORECASE)
        is not None
    )


def names_weights(code: str, stem: str) -> bool:
    """Whether code names a weight file: `stem.ext`, or the stem alone in quotes or a path (an
    extension added later)."""
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
                if part.kind == "file" and stem and not part.path.lower().endswith(_NO_CODE):
                    files[stem] = (
                        files.get(stem, "") + "\n" + part.text if part.append else part.text
                    )
    return files


def run_code(turn: Turn, modules: Mapping[str, str]) -> str:
    """What a turn runs without comments, with the modules of the run's own that it names, and those
    that they name."""
    added = "\n".join(p.text for a in turn.actions for p in split(a) if p.kind != "file")
    waiting, found = dict(modules), [added]
    while used := [
        stem
        for stem in waiting
        if re.search(rf"(?<![A-Za-z0-9]){re.escape(stem)}(?![A-Za-z0-9])", added)
    ]:
        added = "\n".join(waiting.pop(stem) for stem in used)
        found.append(added)
    return _COMMENT.sub("", "\n".join(found)[:MAX_CODE])


@detector("model_out_of_reach", code="E2", stage="S2", independence="from_trace")
def model_out_of_reach(ctx: CodeContext) -> Iterable[Finding]:
    """A model could not be obtained, installed or loaded in two or more attempts, and another
    method served."""
    blocked = out_of_reach(ctx)
    if blocked is not None:
        said = short_cause(blocked.message)
        why = (
            f"{blocked.name} could not be obtained or brought to work ({said}), and the outputs"
            " were made without it."
        )
        yield Finding(blocked.turns, why, 0.75)
