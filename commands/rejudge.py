"""ambjudge rejudge: bring stored verdicts up to date."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from .. import console
from ..config import Settings, load
from ..errors import InputError
from .campaign import BatchStep, RunFlags, campaign, make_plan, read_run_flags, select_shard
from .changes import compare
from .forecast import forecast_json, note_forecast, show_forecast
from .grouped_help import command as grouped_command
from .grouped_help import option
from .options import (
    ASK_ALL,
    DIAGNOSIS,
    PATHS,
    POLICY,
    RUBRIC,
    STAGES_FROM,
    STORE,
    campaign_options,
    json_option,
    run_facts_options,
    selection_options,
)
from .runs import list_runs, matching_files
from .score_changes import show_changes, show_renewed
from .selected_items import (
    note_given_facts,
    note_nothing_asked,
    selected_items,
    show_chosen,
    show_second_opinions,
)
from .sessions import (
    existing_paths,
    judge_options,
    note_strangers,
    required_store,
    score_options,
    with_rubrics_in_force,
)
from .spending import Spending, within_budget

if TYPE_CHECKING:
    from pathlib import Path

    from ..analysis.report.changes_result import Changes
    from ..judge.base import Judge, Usage
    from ..judge.rejudge.selection import ItemSelection
    from ..judge.rejudge.staleness import RejudgePlan
    from ..judge.rejudge.update import UpdateResult
    from ..judge.runner import Progress
    from ..judge.session import ScoreOptions, Scorer
    from ..judge.store import Store

_STORED_OPTIONS = {
    "api_base": "api_base",
    "temperature": "temperature",
    "samples": "samples",
    "pictures": "outputs",
}
"""Options of a judge, each with its name among the parameters of stored verdicts."""


@grouped_command(
    "rejudge",
    "ambjudge rejudge runs/ --rubric my-vqa.yaml --dry-run",
    "ambjudge rejudge runs/ --judge openai/gpt-5.4 --disagree judge-a,judge-b --max-cost 5",
)
@PATHS
@campaign_options
@STAGES_FROM
@DIAGNOSIS
@ASK_ALL
@selection_options
@RUBRIC
@run_facts_options
@POLICY
@STORE
@option(
    "--incomplete",
    "replace_whole_cards",
    is_flag=True,
    help="Renew scorecards that lack verdicts too.",
)
@option("--verify-files", is_flag=True, help="Read every run, whatever its files' times.")
@option("--ask-open", is_flag=True, help="Ask what waits in an open batch too.")
@option("--abandon", metavar="BATCH", help="Close a provider's batch without its answers.")
@json_option()
@click.pass_obj
def command(
    obj: dict[str, Any], /, paths: tuple[str, ...], abandon: str | None, **flags: Any
) -> int:
    """Judge again what an edit made stale, then renew the scorecards. Without --judge, the judge of
    the stored verdicts is asked.
    """
    if abandon is not None:
        return _abandon(obj, paths, abandon, flags["store"])
    return run(obj, paths, flags)


def _abandon(obj: dict[str, Any], paths: tuple[str, ...], batch: str, store: str | None) -> int:
    from ..judge import provider_batch

    settings, quiet = load(obj["config"]), obj["quiet"]
    with ExitStack() as stack:
        opened = required_store(existing_paths(paths), settings, store, stack, quiet)
        provider_batch.abandon(opened, batch)
    console.note(
        f"batch {batch} is closed; the next rejudge --batch asks for its verdicts again", quiet
    )
    return 0


def run(obj: dict[str, Any], paths: tuple[str, ...], flags: dict[str, Any]) -> int:
    """The exit code: 0; 1 if something is unscored or could not be read; 130 if interrupted."""
    from ..judge.questions.items import check_can_label_stages
    from ..judge.rejudge.update import outdated_runs, without_calls

    settings, quiet, as_json = load(obj["config"]), obj["quiet"], flags["as_json"]
    options, run_flags = score_options(settings, flags), read_run_flags(settings, flags)
    options = replace(options, replace_whole_cards=flags["replace_whole_cards"])
    with ExitStack() as stack:
        run_list = list_runs(paths)
        if not run_list.files:
            return 2
        matching = matching_files(obj, run_list.files, paths, flags)
        selected, options = select_shard(run_flags, matching, options)
        files = list(selected)
        store = required_store(
            existing_paths(paths),
            settings,
            flags["store"],
            stack,
            quiet,
            is_dry_run=run_flags.dry_run,
        )
        note_strangers(store, paths, run_list.files, quiet)
        options = with_rubrics_in_force(options, store, quiet, is_dry_run=run_flags.dry_run)
        run_flags = _with_stored_judge(run_flags, store, paths, settings, flags)
        judge = run_flags.judge()
        options, spending = within_budget(store, settings, flags, options)
        check_can_label_stages(judge, options.questions)
        files, items = selected_items(store, files, judge, flags, quiet)
        options = replace(options, some_items=items is not None)
        plan = make_plan(
            store,
            files,
            judge,
            options.scope(),
            quiet,
            verify_files=flags["verify_files"],
            batch=run_flags.batch,
            ask_open=run_flags.ask_open,
            selection=items,
        )
        note_given_facts(store, files, flags, quiet)
        note_nothing_asked(plan, items, quiet)
        for path, error in plan.errors:
            console.error(f"{path}: {error}")
        cards = outdated_runs(store, plan, judge, options)
        if not (run_flags.dry_run or as_json):
            note_forecast(plan, quiet, spending)
        last_card = store.last_card()
        work = _Rejudging(
            plan, cards, judge, options, store, last_card, spending, items, as_json, quiet
        )
        code = campaign(
            work,
            flags=run_flags,
            judge=judge,
            options=without_calls(options),
            store=store,
            quiet=quiet,
        )
    is_partial = bool(plan.errors) or not run_list.is_complete
    return 1 if code == 0 and is_partial else code


def _with_stored_judge(
    run_flags: RunFlags,
    store: Store,
    paths: Sequence[str],
    settings: Settings,
    flags: dict[str, Any],
) -> RunFlags:
    """If no judge is named, name the judge of these runs' scorecards, with its stored parameters.

    A judge that reads takes precedence over the rules. InputError if several do.
    """
    from ..judge.card.fields import RULES

    if run_flags.judges:
        return run_flags
    readers = [name for name in store.judges(paths) if name != RULES]
    if len(readers) > 1:
        raise InputError(
            f"the store has verdicts of several judges: {', '.join(readers)}",
            "name one with --judge",
        )
    if not readers:
        return run_flags
    parameters = store.judge_parameters(readers[0])
    members = tuple(parameters.get("members") or ())
    stored = {
        name: parameters.get(key)
        for name, key in _STORED_OPTIONS.items()
        if settings.get(name, flags.get(name)) is None
    }
    return replace(
        run_flags,
        judges=members or tuple(readers),
        judge_options=judge_options(settings, {**flags, **stored}),
    )


@dataclass(frozen=True)
class _Rejudging:
    """The work of `rejudge` in a campaign."""

    forecast: RejudgePlan
    outdated_cards: tuple[Path, ...]
    judge: Judge
    options: ScoreOptions
    store: Store
    last_card: int
    """The number of the newest scorecard before."""
    spending: Spending
    items: ItemSelection | None
    as_json: bool
    quiet: bool

    def plan(self) -> RejudgePlan:
        """The plan, which was made before the campaign."""
        return self.forecast

    def show_forecast(self, plan: RejudgePlan) -> int:
        """The exit code."""
        show_forecast(plan, len(self.outdated_cards), self.as_json, self.spending)
        return 0

    def finish_batch(self, plan: RejudgePlan, step: BatchStep) -> int:
        """Renew the scorecards with the verdicts that are now in the store."""
        import asyncio

        from ..judge.rejudge.update import outdated_runs, rescore, without_calls
        from ..judge.session import make_scorer

        # Verdicts that an earlier batch answered may have made more scorecards outdated.
        cards = outdated_runs(self.store, plan, self.judge, self.options)
        stale = (*(need.path for need in plan.needs), *cards)
        scorer = make_scorer(self.judge, without_calls(self.options), self.store)
        updated, errors = asyncio.run(rescore(self.store, stale, self.judge, self.options, scorer))
        show_renewed(updated)
        show_changes(self._changes())
        show_chosen(self.items, (run.after for run in updated if run.after), self.judge)
        show_second_opinions(self.store, plan, self.judge)
        return 1 if errors or step.unscored or step.over_budget else 0

    async def carry_out(self, scorer: Scorer) -> UpdateResult:
        """Ask for the missing verdicts, then renew the scorecards."""
        from ..judge.rejudge.update import update_collection

        calls = console.Progress("judged", self.forecast.calls, self.quiet)
        cards = console.Progress("scored", None, self.quiet)

        def show_cards(progress: Progress, _: Usage) -> None:
            cards.total = progress.total
            cards.update(progress.done)

        result = await update_collection(
            self.forecast,
            self.store,
            self.judge,
            self.options,
            scorer=scorer,
            on_calls=lambda state: calls.update(state.progress.done, _format_use(state.usage)),
            on_cards=show_cards,
        )
        calls.clear()
        cards.clear()
        return result

    def report(self, result: UpdateResult) -> int:
        """Print what was judged and what changed; the exit code."""
        for outcome in result.errors:
            console.error(outcome.error)
        if self.as_json:
            data = _to_json(self.forecast, result, self._changes())
            console.raw(json.dumps(data, ensure_ascii=False))
        else:
            _show_update(result)
            show_changes(self._changes())
            show_chosen(self.items, (run.after for run in result.runs if run.after), self.judge)
            show_second_opinions(self.store, self.forecast, self.judge)
        if result.execution.summary.interrupted:
            console.note_interrupted(self.quiet)
            return 130
        return 1 if result.errors or result.execution.unscored.total() else 0

    def _changes(self) -> Changes:
        """What the scorecards of this judge say now that was not in force before."""
        from ..judge.card.choice import CardChoice
        from ..judge.rejudge.card_changes import Earlier

        # A judge that was asked some items alone may have no scorecard yet.
        has_cards = self.judge.name in {stored.head.judge for stored in self.store.heads()}
        choice = CardChoice(self.judge.name if has_cards else None)
        earlier = Earlier(until=self.last_card)
        return compare(self.store, [None], choice, earlier, self.quiet)


def _format_use(usage: Usage) -> str:
    from ..judge.card.view import usage_parts

    return " · ".join(usage_parts(usage))


def _show_update(result: UpdateResult) -> None:
    from ..judge.card.view import usage_parts

    execution = result.execution
    calls, *details = usage_parts(execution.usage)
    line = f"{console.counted(execution.scored, 'verdict')} made in {calls} ({', '.join(details)})"
    if execution.unscored:
        reasons = ", ".join(f"{reason} {n}" for reason, n in execution.unscored.most_common())
        line += f", {execution.unscored.total()} unscored: {reasons}"
    console.say(line)
    show_renewed(result.runs)


def _to_json(plan: RejudgePlan, result: UpdateResult, changes: Changes) -> dict[str, Any]:
    execution = result.execution
    return {
        "schema": "ambjudge.rejudge/2",
        "plan": forecast_json(plan),
        "calls": execution.usage.calls,
        "cost_usd": execution.usage.cost_usd,
        "scored": execution.scored,
        "unscored": dict(execution.unscored),
        "interrupted": execution.summary.interrupted,
        "scorecards": sum(not run.kept for run in result.runs),
        "kept": sum(run.kept for run in result.runs),
        "changes": changes.to_dict(),
    }
