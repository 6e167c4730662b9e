"""The rules judge: what files, exit codes and counts decide on S1-S3, and nothing that takes
reading.

It is the default judge. A rule answers one way only where facts prove one way only, with turns and
quotes where there are some; whatever is left is `unscored` as `not_read`, for a reader to decide
(`presumed` fills a scorecard meanwhile). Each rule is bound to the criteria that it was written for
by the hash of their text (rules.yaml): an edited criterion has no rule.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from ...package_data import read_shipped
from ...rubrics.load import criterion_sha256
from ...rubrics.model import Criterion
from ...tracks import TRACKS
from ...trajectories.models import Run, Turn
from ...trajectories.record.quotes import PLAN_TURN, Evidence, QuoteIndex
from ...trajectories.turns.failures import Failure, failures
from ...trajectories.turns.features import features
from ...trajectories.turns.turn_features import TurnFeatures
from ..base import Reply, Request
from ..card.fields import RULES as RULES
from ..card.scoring import PLACEHOLDER_DOMINATED, PLACEHOLDER_LIMIT
from ..card.stage_results import CriterionResult
from ..checks.check_outputs import OutputCheck, check_outputs

VERSION = "8"
"""Part of every verdict's key: raise it when a rule changes, so that stored verdicts of the old
rules go stale."""
MAX_ENVIRONMENT_FAILURES = 5
"""S2d: more executions that failed because of the environment are 0."""
SURE = 0.6
"""Confidence from which on a failure counts as one."""
SINGLED_OUT = 2
"""A turn that names at most so many cases may have tried the pipeline on them; a listing names
more."""
QUOTE_CHARS = 160
MAX_EVIDENCE = 4
_BOUND = Path(__file__).with_name("rules.yaml")


@dataclass(frozen=True)
class Finding:
    """What facts prove: a value of the criterion's scale, why, and the words that show it."""

    value: float
    why: str
    evidence: tuple[Evidence, ...] = ()


class RulesJudge:
    """Judges by facts. Pure: the same run and public inputs give the same reply. It never raises
    for a run."""

    name = RULES
    members: tuple[str, ...] = ()
    prompt_sha256: str | None = None

    def __init__(self) -> None:
        self._last: Proof | None = None

    @property
    def parameters(self) -> Mapping[str, str | int | float | bool | None]:
        return {"version": VERSION}

    def evidence_sha256(self, request: Request) -> str:
        """Of what the rules can read: everything that the run was read from, and how many answers
        are placeholders."""
        run = request.run
        parts = [VERSION, run.content_sha256, run.track or "", run.tier or "", request.question]
        track = TRACKS.find(request.rubric.track)
        if request.question == "S3" and track is not None and track.output == "answers":
            parts.append(repr(self._proof(request).check.s4_checks.placeholder_rate))
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()

    async def judge(self, request: Request) -> Reply:
        """Verdicts for the requested criteria, in their order."""
        proof = self._proof(request)
        return Reply(results=tuple(_result(criterion, proof) for criterion in request.criteria))

    def _proof(self, request: Request) -> Proof:
        """The facts of the run, kept from stage to stage: S1-S3 of one run are judged one after the
        other."""
        last = self._last
        if last is None or last.run is not request.run or last.public != request.public:
            last = self._last = Proof(request.run, request.public, request.check)
        return last


def rule_for(criterion: Criterion) -> Rule | None:
    """The rule that was written for exactly this criterion."""
    return _bound().get(criterion_sha256(criterion))


def _result(criterion: Criterion, proof: Proof) -> CriterionResult:
    rule = rule_for(criterion)
    finding = None if rule is None else rule(proof)
    if finding is not None:
        return CriterionResult(
            id=criterion.id,
            value=finding.value,
            status="scored",
            rationale=finding.why,
            evidence=finding.evidence[:MAX_EVIDENCE],
        )
    why = "no rule was written for this criterion" if rule is None else "no fact decides it"
    return CriterionResult.unscored(criterion.id, "not_read", f"{why}: it takes a reader")


@cache
def _bound() -> Mapping[str, Rule]:
    named: dict[str, list[str]] = read_shipped(_BOUND)
    return {sha256: TABLE[name] for name, hashes in named.items() for sha256 in hashes}


@dataclass
class Proof:
    """The facts of one run that rules rest on, each found once."""

    run: Run
    public: Path | None = None
    opened: OutputCheck | None = None

    @cached_property
    def _index(self) -> QuoteIndex:
        return QuoteIndex(self.run)

    @cached_property
    def check(self) -> OutputCheck:
        """The delivered files, opened."""
        return self.opened or check_outputs(self.run, public=self.public)

    @cached_property
    def tried(self) -> tuple[TurnFeatures, ...]:
        """Turns that executed something, in order."""
        return tuple(f for f in features(self.run) if f.executed)

    @cached_property
    def ran(self) -> tuple[TurnFeatures, ...]:
        """Those of them of which nothing failed, was blocked or stayed unanswered."""
        turns = self.run.turns
        return tuple(f for f in self.tried if not f.failed and _answered(turns[f.turn - 1]))

    @cached_property
    def full(self) -> tuple[TurnFeatures, ...]:
        """Turns that ran the pipeline over all cases."""
        return tuple(f for f in self.ran if f.cases_scope == "all" and _applies(f))

    @cached_property
    def before(self) -> tuple[TurnFeatures, ...]:
        """Turns that ran before the final full run; none where there is no full run."""
        return tuple(f for f in self.ran if self.full and f.turn < self.full[-1].turn)

    @cached_property
    def pilots(self) -> tuple[TurnFeatures, ...]:
        """Turns that ran the pipeline on one or a few cases before any full run."""
        return tuple(
            f
            for f in self.before
            if f.turn < self.full[0].turn and f.cases_scope in ("one", "few") and _applies(f)
        )

    @cached_property
    def environment_failures(self) -> tuple[Failure, ...]:
        return tuple(f for f in failures(self.run) if f.environment and f.confidence >= SURE)

    def met(self, why: str, *turns: TurnFeatures | None) -> Finding:
        """Value 1, with a line of each of these turns."""
        return Finding(1.0, why, self.lines(*(f.turn for f in turns if f is not None)))

    def lines(self, *turns: int) -> tuple[Evidence, ...]:
        """For each turn the last line that came back, else the first that was executed; turn 0 is
        the plan."""
        found = (self._line(turn) for turn in dict.fromkeys(turns))
        return tuple(line for line in found if line is not None)

    def _line(self, number: int) -> Evidence | None:
        if number == PLAN_TURN:
            lines = (self.run.plan.text or "").splitlines()
        else:
            turn = self.run.turns[number - 1]
            lines = [*reversed(turn.output.splitlines()), *turn.code.splitlines()]
        for line in lines:
            quote = line.strip()[:QUOTE_CHARS].strip()
            if any(char.isalnum() for char in quote):
                evidence = self._index.check(number, quote)
                return evidence if evidence.check == "verified" else None
        return None

    def said(self, failure: Failure) -> Evidence | None:
        """The words of a failure, where they stand in its turn."""
        evidence = self._index.check(failure.turn, failure.message[:QUOTE_CHARS])
        return evidence if evidence.check == "verified" else None


Rule = Callable[[Proof], Finding | None]


def _answered(turn: Turn) -> bool:
    return not turn.failed and all(action.observation is not None for action in turn.actions)


def _applies(f: TurnFeatures) -> bool:
    """The pipeline ran on a case: a model was applied, or files of the deliverable were written."""
    return f.forward_pass or f.writes_outputs


def _nothing_ran(proof: Proof) -> Finding | None:
    """What takes an execution that worked is 0 where there is none."""
    if proof.ran:
        return None
    return Finding(
        0.0, "No execution of the run succeeded.", proof.lines(*(f.turn for f in proof.tried[:2]))
    )


def plan_exists(proof: Proof) -> Finding:
    """plan.md came with the run, or an execution that did not fail wrote it."""
    plan = proof.run.plan
    if not plan.exists:
        return Finding(
            0.0, "No plan.md came with the run and no execution that succeeded wrote one."
        )
    where = (
        "came with the run"
        if plan.source == "file"
        else "was written by an execution that succeeded"
    )
    return Finding(1.0, f"plan.md {where}.", proof.lines(PLAN_TURN))


def plan_image_exists(proof: Proof) -> Finding:
    """plan.png came with the run, or an execution that did not fail saved it."""
    plan = proof.run.plan
    if not plan.image_exists:
        return Finding(
            0.0, "No plan.png came with the run and no execution that succeeded saved one."
        )
    where = (
        "came with the run"
        if plan.image_path is not None
        else "was saved by an execution that succeeded"
    )
    return Finding(
        1.0, f"plan.png {where}.", proof.lines(*([plan.image_turn] if plan.image_turn else []))
    )


def weights_obtained(proof: Proof) -> Finding | None:
    """An execution downloads or loads weights, and a model runs. A method without weights takes a
    reader."""
    loads = next((f for f in proof.ran if f.has("obtains_weights", "loads_model")), None)
    runs = next((f for f in proof.ran if f.forward_pass), None)
    if loads is None or runs is None:
        return _nothing_ran(proof)
    return proof.met(
        f"Weights were obtained or loaded in turn {loads.turn}, and a model ran.", loads, runs
    )


def environment_works(proof: Proof) -> Finding | None:
    """The pipeline ran: what it needs was there."""
    works = next((f for f in proof.ran if _applies(f) or f.loads_model), None)
    if works is None:
        return _nothing_ran(proof)
    return proof.met(f"The pipeline's own code ran in turn {works.turn} without failing.", works)


def few_environment_failures(proof: Proof) -> Finding:
    """At most five executions failed because of packages, downloads, devices, memory, disk or
    network."""
    failed = proof.environment_failures
    shown = tuple(said for f in failed[:MAX_EVIDENCE] if (said := proof.said(f)) is not None)
    if len(failed) > MAX_ENVIRONMENT_FAILURES:
        return Finding(
            0.0,
            f"{len(failed)} executions failed because of the environment, more than five.",
            shown,
        )
    if not proof.tried:
        return Finding(0.0, "Nothing was executed, so no environment was set up.")
    works = proof.lines(*(f.turn for f in proof.ran[:1]))
    return Finding(
        1.0,
        f"{len(failed) or 'No'} executions failed because of the environment.",
        (*works, *shown[:3]),
    )


def model_works(proof: Proof) -> Finding | None:
    """A model was applied in an execution that worked. A classical method takes a reader."""
    works = [f for f in proof.ran if f.forward_pass]
    if not works:
        return _nothing_ran(proof)
    real = next((f for f in works if not f.dummy_forward), None)
    return proof.met(
        f"A model was applied in turn {works[0].turn} without failing.", works[0], real
    )


def answers_by_model(proof: Proof) -> Finding | None:
    """As `model_works`; 0 where no execution that worked calls a model, as the check of the outputs
    tells."""
    return _no_model(proof) or model_works(proof)


def assets_of_model(proof: Proof) -> Finding | None:
    """As `weights_obtained`; 0 where no execution that worked calls a model."""
    return _no_model(proof) or weights_obtained(proof)


def _no_model(proof: Proof) -> Finding | None:
    if proof.check.s4_checks.model_call_found is not False:
        return None
    return Finding(0.0, "No execution that succeeded loads a model and calls it.")


def no_pilot(proof: Proof) -> Finding | None:
    """0 where nothing that could be a pilot came before the full run; how far a pilot validated
    takes a reader."""
    if not proof.full:
        return _nothing_ran(proof)
    trials = (
        f
        for f in proof.before
        if _applies(f) or f.has("dummy_forward", "loads_model") or 0 < len(f.cases) <= SINGLED_OUT
    )
    if next(trials, None) is not None:
        return None
    first = proof.full[0].turn
    why = (
        f"No execution before the run over all cases (turn {first}) applied the pipeline or looked"
        " at a single case."
    )
    return Finding(0.0, why, proof.lines(first))


def answers_piloted(proof: Proof) -> Finding | None:
    """S3 of vqa where placeholders decide: 0 for a fake run, the cap of 0.2 where some slipped
    through."""
    checks = proof.check.s4_checks
    rate = checks.placeholder_rate
    if rate is not None and rate > PLACEHOLDER_DOMINATED:
        return Finding(0.0, f"{rate:.0%} of the delivered answers are placeholders.")
    if fake := _no_model(proof):
        return fake
    if rate is not None and rate > PLACEHOLDER_LIMIT and proof.pilots:
        why = (
            f"{rate:.0%} of the delivered answers are placeholders, more than"
            f" {PLACEHOLDER_LIMIT:.0%}."
        )
        return Finding(0.2, why, proof.lines(proof.pilots[0].turn))
    return _nothing_ran(proof)


def pilot_first(proof: Proof) -> Finding | None:
    """S3a of reports: a run on one or a few cases, to its end, before the run over all of them."""
    if not proof.pilots:
        return no_pilot(proof)
    return proof.met(
        f"The pipeline ran on few cases in turn {proof.pilots[0].turn}, before the full run.",
        proof.pilots[0],
    )


def pilot_writes(proof: Proof) -> Finding | None:
    """S3c of reports: the pilot wrote deliverables."""
    wrote = next((f for f in proof.pilots if f.writes_outputs), None)
    if wrote is None:
        return _nothing_ran(proof)
    return proof.met(f"The pilot of turn {wrote.turn} wrote its output.", wrote)


def reports_delivered(proof: Proof) -> Finding | None:
    """S2a and S2e of reports: a report.txt stands in a case's folder, and an execution that worked
    wrote outputs."""
    file = next(
        (f for f in proof.run.outputs.files if f.case is not None and f.name == "report.txt"), None
    )
    wrote = next((f for f in proof.ran if f.writes_outputs), None)
    if file is None or wrote is None:
        return _nothing_ran(proof)
    return proof.met(f"{file.case}/{file.name} was delivered.", wrote)


TABLE: Mapping[str, Rule] = {
    rule.__name__.lstrip("_"): rule
    for rule in (
        plan_exists,
        plan_image_exists,
        weights_obtained,
        environment_works,
        few_environment_failures,
        model_works,
        answers_by_model,
        assets_of_model,
        no_pilot,
        answers_piloted,
        pilot_first,
        pilot_writes,
        reports_delivered,
        _nothing_ran,
    )
}
"""Rules by the name under which rules.yaml binds them."""
