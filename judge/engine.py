"""One run to one scorecard: stages, checks of the outputs, facts, the judge's answers, scores.

`make_scorecard` does it all; `judge_run` is its asynchronous form. Both `prepare` the run, ask the
judge (`ask_all`) and `assemble` the card. Nothing here decides a grade: the judge, the checks, the
detectors and `scoring` do.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from ..error_codes.trace_facts import bare_facts
from ..rubrics.load import load_rubric, rubric_for
from ..rubrics.model import Rubric
from ..trajectories.models import Run, Segmentation, Stage
from ..trajectories.record.facts import Fact
from ..trajectories.summary import run_info, stage_uses
from ..trajectories.turns.segment import segment
from ..version import __version__
from .base import Judge, QuestionName, Reply, Request, extra_questions
from .basis import ScoreBasis, by_rubric, nameable_facts
from .card.fields import REPORTED, Grades, Policy, RunInfo
from .card.provenance import packages
from .card.scorecard import ScoreCard
from .checks.check_outputs import OutputCheck, check_outputs
from .checks.grades import grades
from .checks.public_inputs import demanded_format
from .facts.contradictions import refutations
from .facts.decided import (
    ProvenValues,
    proven_criteria,
    proven_rulings,
    proven_values,
    ruling_facts,
    without_decided,
)
from .facts.diagnosis import Detected, Diagnosis, detect, diagnose
from .facts.run_facts import run_facts
from .judges.panel import ask_first_alone
from .judges.reported import ReportedScores, reported_scores
from .judges.rules import RuleFacts, RulesJudge, Ruling
from .questions.items import QuestionSet, StagesFrom, is_unsure, unsure_below
from .runner import run_sync
from .scoring.base import Scoring
from .scoring.harness import choose_scoring
from .scoring.run_scores import (
    STAGES_WITH_TOOLS,
)


@dataclass(frozen=True)
class PreparedRun:
    """A run ready to be judged. What needs no judge is computed when it is first needed."""

    run: Run
    rubric: Rubric
    scoring: Scoring
    questions: QuestionSet
    public: Path | None = None

    @cached_property
    def segmentation(self) -> Segmentation:
        """The stages of all turns, by rules."""
        return segment(self.run)

    @cached_property
    def check(self) -> OutputCheck:
        """The check of the delivered files by the paper's rules.

        A judge is shown this one, whichever rules the scores are computed by.
        """
        policy = self.scoring.policy.model_copy(update={"like": "paper"})
        return check_outputs(self.run, public=self.public, policy=policy)

    @cached_property
    def scored_check(self) -> OutputCheck:
        """The check of the delivered files by the rules that the scores are computed by."""
        policy = self.scoring.policy
        if policy.like == "paper":
            return self.check
        return check_outputs(self.run, public=self.public, policy=policy)

    @cached_property
    def detected(self) -> Detected:
        """What the detectors found."""
        return detect(self.run, self.segmentation, self.check.s4_checks, self.public)

    @cached_property
    def facts(self) -> tuple[Fact, ...]:
        """What checks and detectors proved, as a judge is shown it."""
        return run_facts(
            self.run, self.segmentation, self.check, self.detected.paper, self.detected.context
        )

    @cached_property
    def rulings(self) -> Mapping[str, Ruling]:
        """What facts prove that may decide criteria, by the name of the rule."""
        return proven_rulings(RuleFacts(self.run, self.public, self.check))

    @property
    def proven_values(self) -> ProvenValues:
        """The values of `rulings`, which do not depend on the rubric."""
        return proven_values(self.rulings)

    @cached_property
    def ruling_facts(self) -> Mapping[str, Fact]:
        """The fact that each of `rulings` states."""
        return ruling_facts(self.rulings, self.facts)

    def proven(self) -> Mapping[str, Ruling]:
        """What facts prove of criteria that the tier does not decide, by id, whoever is asked."""
        return proven_criteria(self.rubric, self.run.tier, self.rulings)

    @cached_property
    def memo(self) -> dict[Hashable, Any]:
        """What judges compute about the run (`Request.memoised`)."""
        return {}

    def requests(self, judge: Judge) -> tuple[Request, ...]:
        """Every question that this judge is asked about the run, in the order of asking."""
        extra = extra_questions(judge)
        items = self.questions.items(extra, self.rubric, self.run.tier, self.run.track)
        if not self.run.has_tools:
            items = {name: asked for name, asked in items.items() if name not in STAGES_WITH_TOOLS}
        if self.questions.leaves_to_facts(judge.name):
            items = without_decided(items, self.proven_values)
        if self.questions.stages == "mixed" and not is_unsure(self.segmentation, self.run.track):
            items.pop("stages", None)
        # A judge that answers criteria alone chooses itself what it looks at in the run.
        facts = self.facts if extra else ()
        return tuple(
            Request(
                run=self.run,
                segmentation=self.segmentation,
                rubric=self.rubric,
                question=question,
                criteria=criteria,
                facts=facts,
                public=self.public,
                check=self.check,
                # The first question puts the record into the provider's cache.
                warm=position > 0,
                memo=self.memo,
            )
            for position, (question, criteria) in enumerate(items.items())
        )


def make_scorecard(
    run: Run,
    judge: Judge | None = None,
    *,
    rubric: Rubric | str | Path | None = None,
    policy: Policy | None = None,
    public: str | Path | None = None,
    questions: QuestionSet | None = None,
) -> ScoreCard:
    """The scorecard of one run, by the rules judge unless given another.

    `rubric`: a Rubric, a built-in id or a file (default: the track's). `public`: a folder with the
    public inputs. `questions`: what a model judge is asked (default: criteria and codes; rules
    label the stages). Also works inside a running event loop, as in notebooks. JudgeError if the
    judge cannot be used at all.
    """
    return run_sync(
        judge_run(
            run,
            judge or RulesJudge(),
            rubric=rubric,
            policy=policy,
            public=public,
            questions=questions,
        )
    )


async def judge_run(
    run: Run,
    judge: Judge,
    *,
    rubric: Rubric | str | Path | None = None,
    policy: Policy | None = None,
    public: str | Path | None = None,
    questions: QuestionSet | None = None,
) -> ScoreCard:
    """`make_scorecard`, asynchronously."""
    prepared = prepare(run, rubric=rubric, policy=policy, public=public, questions=questions)
    replies = await ask_all(judge, prepared.requests(judge))
    return assemble(prepared, judge, replies)


def prepare(
    run: Run,
    *,
    rubric: Rubric | str | Path | None = None,
    policy: Policy | None = None,
    public: str | Path | None = None,
    questions: QuestionSet | None = None,
) -> PreparedRun:
    """A run ready to be judged; arguments as of `make_scorecard`."""
    if rubric is None:
        rubric = rubric_for(run.track, run.task)
    elif not isinstance(rubric, Rubric):
        rubric = load_rubric(rubric)
    public_folder = Path(public) if public else None
    if public_folder is not None:
        # A demand that comes with the public inputs replaces the one published for the task.
        demanded = demanded_format(public_folder, run.task)
        if demanded is not None:
            run = run.model_copy(update={"output_format": demanded})
    return PreparedRun(
        run=run,
        rubric=rubric,
        scoring=choose_scoring(policy or Policy(), run.track, rubric),
        questions=questions or QuestionSet(),
        public=public_folder,
    )


async def ask_all(judge: Judge, requests: Sequence[Request]) -> dict[QuestionName, Reply]:
    """The judge's answers to all questions about one run."""
    replies = await ask_first_alone(judge, requests)
    return {request.question: reply for request, reply in zip(requests, replies, strict=True)}


def assemble(
    prepared: PreparedRun,
    judge: Judge,
    replies: Mapping[QuestionName, Reply],
    precision: Mapping[str, float] | None = None,
) -> ScoreCard:
    """The scorecard of a prepared run from a judge's replies, by question.

    Stages without a reply are unscored. `precision`: by code, the share of this judge's readings
    that labels confirm.
    """
    card, _ = assemble_with_basis(prepared, judge, replies, precision)
    return card


def assemble_with_basis(
    prepared: PreparedRun,
    judge: Judge,
    replies: Mapping[QuestionName, Reply],
    precision: Mapping[str, float] | None = None,
) -> tuple[ScoreCard, ScoreBasis]:
    """`assemble`, with what renews the scorecard under an edited rubric (`renew`)."""
    run = prepared.run
    segmentation, stages_from = choose_stages(prepared, replies.get("stages"))
    diagnosis = diagnose(
        run, segmentation, prepared.detected, replies.get("diagnosis"), judge.name, precision
    )
    basis = _score_basis(prepared, diagnosis, judge)
    card = ScoreCard(
        ambjudge=__version__,
        plugins=packages(run, judge),
        run=RunInfo(**run_info(run)),
        stage_use=stage_uses(run, segmentation),
        resources=run.resources,
        status=run.status,
        grades=Grades() if run.status.ended == "running" else grades(run, prepared.check),
        outcomes=run.outcomes,
        imported=run.imported,
        codes=diagnosis.codes,
        codes_read=dict(diagnosis.codes_read),
        unproven=diagnosis.unproven,
        plan=diagnosis.plan,
        primary_failure=diagnosis.primary_failure,
        episodes=diagnosis.episodes,
        answer_codes=dict(diagnosis.answer_codes),
        stages_from=stages_from,
        segments=segmentation.segments,
        turn_stages=segmentation.turn_stages,
        **by_rubric(
            basis,
            prepared.rubric,
            prepared.scoring,
            prepared.questions,
            segmentation,
            judge,
            replies,
        ),
    )
    return card, basis


def renew(
    card: ScoreCard,
    basis: ScoreBasis,
    rubric: Rubric,
    questions: QuestionSet,
    judge: Judge,
    replies: Mapping[QuestionName, Reply],
) -> ScoreCard:
    """The scorecard under another rubric, where nothing else changed.

    `card` is by this judge under this policy, and `basis` was made with it.
    """
    scoring = choose_scoring(card.policy, basis.track, rubric)
    segmentation = Segmentation.from_stages(card.turn_stages)
    of_rubric = by_rubric(basis, rubric, scoring, questions, segmentation, judge, replies)
    same = {name: getattr(card, name) for name in ScoreCard.model_fields if name not in of_rubric}
    return ScoreCard(**same, **of_rubric)


def _score_basis(prepared: PreparedRun, diagnosis: Diagnosis, judge: Judge) -> ScoreBasis:
    run, facts = prepared.run, prepared.facts
    shown = {id for code in (*diagnosis.codes, *diagnosis.unproven) for id in code.facts}
    shown |= {fact.id for fact in bare_facts(prepared.detected.context, facts)}
    return ScoreBasis(
        track=run.track,
        tier=run.tier,
        has_tools=run.has_tools,
        status=run.status,
        warnings=run.warnings,
        outputs=prepared.scored_check,
        failures=diagnosis.failures,
        rulings=prepared.rulings,
        ruling_facts=prepared.ruling_facts,
        facts=nameable_facts(facts, frozenset(shown), prepared.ruling_facts),
        shown_facts=frozenset(shown),
        refutations=refutations(run),
        contradictions=diagnosis.contradictions,
        reported=reported_scores(run) if judge.name == REPORTED else ReportedScores(),
    )


def choose_stages(prepared: PreparedRun, reply: Reply | None) -> tuple[Segmentation, StagesFrom]:
    """The stages of all turns and who labelled them: the judge, if it replied, else rules.

    With `mixed`, the judge's labels count only for turns that the rules are unsure of.
    """
    by_rules = prepared.segmentation
    answer = reply.results[0].answer if reply is not None and reply.results else None
    if not isinstance(answer, list) or len(answer) != len(by_rules.turn_stages):
        return by_rules, "rules"
    judge_stages = cast("tuple[Stage, ...]", tuple(answer))
    if prepared.questions.stages == "judge":
        return Segmentation.from_stages(judge_stages), "judge"
    threshold = unsure_below(prepared.run.track)
    mixed = tuple(
        judge_stage if confidence < threshold else rule_stage
        for rule_stage, judge_stage, confidence in zip(
            by_rules.turn_stages, judge_stages, by_rules.confidence, strict=True
        )
    )
    return Segmentation.from_stages(mixed), "mixed"
