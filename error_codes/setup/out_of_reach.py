"""A model that could not be had: the attempts on it, and whether another method served in its place (E2).

Facts first: which weights, hub names or packages the failed executions were about, and that the code which made the
deliverables does not use them. What the agent says is asked only where the code leaves it open.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ...trajectories.code_parts import split
from ...trajectories.failures import Failure, find_errors
from ...trajectories.models import Turn
from ..context import CodeContext, names_weights
from ..serving import run_code, without_comments, written_modules
from .lacks import GENERAL, WEIGHTS, models_in, names_of

_ACCESS = frozenset(
    {"package", "network", "model", "memory", "device", "disk", "permission", "shell", "path", "killed"}
)
_GIVES_UP = re.compile(
    r"fall(?:ing)?[ -]?back|\binstead\b|\bsubstitut|\breplace(?:s|d|ment)?\b|\bwithout (?:the|that|this|any|its)\b|\bplan [b-d]\b|\b(?:abandon|giv(?:e|ing) up|drop(?:ped|ping)?)\b"
    r"|\bi (?:stop|drop|leave)\b|\bswitch(?:ed|ing)? to\b|\bout of reach\b|\bunavailable\b|\bnever (?:run|loaded|used|came|worked)\b"
    r"|\b(?:cannot|can[’']t|could not|couldn[’']t|unable to|impossible to|not possible to|failed to) (?:\w{1,12} ){0,2}?(?:be )?(?:install|load|run|download|open|rebuil|import|us|get|got|obtain|recover|guess|fetch|read|reach)"
    r"|\bnot (?:be )?(?:us(?:ed|able)|installable|loadable|available|recoverable|run)\b|\b(?:unusable|unloadable)\b|\bno (?:usable|working) ",
    re.IGNORECASE,
)
_SAVES = re.compile(r"\.save\(|savez|\bdump\(|save_file\(|\b(?:cp|mv|ln)\b|shutil|save_pretrained")
_LOADS = re.compile(
    r"torch\.(?:jit\.)?load|load_state_dict|from_pretrained|InferenceSession|joblib\.load|load_model|pickle\.load|\bpipeline\(|load_file\(|\.pth?\b"
)
_DATA_FILE = re.compile(r"[/'\"]([A-Za-z][\w.-]{1,60})\.(?:npz|npy|json)\b")
_USE = re.compile(
    r"\b(?:us(?:e|es|ing)|run|appl(?:y|ied)|through|via|with|by|must|shall|load|prescribed|required|chosen|method|model|approach)\b",
    re.IGNORECASE,
)
_CHOICE = re.compile(
    r"\b(?:choos\w{1,3}|choice|any|either|or|such as|one of|may|might|can|could|e\.g|candidates?|optional\w{0,2}|whichever|for example|famil(?:y|ies)"
    r"|compare|free to|among|baseline|fallback|if)\b",
    re.IGNORECASE,
)
_HINT = 0.5
_IN_PART = re.compile(
    r"strict\s?=\s?False|\bmissing_keys\b|\b(?:missing|lost|unfilled|skipped|random(?:ly)?)\b[^\n]{0,40}\b(?:keys?|tensors?|weights?|layers?|init\w*)\b|\b(?:keys?|tensors?|weights?|layers?)\b[^\n]{0,20}\b(?:missing|lost)\b"
    r"|\bcopy_\(|frombuffer|class \w{1,40}\((?:torch\.)?nn\.Module\)",
    re.IGNORECASE,
)
"""Signs of a model that was put together rather than loaded."""
_SHOWN = re.compile(r"Error|Exception|fail|corrupt|cannot|could not|lfs", re.IGNORECASE)
_NOT_HAD = re.compile(
    r"\b(?:load\w*|open\w*|read\w*|import\w*|download\w*|fetch\w*)\b[^\n]{0,20}\bfail|\bfail\w* to (?:load|open|read|fetch|download)|\b(?:cannot|could not|can't) (?:be )?(?:load|open|read|import)|\bcorrupt|lfs pointer",
    re.IGNORECASE,
)
"""How a log says beside a file's name that it could not be had."""
MAX_LINES = 400
"""Lines of one output that are read for printed errors, from the end."""


class OutOfReach(NamedTuple):
    """A model that was tried for in vain. `turns` are the attempts, `name` is how the run calls it."""

    name: str
    turns: tuple[int, ...]
    declared: bool
    message: str


def out_of_reach(ctx: CodeContext) -> OutOfReach | None:
    """The model that could not be got to work and that another method replaced; None without one.

    One sure failure is enough where the brief leaves no other model, two where it does, three where the run had named
    the model that serves as a candidate before.
    """
    final = ctx.final_write
    if final is None:
        return None
    ended = [
        _Lack(f.turn, f.message, _errors(ctx, f), *names_of(ctx.turn(f.turn).actions[f.action], f))
        for f in ctx.failures
        if f.turn <= final and _is_access(f, final)
    ]
    hard = sorted((*ended, *_printed(ctx, final)), key=lambda lack: lack.turn)
    if not hard:
        return None
    case = _Case(ctx, final, hard)
    found = [b for name in case.models if (b := case.blocked(name)) is not None]
    wanted = case.goals + case.plan
    return max(found, key=lambda b: (_named(b.name, wanted), len(b.turns)), default=None)


class _Lack(NamedTuple):
    """One failure of access: what came back, how many different errors, and the models and packages it was about."""

    turn: int
    message: str
    errors: int
    models: frozenset[str]
    packages: frozenset[str]

    @property
    def names(self) -> frozenset[str]:
        return self.models | self.packages


class _Case:
    """The failures of access of one run, beside the code that made its deliverables."""

    def __init__(self, ctx: CodeContext, final: int, lacks: list[_Lack]) -> None:
        self.ctx, self.final, self.lacks = ctx, final, lacks
        self.modules = written_modules(ctx.run, final)
        last = lacks[-1].turn
        writes = {t for t in ctx.write_turns if t > last and t not in ctx.failed_turns} | {final}
        self.serving = without_comments("\n".join(self.code(ctx.turn(t)) for t in sorted(writes))[:400_000])
        self.no_model = not _LOADS.search(self.serving)
        self.plan = ctx.run.plan.text or ""
        self.models = [
            *dict.fromkeys(n for lack in lacks for n in sorted(lack.models)),
            *dict.fromkeys(n for lack in lacks for n in sorted(lack.packages) if self._takes_a_model_away(n)),
        ]

    def code(self, turn: Turn) -> str:
        """What a turn runs, with the modules of the run's own that it names."""
        return run_code(turn, self.modules)

    def blocked(self, name: str) -> OutOfReach | None:
        ctx, final = self.ctx, self.final
        mine = [lack for lack in self.lacks if name in lack.names]
        if not any(lack.turn == final for lack in mine) and (self._serves(name) or self._overcome(name, mine)):
            return None
        # What failed together with the model (its tokenizer, its wheel) was tried for its sake; where no model serves
        # at all, every model that was tried for counts.
        group = {name} | {n for lack in mine for n in lack.names if not _uses(n, self.serving)}
        about = [lack for lack in self.lacks if group & lack.names or (self.no_model and lack.models)]
        attempts: dict[int, int] = {}
        for lack in about:
            attempts[lack.turn] = max(attempts.get(lack.turn, 0), lack.errors)
        first = min(attempts)
        tried = [
            t.index for t in ctx.run.turns[first - 1 : final - 1] if t.index not in attempts and self._tries(t, group)
        ]
        prescribed = any(_prescribed(self.goals, n) for n in group)
        declared = any(_GIVES_UP.search(t.text[:20_000]) for t in ctx.run.turns[first:])
        count = sum(attempts.values())
        other = [w for w in WEIGHTS.findall(self.serving) if w not in group]
        # A candidate that gave way to the next one of the plan, where the brief leaves the choice, is no blocker yet.
        needed = 1 if prescribed and not tried else 2 if prescribed or not self._planned(other, first) else 3
        enough = count >= needed or (declared and count + len(tried) >= (2 if _named(name, self.goals) else 3))
        if not enough or not (declared or other or self.no_model):
            return None
        return OutOfReach(name, tuple(sorted({*attempts, *tried})), declared, about[0].message)

    def _planned(self, models: list[str], first: int) -> bool:
        """Whether the run spoke of one of these models before the first failure, in its plan or otherwise."""
        turns = self.ctx.run.turns[: first - 1]
        if self.ctx.feature(first).writes_plan:
            turns = self.ctx.run.turns[:first]
        before = "\n".join(t.text[:20_000] + "\n" + t.code[:60_000] for t in turns)
        return any(_named(model, before) for model in models)

    @property
    def goals(self) -> str:
        return self.ctx.run.brief[-8_000:]

    def _serves(self, name: str) -> bool:
        return _uses(name, self.serving) or _derived(self.ctx, name, self.serving)

    def _overcome(self, name: str, lacks: list[_Lack]) -> bool:
        """Whether the model was run whole, later and without an error: what served instead was then a choice."""
        since = ""
        for feature in self.ctx.features[lacks[0].turn - 1 : self.final - 1]:
            turn = self.ctx.turn(feature.turn)
            since += self.code(turn) + turn.output[-20_000:]
            late = feature.turn > lacks[-1].turn and feature.executed and feature.turn not in self.ctx.failed_turns
            if late and feature.forward_pass and _uses(name, self.code(turn)):
                return not self._makeshift(since[-400_000:], lacks)
        return False

    def _makeshift(self, text: str, lacks: list[_Lack]) -> bool:
        """A model filled in part, built by guess, or fed through a stand-in for the package that is lacking."""
        missing = {p for lack in lacks for p in lack.packages}
        return _IN_PART.search(text) is not None or any(p in self.modules or f"/{p}/" in text for p in missing)

    def _takes_a_model_away(self, package: str) -> bool:
        if package.lower().replace("-", "_") in GENERAL:
            return False
        wanted = _named(package, self.goals) or _named(package, self.plan)
        return wanted and not any(_uses(w, self.serving) for w in WEIGHTS.findall(self.goals))

    def _tries(self, turn: Turn, group: set[str]) -> bool:
        """Whether a turn works at the model without an access error: it names it in code that loads or applies one."""
        feature = self.ctx.feature(turn.index)
        if not feature.executed or not (feature.loads_model or feature.forward_pass or feature.loads_inputs):
            return False
        code = self.code(turn)
        return any(_uses(n, code) for n in group)


def _is_access(failure: Failure, final: int) -> bool:
    if failure.family not in _ACCESS or not failure.environment or failure.kind == "look-up":
        return False
    return failure.confidence >= (_HINT if failure.turn == final else 0.6)


def _printed(ctx: CodeContext, final: int) -> list[_Lack]:
    """Errors that code caught and printed while it opened models: of the model on the same line, else of the only one."""
    found = []
    for turn in ctx.run.turns[: final - 1]:
        for action in turn.actions:
            seen = action.observation
            if action.kind != "execute" or seen is None or seen.kind not in ("ok", "unknown"):
                continue
            code = "\n".join(p.text for p in split(action) if p.kind != "file")[:60_000]
            opened = models_in(code)
            kinds: dict[frozenset[str], dict[str, str]] = {}
            for line in seen.text.splitlines()[-MAX_LINES:] if opened and _LOADS.search(code) else ():
                if not _SHOWN.search(line[:600]):
                    continue
                on_line = frozenset(name for name in opened if _named(name, line[:600]))
                errors = [e for e in find_errors(line[:600]) if e.confidence >= _HINT]
                if on_line and (errors or _NOT_HAD.search(line[:600])):
                    kind = errors[-1].kind if errors else "failed"
                    kinds.setdefault(on_line, {})[kind] = errors[-1].message if errors else line[:200]
                elif len(opened) == 1 and any(e.family in ("model", "network") for e in errors):
                    kinds.setdefault(opened, {})[errors[-1].kind] = errors[-1].message
            for models, came_back in kinds.items():
                message = next(iter(came_back.values()))
                found.append(_Lack(turn.index, message, min(len(came_back), 2), models, frozenset()))
    return found


def _errors(ctx: CodeContext, failure: Failure) -> int:
    """1 or 2: different kinds of errors that one action ended in; several sources tried in one go are several attempts."""
    observation = ctx.turn(failure.turn).actions[failure.action].observation
    kinds = {e.kind for e in find_errors(observation.text[-8_000:]) if e.confidence >= 0.6} if observation else set()
    return 2 if len(kinds) > 1 else 1


def _prescribed(brief: str, name: str) -> bool:
    """Whether a sentence of the brief says to use this model, and leaves no choice."""
    sentences = re.split(r"(?<=[.;!?])\s|\n", brief)
    for sentence in (part[:1_000] for part in sentences if name.lower() in part.lower()):
        rest = re.sub(r"\([^()]{0,200}\)", " ", sentence)
        listed = set(WEIGHTS.findall(rest)) - {name}
        if _named(name, rest) and _USE.search(rest) and not _CHOICE.search(rest) and not listed:
            return True
    return False


def _derived(ctx: CodeContext, name: str, serving: str) -> bool:
    """The model was saved under another name (converted, renamed) and that file serves."""
    known = ctx.run.brief
    for turn in ctx.run.turns:
        code = turn.code[:200_000]
        if _uses(name, code) and _SAVES.search(code) and turn.index not in ctx.failed_turns:
            stems = [*WEIGHTS.findall(code), *_DATA_FILE.findall(code)]
            if any(w != name and not _named(w, known) and _uses(w, serving) for w in stems):
                return True
        known += turn.output[-20_000:] + turn.text[:5_000]
    return False


def _named(name: str, text: str) -> bool:
    return re.search(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", text, re.IGNORECASE) is not None


def _uses(name: str, code: str) -> bool:
    """Whether code opens a model or imports a package of this name; a variable of the same name is another thing."""
    return names_weights(code, name) or re.search(rf"(?:import|from)\s{{1,4}}{re.escape(name)}\b", code) is not None
