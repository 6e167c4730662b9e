"""ambjudge score: from runs to scorecards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import console
from ..config import load
from ..errors import InputError
from ..trajectories.reading.remote import is_address
from .campaign import (
    BatchStep,
    RunFlags,
    campaign,
    judge_runs,
    make_plan,
    open_part,
    read_run_flags,
    select_shard,
    with_default_judge,
)
from .card_files import CardFile, output_path
from .card_in_force import card_in_force
from .forecast import note_forecast, other_tracks_note, show_forecast
from .grouped_help import command as grouped_command
from .grouped_help import option
from .options import (
    ASK_ALL,
    DIAGNOSIS,
    JSON,
    PATHS_OR_ADDRESSES,
    POLICY,
    RUBRIC,
    RUNNING,
    STAGES_FROM,
    STORE,
    campaign_options,
    run_facts_options,
    selection_options,
)
from .path_types import PathOrAddress
from .runs import has_run, list_runs, matching_files
from .selected_items import (
    chooses_items,
    note_given_facts,
    note_nothing_asked,
    selected_items,
    show_second_opinions,
)
from .sessions import (
    note_strangers,
    open_session_store,
    score_options,
    with_rubrics_in_force,
)
from .spending import Spending, within_budget

if TYPE_CHECKING:
    from ..judge.base import Judge, Usage
    from ..judge.card.fields import Gist
    from ..judge.card.read_share import Standing
    from ..judge.card.scorecard import CardLine, ScoreCard
    from ..judge.rejudge.selection import ItemSelection
    from ..judge.rejudge.staleness import RejudgePlan
    from ..judge.run_sources import RunSource
    from ..judge.runner import Progress
    from ..judge.session import ScoreOptions, ScoreOutcome, Scorer, SessionTotals
    from ..judge.store import Store
    from ..judge.store.card_cache import CardCache
    from .render import Row


_NOT_FAILURES = frozenset({"no_evidence", "not_read"})
"""Reasons for which a criterion has no verdict that are no failure of the judge."""


@grouped_command(
    "score",
    "ambjudge score runs/elm-chest-1",
    "ambjudge score runs/ --judge anthropic/claude-sonnet-4-5 --json --out cards.jsonl",
)
@PATHS_OR_ADDRESSES
@campaign_options
@STAGES_FROM
@DIAGNOSIS
@ASK_ALL
@selection_options
@RUBRIC
@run_facts_options
@RUNNING
@POLICY
@STORE
@JSON
@option(
    "--out",
    heading="Output",
    metavar="FILE|URL",
    type=PathOrAddress(),
    help="Also write scorecards (JSON Lines) here.",
)
@click.pass_obj
def command(obj: dict[str, Any], /, paths: tuple[str, ...], **flags: Any) -> int:
    """Score a run, or every run below a folder or an address (s3://bucket/runs).

    S1-S3 are judged by the rubric of the track, S4-S5 checked from output files.
    """
    return run(obj, paths, flags)


def run(obj: dict[str, Any], paths: tuple[str, ...], flags: dict[str, Any]) -> int:
    """Score the runs and return the exit code.

    0, also if runs lack what could be scored; 1 if the judge failed or a run could not be read; 2
    if none could.
    """
    from ..judge.card.fields import RULES
    from ..judge.questions.items import check_can_label_stages
    from ..judge.run_sources import RunSource, run_sources

    settings, quiet = load(obj["config"]), obj["quiet"]
    options = score_options(settings, flags)
    run_flags = read_run_flags(settings, flags)
    run_flags = with_default_judge(run_flags, options.policy, paths, quiet)
    judge = run_flags.judge()
    check_can_label_stages(judge, options.questions)
    needs_store = run_flags.dry_run or run_flags.batch or chooses_items(flags)
    stored = None
    if not needs_store and run_flags.shard is None:
        stored = card_in_force(obj, paths, settings, flags)
    if stored is not None:
        return _show_stored(obj, stored, flags)
    if needs_store:
        _refuse_addresses(paths)
    with ExitStack() as stack:
        store = None
        readable_paths = [path for path in paths if has_run(path)]
        if readable_paths:
            store = open_session_store(
                readable_paths,
                settings,
                flags["store"],
                stack,
                judge=judge,
                quiet=quiet,
                required=needs_store,
                is_dry_run=run_flags.dry_run,
            )
        elif needs_store:
            list_runs(paths)  # names the paths without runs on stderr
            return 2

        if store is not None:
            examples = [next(run_sources([path])).path for path in readable_paths]
            note_strangers(store, readable_paths, examples, quiet, new=True)
            options = with_rubrics_in_force(options, store, quiet, is_dry_run=run_flags.dry_run)
        options, spending = within_budget(store, settings, flags, options)
        if judge.name != RULES and not run_flags.dry_run and spending.text is not None:
            console.note(spending.text, quiet)
        runs: Sequence[str | RunSource] = paths
        if flags["where"]:
            matching = matching_files(obj, list_runs(paths).files, paths, flags)
            runs = [RunSource(file) for file in matching]
        if run_flags.shard is not None:
            shard, options = select_shard(run_flags, run_sources(runs), options)
            runs = list(shard)
        items = None
        if store is not None:
            note_given_facts(store, _conversations(runs), flags, quiet)
        if store is not None and chooses_items(flags):
            files, items = selected_items(store, list(_conversations(runs)), judge, flags, quiet)
            runs = [RunSource(file) for file in files]
            options = replace(options, stored_only=True, some_items=True)
        out = output_path(flags["out"]) if flags["out"] else None
        paths_of_runs = (source.path for source in run_sources(runs))
        part = open_part(run_flags, out, paths_of_runs, judge, options)
        if part is not None:
            out = part.file
            finished_code = part.finished_code(quiet)
            if finished_code is not None:
                return finished_code

        sink = _OutcomeSink(
            stack,
            None if run_flags.dry_run else out,
            as_json=flags["as_json"],
            quiet=quiet,
            verbose=obj["verbose"] > 0,
            asks_codes=_asks_codes(judge, options),
            is_stored=store is not None,
        )
        work = _Scoring(
            runs=runs,
            flags=run_flags,
            judge=judge,
            options=options,
            store=store,
            sink=sink,
            spending=spending,
            items=items,
            as_json=flags["as_json"],
            quiet=quiet,
        )
        code = campaign(
            work, flags=run_flags, judge=judge, options=options, store=store, quiet=quiet
        )
        if store is not None and judge.name == RULES:
            _note_other_judges(store, readable_paths, quiet)
        # A part with criteria that another attempt may score is made again next time.
        is_final = code in (0, 1) and sink.is_kept and not sink.retriable
        if part is not None and is_final:
            part.write_note(sink.scored, code)
        return code


def _conversations(runs: Sequence[str | RunSource]) -> Iterator[Path]:
    """The files of the runs that can be found, searched for as they are taken."""
    from ..judge.run_sources import run_sources

    return (source.path for source in run_sources(runs) if source.error is None)


def _note_other_judges(store: Store, paths: Sequence[str], quiet: bool) -> None:
    """Say that the store has scorecards of a model too, which other commands prefer to those of the
    rules."""
    from ..judge.card.fields import RULES

    models = [name for name in store.judges(paths) if name != RULES]
    if models:
        console.note(
            f"these are the scores by rules; the store has scorecards by {', '.join(models)} too"
            " (--judge NAME)",
            quiet,
        )


def _show_stored(obj: dict[str, Any], card: ScoreCard, flags: dict[str, Any]) -> int:
    """Show a scorecard of the store as if it had been made now; the exit code."""
    from ..judge.base import Usage
    from ..judge.runner import BatchSummary
    from ..judge.session import ScoreOutcome, SessionTotals

    with ExitStack() as stack:
        sink = _OutcomeSink(
            stack,
            output_path(flags["out"]) if flags["out"] else None,
            as_json=flags["as_json"],
            quiet=obj["quiet"],
            verbose=obj["verbose"] > 0,
            asks_codes=True,
            is_stored=True,
        )
        sink.add_outcome(ScoreOutcome(Path(card.run.path), card))
        summary = BatchSummary(done=1, abandoned=0, interrupted=False, elapsed_s=0.0, peak=1)
        return sink.finish(SessionTotals(summary, Usage(), throttles=0))


def _asks_codes(judge: Judge, options: ScoreOptions) -> bool:
    """Whether the judge is asked which error codes apply."""
    from ..judge.base import extra_questions

    return options.questions.diagnosis and "diagnosis" in extra_questions(judge)


def _refuse_addresses(paths: tuple[str, ...]) -> None:
    """InputError for a path that is the address of a remote folder or file."""
    for path in paths:
        if is_address(path):
            raise InputError(
                "--dry-run and --batch work only on runs of this machine",
                "leave them out, or copy the runs",
                path,
            )


@dataclass(frozen=True)
class _Scoring:
    """The work of `score` in a campaign (`campaign.Work`)."""

    runs: Sequence[str | RunSource]
    flags: RunFlags
    judge: Judge
    options: ScoreOptions
    store: Store | None
    sink: _OutcomeSink
    spending: Spending
    items: ItemSelection | None
    """The items that are asked; None: all."""
    as_json: bool
    quiet: bool

    def plan(self) -> RejudgePlan:
        """Plan the verdicts that the store lacks."""
        assert self.store is not None
        files = list(_conversations(self.runs))
        plan = make_plan(
            self.store,
            files,
            self.judge,
            self.options.scope(),
            self.quiet,
            batch=self.flags.batch,
            selection=self.items,
        )
        note_nothing_asked(plan, self.items, self.quiet)
        return plan

    def show_forecast(self, plan: RejudgePlan) -> int:
        """Show what scoring would cost; the exit code, 1 if a run could not be read."""
        from ..judge.rejudge.update import outdated_runs
        from ..judge.run_sources import run_sources

        assert self.store is not None
        unreadable = [source.error for source in run_sources(self.runs) if source.error]
        for error in unreadable:
            console.error(error)
        for path, plan_error in plan.errors:
            console.error(f"{path}: {plan_error}")
        cards = outdated_runs(self.store, plan, self.judge, self.options)
        show_forecast(plan, len(cards), self.as_json, self.spending)
        return 1 if unreadable or plan.errors else 0

    def finish_batch(self, plan: RejudgePlan, step: BatchStep) -> int:
        """Score every run with the verdicts that are now in the store."""
        options = replace(self.options, stored_only=True)
        work = replace(self, options=options, items=None)
        return judge_runs(
            work, flags=self.flags, judge=self.judge, options=options, store=self.store
        )

    async def carry_out(self, scorer: Scorer) -> SessionTotals:
        """Score every run; those with a current scorecard in the store keep it.

        The store notes who scored what, when and at which cost.
        """
        from ..judge.session import unchanged_cards
        from ..judge.store.session_events import noted_session

        if self.store is None:
            return await self._collect(scorer, None)
        unchanged = unchanged_cards(self.store, self.judge, self.options)
        with noted_session(self.store, "score", self.judge.name) as event:
            totals = await self._ask_and_collect(scorer, unchanged)
            event.usage, event.interrupted = totals.usage, totals.summary.interrupted
            event.counts = {"scored": self.sink.scored, "failed": self.sink.failed}
        return totals

    async def _ask_and_collect(self, scorer: Scorer, unchanged: CardCache) -> SessionTotals:
        """Ask the chosen items first, if only some are asked."""
        from ..judge.rejudge.execute import execute_plan
        from ..judge.session import SessionTotals

        if self.items is None or self.store is None:
            return await self._collect(scorer, unchanged)
        plan = self.plan()
        note_forecast(plan, self.quiet, self.spending)
        calls = console.Progress("judged", plan.calls, self.quiet)
        execution = await execute_plan(
            plan,
            self.store,
            self.judge,
            scorer=scorer,
            on_progress=lambda state: calls.update(state.progress.done),
        )
        calls.clear()
        if execution.summary.interrupted:
            return SessionTotals(execution.summary, execution.usage, execution.throttles)
        totals = await self._collect(scorer, unchanged)
        if not self.as_json:
            show_second_opinions(self.store, plan, self.judge)
        return replace(totals, usage=totals.usage + execution.usage)

    async def _collect(self, scorer: Scorer, unchanged: CardCache | None) -> SessionTotals:
        from ..judge.session import collect_cards

        return await collect_cards(
            scorer,
            self.runs,
            self.sink.add_outcome,
            unchanged=unchanged,
            on_progress=self.sink.show_progress,
        )

    def report(self, session: SessionTotals) -> int:
        """Print the tables and the summary."""
        return self.sink.finish(session)


class _OutcomeSink:
    """Prints and writes outcomes: JSON and errors as they arrive, tables and totals at the end."""

    def __init__(
        self,
        stack: ExitStack,
        out: Path | None,
        *,
        as_json: bool,
        quiet: bool,
        verbose: bool,
        asks_codes: bool,
        is_stored: bool,
    ) -> None:
        """Open the file `out`, if any.

        `asks_codes`: the judge is asked which codes apply, so a code that it did not read is a
        failure. `is_stored`: verdicts are kept in a store.
        """
        self.as_json = as_json
        self.quiet = quiet
        self.verbose = verbose
        self.asks_codes = asks_codes
        self.is_stored = is_stored
        self.file = CardFile(out, stack) if out else None
        self.is_kept = False
        """Whether the file is complete and has its name."""
        self.progress = console.Progress("scored", None, quiet)
        stack.callback(self.progress.clear)
        self.first_card: ScoreCard | None = None
        self.rows: list[Row] = []
        self.scored = 0
        self.failed = 0
        self.incomplete = 0
        self.lacking = 0
        """Of the incomplete ones, those whose runs lack what could be scored: no further attempt
        would change that."""
        self.codes_unread = 0
        self.running = 0
        self.quotes = 0
        self.quotes_found = 0
        self.contradictions = 0
        self.strict_evidence = False
        self.standings: Counter[Standing] = Counter()
        self.read_shares: list[float] = []
        """Shares of the runs of which the judge read only a part."""
        self.missing_criteria: Counter[str] = Counter()
        """Criteria without a verdict, by reason."""
        self.other_models: Counter[str] = Counter()
        """Runs by the model that answered in place of the one that was asked."""

    @property
    def retriable(self) -> dict[str, int]:
        """Numbers of criteria that the same command would judge again, by reason, largest first."""
        from ..judge.base import RETRIABLE

        return {
            reason: count
            for reason, count in self.missing_criteria.most_common()
            if reason in RETRIABLE
        }

    def add_outcome(self, outcome: ScoreOutcome) -> None:
        """Count an outcome, and print or write its scorecard or error."""
        if outcome.scored is None:
            self.failed += 1
            self.progress.clear()
            console.error(outcome.error)
            return
        self.scored += 1
        self._count(outcome.scored.gist)
        self._note_other_models(outcome.scored)
        if self.as_json or self.file is not None:
            line = outcome.scored.to_json()
            if self.file is not None:
                self.file.write(line)
            if self.as_json:
                console.raw(line)
        if not self.as_json and outcome.card is not None:
            from .render import row

            if self.scored == 1:
                self.first_card = outcome.card
            self.rows.append(row(outcome.card))

    def _note_other_models(self, scored: ScoreCard | CardLine) -> None:
        """Note models that answered for this card in place of the one that was asked.

        A line comes from the store or a worker, and is not parsed for this.
        """
        from ..judge.card.scorecard import CardLine
        from .render import other_models

        if not isinstance(scored, CardLine):
            self.other_models.update(other_models(scored.judge))

    def _count(self, gist: Gist) -> None:
        """Add one scorecard to the totals."""
        self.incomplete += gist.incomplete
        is_final = set(gist.unscored) <= _NOT_FAILURES
        self.lacking += gist.incomplete and is_final
        self.running += gist.running
        if not gist.running:
            self.standings[gist.standing] += 1
        if not gist.running and gist.read_share is not None and gist.standing != "read":
            self.read_shares.append(gist.read_share)
        self.quotes += gist.quotes
        self.quotes_found += gist.quotes_found
        self.contradictions += gist.contradictions
        self.strict_evidence |= gist.strict
        self.missing_criteria.update(gist.unscored)
        if self.asks_codes:
            self.codes_unread += gist.codes_unread

    def show_progress(self, progress: Progress, usage: Usage) -> None:
        """Update the status line: runs, failures, and what judging cost so far."""
        parts = [f"{self.failed} could not be read"] if self.failed else []
        parts += [f"{count} unscored: {reason}" for reason, count in self.retriable.items()]
        if usage.calls:
            from ..judge.card.view import usage_parts

            parts += usage_parts(usage)
        self.progress.total = progress.total
        self.progress.update(progress.done, " · ".join(parts), reused=progress.reused)

    def finish(self, session: SessionTotals) -> int:
        """Print tables and summary, complete the file, and return the exit code."""
        self.progress.clear()
        if not self.as_json:
            self._print_cards()
        self._print_summary(session)
        if session.summary.interrupted:
            if self.is_stored:
                console.note_interrupted(self.quiet)
            if self.file is not None:
                console.note(self.file.leave(), self.quiet)
            return 130
        if self.file is not None:
            self.file.keep()
            self.is_kept = True
        if not self.scored:
            return 2
        has_trouble = self.failed or self.incomplete > self.lacking or self.codes_unread
        return 1 if has_trouble else 0

    def _print_cards(self) -> None:
        """One scorecard in full, or a table of several with what they rest on."""
        from .render import proof, rows, scorecard, unread

        if self.scored == 1 and not self.failed and self.first_card is not None:
            scorecard(self.first_card, self.verbose)
            return
        if not self.rows:
            return
        has_ranges = rows(self.rows)
        if self.standings.keys() - {"read"}:
            shares = self.read_shares
            mean_share = sum(shares) / len(shares) if shares else None
            console.say(unread(self.standings, mean_share, has_ranges))
        evidence = proof(self.quotes, self.quotes_found, self.contradictions, self.strict_evidence)
        if evidence:
            console.say(evidence)

    def _print_summary(self, session: SessionTotals) -> None:
        """Print on stderr what was scored, what was not, and what it cost."""
        from .render import bill, unscored_notes

        if self.scored + self.failed > 1:
            parts = [f"{self.scored} scored"]
            if self.incomplete:
                parts.append(f"{self.incomplete} of them with unscored stages")
            if self.lacking:
                parts.append(
                    f"{self.lacking} of these for lack of outputs or other files, which is no"
                    " failure"
                )
            if self.codes_unread:
                parts.append(f"{self.codes_unread} with codes that the judge did not read")
            if self.failed:
                parts.append(f"{self.failed} could not be read")
            console.note(", ".join(parts), self.quiet)
        if self.running:
            verb = "goes on" if self.running == 1 else "go on"
            console.note(
                f"{console.counted(self.running, 'run')} still {verb}, so what needs an end is"
                " withheld: score again later, or give --finished if this is wrong",
                self.quiet,
            )
        if self.missing_criteria:
            for line in unscored_notes(self.missing_criteria):
                console.note(line, self.quiet)
        if session.foreign_track_runs:
            console.note(other_tracks_note(session.foreign_track_runs), self.quiet)
        for model, runs in self.other_models.items():
            console.note(
                f"the provider says that {model} answered, another model than the one that was"
                f" asked ({console.counted(runs, 'run')})",
                self.quiet,
            )
        if session.usage.calls:
            console.note(bill(session.usage), self.quiet)
