"""ambjudge ask: an ad-hoc question on every run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import click

from .. import console
from ..config import Settings, load
from ..errors import ConfigError
from .card_files import Part
from .options import (
    existing,
    json_option,
    judge_of,
    judge_options,
    known_options,
    open_session_store,
    score_options,
    scorer_of,
    spread_options,
    work_options,
)
from .runs import found_runs
from .table_files import format_of, target_of, texts_of, write_parquet, write_text

if TYPE_CHECKING:
    from ..judge.ad_hoc import Answered, RunAnswer
    from ..judge.base import Judge
    from ..judge.questions.items import Answer
    from ..judge.rejudge.staleness import RejudgePlan
    from ..judge.scope import Scope
    from ..judge.session import ScoreOptions
    from ..judge.store import Store
    from ..trajectories.record.quotes import Evidence


@click.command(
    "ask",
    epilog=(
        '\b\nExamples:\n  ambjudge ask runs/ "Did the agent look at an image of its output?"'
        ' --judge openai/gpt-5.4-mini\n  ambjudge ask runs/ "Which loss was trained with?" --choice'
        " dice,ce,other,none --out loss.parquet"
    ),
)
@click.argument("paths", nargs=-1, type=click.Path(), metavar="PATH...")
@click.argument("question", required=False, metavar='"QUESTION"')
@click.option("--choice", metavar="A,B,C", help="The answer is one of these, not yes or no.")
@click.option("--number", is_flag=True, help="The answer is a number.")
@click.option("--text", is_flag=True, help="The answer is one or two sentences.")
@click.option(
    "--schema", metavar="FILE", type=click.Path(), help="The answer is JSON by this JSON Schema."
)
@judge_options
@known_options
@work_options
@spread_options
@json_option("JSON Lines on stdout, one run each.")
@click.option(
    "--out", metavar="FILE", type=click.Path(), help="Also write .jsonl, .csv or .parquet."
)
@click.pass_obj
def command(
    obj: dict[str, Any], /, paths: tuple[str, ...], question: str | None, **flags: Any
) -> int:
    """Ask a model one question about every run: an answer with turns and quotes, each searched in
    the run.

    Yes or no unless an option says otherwise; "cannot tell" is an answer too, and a failed reply is
    unscored, never "no". Answers are kept in the store: the same command goes on where it stopped,
    and asking again costs nothing.
    """
    return run(obj, paths, question, flags)


_QUOTED = 60
"""Columns of a quote in the table, where the answer is what gives way."""


def run(
    obj: dict[str, Any], paths: tuple[str, ...], question: str | None, flags: dict[str, Any]
) -> int:
    """The exit code: 0; 1 when a run is unscored or could not be read; 2 when none could; 130 when
    interrupted.

    "Cannot tell" is an answer.
    """
    from ..judge.ad_hoc import ask_scope, stored_answers
    from ..judge.questions.items import ask_item

    item = ask_item(_question(paths, question), _form(flags))
    settings, quiet = load(obj["config"]), obj["quiet"]
    judge, options = judge_of(settings, flags), score_options(settings, flags)
    scope = ask_scope(judge, item, track=options.track, tier=options.tier, public=options.public)
    options = replace(options, rubric=None, questions=scope.questions)
    out, shard, part = None if flags["out"] is None else Path(flags["out"]), flags["shard"], None
    with ExitStack() as stack:
        runs, lost = found_runs(paths)
        if not runs:
            return 2
        if shard is not None:
            runs, options = shard.slice(runs), shard.share(options)
            part = Part(shard.file(out), runs, judge, options)
            out = part.file
            if not flags["dry_run"] and (code := part.said(quiet)) is not None:
                return max(code, int(lost))
        kind = format_of(out)
        target = None if out is None else target_of(out, paths)
        store = open_session_store(
            existing(paths), settings, flags, judge, stack, quiet, required=True
        )
        assert store is not None
        done = _carry_out(store, runs, judge, scope, settings, options, flags, quiet)
        if isinstance(done, int):
            return max(done, int(lost))
        readable = [path for path in runs if path.absolute() not in done.broken]
        if runs and not readable:
            return 2
        tally = _Tally(item.answer)
        answers = tally.each(stored_answers(store, readable, judge, scope))
        _show(answers, item.answer, flags["as_json"], obj["verbose"] > 0, len(readable))
        if len(readable) > 1 or flags["as_json"]:
            console.note(tally.line(), quiet)
        if target is not None:
            _write(target, kind, stored_answers(store, readable, judge, scope), item.answer)
            console.note(f"wrote {len(readable)} answers to {out}", quiet)
        if done.interrupted:
            console.interrupted("answered", quiet)
            return 130
        code = 1 if len(readable) < len(runs) or tally.unscored else 0
        if part is not None and not tally.unscored:
            part.note(len(readable), code)
        return max(code, int(lost))


@dataclass(frozen=True)
class _Done:
    """What stands in the way of answers: runs that cannot be read, and whether it was broken off."""

    broken: Collection[Path] = ()
    interrupted: bool = False


def _carry_out(
    store: Store,
    runs: Sequence[Path],
    judge: Judge,
    scope: Scope,
    settings: Settings,
    options: ScoreOptions,
    flags: dict[str, Any],
    quiet: bool,
) -> _Done | int:
    """Plan, and ask as the flags say: now, through a provider's batch, or not at all; an exit code
    where it ends there."""
    import asyncio

    from ..judge.ad_hoc import ask
    from ..judge.card.view import usage_parts
    from ..judge.rejudge.staleness import plan_rejudge
    from .render import bill

    planning, asking = (
        console.Progress("planned", len(runs), quiet),
        console.Progress("asked", None, quiet),
    )

    def planned(made: RejudgePlan) -> None:
        planning.clear()
        for _, error in made.errors:
            console.error(error)
        if not flags["dry_run"]:
            console.note(_cost(made), quiet)
        asking.total = made.calls

    if flags["dry_run"] or flags["batch"]:
        made = plan_rejudge(store, runs, judge, scope, on_progress=planning.update)
        planned(made)
        if flags["dry_run"]:
            _show_plan(made, flags["as_json"])
            return 1 if made.errors else 0
        from .batch_step import step

        still_open = step(made, store, judge, options.max_cost, flags["wait"], quiet).still_open
        return 1 if still_open else _Done({path for path, _ in made.errors})

    async def work() -> Answered:
        async with scorer_of(settings, flags, judge, options, store) as scorer:
            return await ask(
                store,
                runs,
                judge,
                scope,
                scorer=scorer,
                on_planning=planning.update,
                on_planned=planned,
                on_progress=lambda s: asking.update(
                    s.progress.done, ", ".join(usage_parts(s.usage))
                ),
            )

    try:
        done = asyncio.run(work())
    finally:
        planning.clear()
        asking.clear()
    if done.execution is None:
        return _Done(done.broken)
    for _, error in done.execution.lost:
        console.error(error)
    console.note(bill(done.execution.usage), quiet)
    return _Done(done.broken, done.execution.summary.interrupted)


def _question(paths: tuple[str, ...], question: str | None) -> str:
    """The last argument. A path in its place is a question that was forgotten."""
    usage = (
        'name the runs, then the question in quotes: ambjudge ask runs/ "Did the agent look at an'
        ' image?"'
    )
    if question is None:
        raise click.UsageError(usage)
    try:
        there = Path(question).exists()
    except (OSError, ValueError):
        there = False
    if there:
        raise click.UsageError(
            f"the last argument is the question, and {question!r} is a path that exists; {usage}"
        )
    if not paths:
        raise click.UsageError(f"no PATH before the question; {usage}")
    return question


def _form(flags: dict[str, Any]) -> Answer:
    from ..judge.questions.items import Answer

    given = [
        name for name in ("choice", "number", "text", "schema") if flags[name] not in (None, False)
    ]
    if len(given) > 1:
        raise click.UsageError(
            f"--{' and --'.join(given)} exclude each other; give one form of the answer"
        )
    if "choice" in given:
        return Answer(
            "choice",
            tuple(option.strip() for option in flags["choice"].split(",") if option.strip()),
        )
    if "schema" in given:
        from ..trajectories.reading.json_bytes import read_json

        schema = read_json(Path(flags["schema"]))
        if not isinstance(schema, dict):
            raise ConfigError(
                f"{flags['schema']}: no JSON Schema", 'give an object, as {"type": "array", ...}'
            )
        return Answer("json", schema=schema)
    return Answer("number" if "number" in given else "text" if "text" in given else "yes_no")


# What it takes


def _cost(made: RejudgePlan) -> str:
    from .rejudge import interval

    low, high = made.estimate.low, made.estimate.high
    cost = f", cost {interval(low.cost_usd, high.cost_usd, '${:.4f}')}" if made.calls else ""
    runs = "1 run" if made.runs == 1 else f"{made.runs} runs"
    return (
        f"{runs} with judge {made.judge.judge}: {made.current} answers stand, {made.calls} to"
        f" ask{cost}"
    )


def _show_plan(made: RejudgePlan, as_json: bool) -> None:
    from .rejudge import interval, plan_dict

    if as_json:
        console.raw(
            json.dumps({"schema": "ambjudge.plan/1", **plan_dict(made)}, ensure_ascii=False)
        )
        return
    console.say(_cost(made))
    low, high = made.estimate.low, made.estimate.high
    if made.calls:
        console.say(
            f"input tokens {interval(low.input_tokens, high.input_tokens, '{:,}')}, output tokens"
            f" {interval(low.output_tokens, high.output_tokens, '{:,}')}"
        )


# Answers for people and programs


class _Tally:
    """Counts answers as they pass."""

    def __init__(self, form: Answer) -> None:
        options = ("yes", "no") if form.kind == "yes_no" else form.options
        self.said: Counter[str] = Counter(dict.fromkeys(options, 0))
        self.numbers: list[float] = []
        self.form, self.cannot_tell, self.unproven = form, 0, 0
        self.reasons: Counter[str] = Counter()

    @property
    def unscored(self) -> int:
        return sum(self.reasons.values())

    def each(self, answers: Iterable[RunAnswer]) -> Iterator[RunAnswer]:
        for one in answers:
            if one.cannot_tell:
                self.cannot_tell += 1
            elif one.status == "unscored":
                self.reasons[one.reason or "judge_error"] += 1
            else:
                self.unproven += not one.turns
                if isinstance(one.answer, int | float) and self.form.kind == "number":
                    self.numbers.append(one.answer)
                else:
                    self.said[
                        "answered" if self.form.kind in ("text", "json") else _worded(one)
                    ] += 1
            yield one

    def line(self) -> str:
        """yes 12, no 30, cannot tell 3, unscored 1 (refused 1)."""
        parts = [f"{name} {n}" for name, n in self.said.items()]
        if self.form.kind == "number":
            spread = (
                f" (median {median(self.numbers):g}, {min(self.numbers):g} to"
                f" {max(self.numbers):g})"
                if self.numbers
                else ""
            )
            parts.append(f"numbers {len(self.numbers)}{spread}")
        parts += [f"cannot tell {self.cannot_tell}"] if self.cannot_tell else []
        parts += (
            [
                f"unscored {self.unscored}"
                f" ({', '.join(f'{r} {n}' for r, n in self.reasons.most_common())})"
            ]
            if self.reasons
            else []
        )
        parts += (
            [f"{self.unproven} of the answers without a quote that was found"]
            if self.unproven
            else []
        )
        return ", ".join(parts)


def _show(
    answers: Iterable[RunAnswer], form: Answer, as_json: bool, verbose: bool, count: int
) -> None:
    if as_json:
        for one in answers:
            console.raw(one.to_json())
        return
    if verbose or count == 1:
        for one in answers:
            _detail(one)
        return
    prose = form.kind in ("text", "json")
    rows = [_row(one, prose) for one in answers]
    styles: list[list[str | None]] = [
        [None, *(["dim"] * 3 if row[1] in ("unscored", "cannot tell") else [None] * 3)]
        for row in rows
    ]
    console.table(
        ["Run", "Answer", "Turns", "Quote"], rows, flexible=1 if prose else 3, styles=styles
    )


def _row(one: RunAnswer, prose: bool) -> list[str]:
    from ..judge.card.view_parts import turn_ranges

    if one.status == "unscored" and not one.cannot_tell:
        proof = f"{one.reason}: {one.detail}"
    else:
        found = [quote for quote in one.quotes if quote.check != "not_found"]
        proof = next((_quoted(quote) for quote in (*found, *one.quotes)), "no quote")
        proof += f" +{len(one.quotes) - 1}" if len(one.quotes) > 1 else ""
    return [
        one.run.id,
        _worded(one) + _split(one),
        turn_ranges(one.turns) or "–",
        console.fit(proof, _QUOTED) if prose else proof,
    ]


def _worded(one: RunAnswer) -> str:
    if one.status == "unscored":
        return "cannot tell" if one.cannot_tell else "unscored"
    if isinstance(one.answer, bool) and one.kind == "yes_no":
        return "yes" if one.answer else "no"
    if one.kind == "number" and isinstance(one.answer, int | float):
        return f"{one.answer:g}"
    return one.answer if isinstance(one.answer, str) else json.dumps(one.answer, ensure_ascii=False)


def _split(one: RunAnswer) -> str:
    """How many of several judges or samples said so, where they differ. Other answers than yes and
    no are not in votes."""
    said = [vote.value for vote in one.votes]
    if one.kind != "yes_no" or len(set(said)) < 2 or one.status == "unscored":
        return ""
    return f" ({said.count(1.0 if one.answer else 0.0)} of {len(said)})"


def _quoted(quote: Evidence) -> str:
    mark = {
        "verified": "",
        "moved": f" [moved: turn {quote.found_turn}]",
        "not_found": " [not found]",
    }[quote.check]
    return f"“{quote.quote}”{mark}"


def _detail(one: RunAnswer) -> None:
    """One answer in full, with every quote."""
    why = (
        f" ({one.reason}: {one.detail})" if one.status == "unscored" and not one.cannot_tell else ""
    )
    console.say(console.wrap(f"{one.run.id}: {_worded(one)}{_split(one)}{why}", "    ", ""))
    if one.rationale:
        console.say(console.wrap(one.rationale, "    "))
    for quote in one.quotes:
        console.say(console.wrap(f"turn {quote.turn}: {_quoted(quote)}", "      ", "    ↳ "))


# Answers as files


def _write(target: Path, kind: str, answers: Iterator[RunAnswer], form: Answer) -> None:
    if kind == "jsonl":
        write_text(target, (one.to_json() + "\n" for one in answers))
        return
    from ..analysis.tables.answer_tables import answer_rows, schema_of
    from ..analysis.tables.flat_tables import batches

    tables = batches(answer_rows(answers), schema_of(form.kind))
    if kind == "parquet":
        write_parquet(target, tables)
    else:
        write_text(target, texts_of(tables, kind))
