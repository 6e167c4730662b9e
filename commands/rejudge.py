"""ambjudge rejudge: stored verdicts brought up to date."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from .. import console
from ..config import Settings, load
from ..errors import InputError
from .options import (
    PATHS,
    check_can_label_stages,
    existing,
    json_option,
    judge_of,
    judge_options,
    open_session_store,
    policy_options,
    question_options,
    run_options,
    score_options,
    scorer_of,
    spread_options,
    work_options,
)
from .runs import found_runs

if TYPE_CHECKING:
    from pathlib import Path

    from ..judge.base import Judge, Usage
    from ..judge.rejudge.score_change import ScoreSplit
    from ..judge.rejudge.staleness import RejudgePlan
    from ..judge.rejudge.update import CardUpdate, UpdateResult
    from ..judge.session import ScoreOptions
    from ..judge.store import Store


@click.command(
    "rejudge",
    epilog=(
        "\b\nExamples:\n  ambjudge rejudge runs/ --rubric my-vqa.yaml --dry-run\n  ambjudge rejudge"
        " runs/ --rubric my-vqa.yaml --judge openai/gpt-5.4-mini --max-cost 5"
    ),
)
@PATHS
@judge_options
@question_options
@run_options
@policy_options
@click.option("--verify-files", is_flag=True, help="Read every run, trust no file times.")
@click.option("--abandon", metavar="BATCH", help="Close a provider's batch unanswered.")
@work_options
@spread_options
@json_option()
@click.pass_obj
def command(
    obj: dict[str, Any], /, paths: tuple[str, ...], abandon: str | None, **flags: Any
) -> int:
    """Judge again only what the rubric, prompt, judge or evidence now in force has made stale; then
    renew scorecards.

    A criterion is stale when its text, scale or evidence differ from what its verdict answered.
    Weights, credits and policies need no call. Without --judge it is the one of the stored
    verdicts.
    """
    if abandon is not None:
        return _abandon(obj, paths, abandon, flags)
    return run(obj, paths, flags, stored=True)


def _abandon(obj: dict[str, Any], paths: tuple[str, ...], batch: str, flags: dict[str, Any]) -> int:
    from ..judge import provider_batch

    with ExitStack() as stack:
        settings = load(obj["config"])
        store = open_session_store(
            existing(paths), settings, flags, None, stack, obj["quiet"], required=True
        )
        assert store is not None
        provider_batch.abandon(store, batch)
    console.note(
        f"batch {batch} is closed; its verdicts are asked anew by the next rejudge --batch",
        obj["quiet"],
    )
    return 0


def run(
    obj: dict[str, Any], paths: tuple[str, ...], flags: dict[str, Any], *, stored: bool = False
) -> int:
    """The exit code: 0; 1 when something is unscored or could not be read; 130 when interrupted.

    `stored`: where no judge is named, the one of the stored verdicts is meant.
    """
    import asyncio

    from ..judge.rejudge.staleness import plan_rejudge
    from ..judge.rejudge.update import outdated_runs, update_collection, without_calls

    settings = load(obj["config"])
    options, quiet = score_options(settings, flags), obj["quiet"]
    with ExitStack() as stack:
        runs, lost = found_runs(paths)
        if not runs:
            return 2
        if (shard := flags["shard"]) is not None:
            runs, options = shard.slice(runs), shard.share(options)
        store = open_session_store(
            existing(paths), settings, flags, None, stack, quiet, required=True
        )
        assert store is not None
        flags = _as_stored(store, paths, settings, flags) if stored else flags
        judge = judge_of(settings, flags)
        check_can_label_stages(judge, options.questions)
        scope = options.scope()
        bar = console.Progress("planned", len(runs), quiet)
        made = plan_rejudge(
            store, runs, judge, scope, verify=flags["verify_files"], on_progress=bar.update
        )
        bar.clear()
        for path, error in made.errors:
            console.error(f"{path}: {error}")
        renewed = outdated_runs(store, runs, judge, options.rubric, options.policy)
        if flags["dry_run"]:
            _show_plan(made, len(renewed), flags["as_json"])
            return 1 if made.errors or lost else 0
        if not flags["as_json"]:
            _note_plan(made, quiet)
        if flags["batch"]:
            return _through_batch(made, store, runs, judge, options, flags["wait"], quiet)
        calls, cards = (
            console.Progress("judged", made.calls, quiet),
            console.Progress("scored", None, quiet),
        )

        async def work() -> UpdateResult:
            async with scorer_of(settings, flags, judge, without_calls(options), store) as scorer:
                return await update_collection(
                    made,
                    store,
                    runs,
                    judge,
                    options,
                    scorer=scorer,
                    on_calls=lambda s: calls.update(s.progress.done, _money(s.usage)),
                    on_cards=lambda p, _: cards.update(p.done),
                )

        done = asyncio.run(work())
        calls.clear()
        cards.clear()
        for item in done.errors:
            console.error(item.error)
        if flags["as_json"]:
            console.raw(json.dumps(_as_dict(made, done), ensure_ascii=False))
        else:
            _show_update(made, done)
        if done.execution.summary.interrupted:
            console.interrupted("judged", quiet)
            return 130
        return (
            1 if done.errors or made.errors or sum(done.execution.unscored.values()) or lost else 0
        )


def _as_stored(
    store: Store, paths: Sequence[str], settings: Settings, flags: dict[str, Any]
) -> dict[str, Any]:
    """The flags with the judge of these runs' scorecards and the parameters of its verdicts, where
    no judge is named.

    The rules stand back for a judge that reads. InputError where several do.
    """
    from ..judge.card.fields import RULES

    if settings.get("judge", flags["judges"]):
        return flags
    found = store.judges(paths)
    reading = [name for name in found if name != RULES]
    if len(reading) > 1:
        raise InputError(
            f"the store holds verdicts of {', '.join(reading)}", "name one with --judge"
        )
    if not reading:
        return flags
    said = store.judge_parameters(reading[0])
    members = tuple(said.get("members") or ())
    if members:
        said = {key.rpartition(".")[2]: value for key, value in said.items()} | {"samples": 1}
    kept = {
        "api_base": "api_base",
        "temperature": "temperature",
        "samples": "samples",
        "pictures": "outputs",
    }
    before = {
        name: said.get(key)
        for name, key in kept.items()
        if settings.get(name, flags.get(name)) is None
    }
    return {**flags, "judges": members or tuple(reading), **before}


def _through_batch(
    made: RejudgePlan,
    store: Store,
    runs: list[Path],
    judge: Judge,
    options: ScoreOptions,
    wait_s: float,
    quiet: bool,
) -> int:
    """One step of the batch; once the provider has answered all of it, scorecards are renewed."""
    import asyncio

    from ..judge.rejudge.update import outdated_runs, rescore, without_calls
    from ..judge.session import make_scorer
    from .batch_step import step

    done = step(made, store, judge, options.max_cost, wait_s, quiet)
    if done.still_open:
        return 1
    stale = (
        *(need.path for need in made.needs),
        *outdated_runs(store, runs, judge, options.rubric, options.policy),
    )
    updated, errors = asyncio.run(
        rescore(store, stale, judge, make_scorer(judge, without_calls(options), store))
    )
    console.say(f"{len(updated)} scorecards renewed")
    show_changes(updated)
    return 1 if errors or done.unscored or done.over_budget else 0


def _money(usage: Usage) -> str:
    from ..judge.card.view import usage_parts

    return " · ".join(usage_parts(usage))


def interval(low: float | None, high: float | None, form: str) -> str:
    if low is None or high is None:
        return "unknown"
    return form.format(low) if low == high else f"{form.format(low)} to {form.format(high)}"


def _note_plan(made: RejudgePlan, quiet: bool) -> None:
    low, high = made.estimate.low, made.estimate.high
    console.note(
        f"{made.runs} runs: {made.current} verdicts stand, {made.stale} are to be made in"
        f" {made.calls} calls, cost {interval(low.cost_usd, high.cost_usd, '${:.2f}')}",
        quiet,
    )
    if made.foreign_track_runs:
        console.note(_apart(made), quiet)


def _apart(made: RejudgePlan) -> str:
    return f"{made.foreign_track_runs} of them are of another track than the given rubric and judged by their own"


def _by_item(made: RejudgePlan) -> list[tuple[str | None, str, str, Counter[str]]]:
    """Stale verdicts as (rubric, question, item, count by reason): criteria by rubric first, then
    what no rubric holds."""
    from ..judge.base import is_criteria

    found: dict[tuple[str | None, str, str], Counter[str]] = {}
    for need in made.needs:
        rubric = need.rubric_id if is_criteria(need.question) else None
        for item, reasons in need.reasons.items():
            found.setdefault((rubric, need.question, item), Counter())["+".join(reasons)] += 1
    ordered = sorted(
        found.items(), key=lambda pair: (pair[0][0] is None, pair[0][0] or "", pair[0][1])
    )
    return [(*key, why) for key, why in ordered]


def _lines(made: RejudgePlan) -> list[tuple[str, str, Counter[str]]]:
    """The same for people: (rubric or question, items, count by reason). A criterion has its own
    line; items that no rubric holds and that went stale alike share one."""
    found: list[tuple[str, list[str], Counter[str]]] = []
    for rubric, question, item, why in _by_item(made):
        alike = next(
            (line for line in found if rubric is None and line[0] == question and line[2] == why),
            None,
        )
        if alike is None:
            found.append((rubric or question, [item], why))
        else:
            alike[1].append(item)
    return [
        (name, ", ".join(items), Counter({reason: n * len(items) for reason, n in why.items()}))
        for name, items, why in found
    ]


def plan_dict(made: RejudgePlan) -> dict[str, Any]:
    low, high = made.estimate.low, made.estimate.high
    return {
        "judge": made.judge.judge,
        "runs": made.runs,
        "apart": made.foreign_track_runs,
        "read": made.read,
        "current": made.current,
        "stale": made.stale,
        "never": made.never_judged,
        "calls": made.calls,
        "by_criterion": [
            {
                "rubric": r,
                "question": q,
                "criterion": c,
                "stale": sum(why.values()),
                "reasons": dict(why),
            }
            for r, q, c, why in _by_item(made)
        ],
        "input_tokens": [low.input_tokens, high.input_tokens],
        "output_tokens": [low.output_tokens, high.output_tokens],
        "cost_usd": [low.cost_usd, high.cost_usd],
        "errors": [{"path": str(p), "error": str(e)} for p, e in made.errors],
    }


def _show_plan(made: RejudgePlan, renewed: int, as_json: bool) -> None:
    if as_json:
        console.raw(
            json.dumps(
                {"schema": "ambjudge.plan/1", **plan_dict(made), "cards_to_renew": renewed},
                ensure_ascii=False,
            )
        )
        return
    rows = [
        [
            name,
            items,
            str(sum(why.values())),
            ", ".join(f"{reason} {n}" for reason, n in why.most_common()),
        ]
        for name, items, why in _lines(made)
    ]
    if rows:
        console.table(["Rubric or question", "Item", "To ask", "Why"], rows, right=[2], flexible=1)
        console.say()
    low, high = made.estimate.low, made.estimate.high
    console.say(
        f"{made.runs} runs with judge {made.judge.judge}: {made.current} verdicts stand,"
        f" {made.stale - made.never_judged} are stale, {made.never_judged} were never made by it; {made.calls}"
        " calls"
    )
    if made.foreign_track_runs:
        console.say(_apart(made))
    if made.calls:
        console.say(
            f"input tokens {interval(low.input_tokens, high.input_tokens, '{:,}')}, output tokens"
            f" {interval(low.output_tokens, high.output_tokens, '{:,}')}, cost"
            f" {interval(low.cost_usd, high.cost_usd, '${:.4f}')}"
        )
    if renewed:
        console.say(
            f"{renewed} scorecards are by another version of the rubric or by other choices, or"
            " missing"
        )


def _show_update(made: RejudgePlan, done: UpdateResult) -> None:
    from ..judge.card.view import usage_parts

    e = done.execution
    calls, *rest = usage_parts(e.usage)
    console.say(
        f"{e.scored} verdicts made in {calls} ({', '.join(rest)})"
        + (
            f", {sum(e.unscored.values())} unscored: "
            + ", ".join(f"{k} {n}" for k, n in e.unscored.most_common())
            if e.unscored
            else ""
        )
    )
    console.say(f"{len(done.runs)} scorecards renewed")
    show_changes(done.runs)


def show_changes(runs: Sequence[CardUpdate]) -> None:
    """Mean split, flips by criterion, and agents that changed places."""
    from ..judge.rejudge.score_change import mean_split, rank_changes

    changes = [r.change for r in runs if r.change is not None]
    moved = [c for c in changes if c.flips or (c.agentic is not None and c.agentic.change)]
    if changes:
        rows = [
            _split_row(name, split)
            for name, split in (
                ("Agentic", mean_split(c.agentic for c in changes)),
                ("Overall", mean_split(c.overall for c in changes)),
            )
            if split is not None
        ]
        console.say()
        console.say(
            f"Mean change over {len(changes)} runs that had a scorecard, split by what caused it"
        )
        console.table(
            ["Score", "Before", "After", "Change", "Text", "Weights", "Judge", "Data"],
            rows,
            right=range(1, 8),
        )
    flips: dict[str, list[tuple[float | None, float | None]]] = {}
    for change in moved:
        for flip in change.flips:
            flips.setdefault(flip.criterion, []).append((flip.before, flip.after))
    if flips:
        console.say()
        rows = []
        for criterion, pairs in sorted(flips.items()):
            up = sum(a is not None and b is not None and b > a for a, b in pairs)
            down = sum(a is not None and b is not None and b < a for a, b in pairs)
            rows.append(
                [criterion, str(len(pairs)), str(up), str(down), str(len(pairs) - up - down)]
            )
        console.table(["Criterion", "Flips", "Up", "Down", "Other"], rows, right=range(1, 5))
    known = [r for r in runs if r.before is not None]
    moves = rank_changes(
        [r.before for r in known if r.before is not None], [r.after for r in known]
    )
    ranks = [r for r in moves if r.before != r.after]
    if ranks:
        console.say()
        console.table(
            ["Agent", "Place before", "Place after"],
            [[r.name, str(r.before), str(r.after)] for r in ranks],
            right=[1, 2],
        )


def _split_row(name: str, split: ScoreSplit) -> list[str]:
    digits = 4 if name == "Agentic" else 2
    parts = (split.change, split.text, split.weights, split.judge, split.data)
    return [
        name,
        f"{split.before:.{digits}f}",
        f"{split.after:.{digits}f}",
        *(f"{p:+.{digits}f}" for p in parts),
    ]


def _as_dict(made: RejudgePlan, done: UpdateResult) -> dict[str, Any]:
    from dataclasses import asdict

    e = done.execution
    return {
        "schema": "ambjudge.rejudge/1",
        "plan": plan_dict(made),
        "calls": e.usage.calls,
        "cost_usd": e.usage.cost_usd,
        "scored": e.scored,
        "unscored": dict(e.unscored),
        "interrupted": e.summary.interrupted,
        "scorecards": len(done.runs),
        "changes": [asdict(r.change) for r in done.runs if r.change is not None],
    }
