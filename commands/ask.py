"""ambjudge ask: an ad-hoc question about every run."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import console
from ..config import load
from ..errors import ConfigError
from .answers import AnswerCounts, show_answers, write_answers
from .campaign import BatchStep, campaign, make_plan, open_part, read_run_flags, select_shard
from .forecast import calls_text, cost_lines, forecast_json
from .grouped_help import command as grouped_command
from .grouped_help import option
from .options import AGAIN, STORE, WHERE, campaign_options, json_option
from .path_types import LocalPath
from .runs import list_runs, matching_files
from .selected_items import show_second_opinions
from .sessions import existing_paths, note_strangers, required_store, score_options
from .spending import Spending, within_budget
from .table_files import format_of, target_of

if TYPE_CHECKING:
    from ..judge.ad_hoc import Answered
    from ..judge.base import Judge
    from ..judge.questions.items import Answer
    from ..judge.rejudge.staleness import RejudgePlan
    from ..judge.scope import Scope
    from ..judge.session import Scorer
    from ..judge.store import Store
    from .shards import Part

_USAGE = (
    'name the runs, then the question in quotes: ambjudge ask runs/ "Did the agent look at an'
    ' image?"'
)


@grouped_command(
    "ask",
    'ambjudge ask runs/ "Did the agent look at an image?" --judge openai/gpt-5.4-mini',
    'ambjudge ask runs/ "Which loss was trained with?" --choice dice,ce,other,none --out loss.csv',
)
@click.argument("paths", nargs=-1, type=LocalPath(), metavar="PATH...")
@click.argument("question", required=False, metavar='"QUESTION"')
@option("--choice", metavar="A,B,C", help="The answer is one of these.")
@option("--number", is_flag=True, help="The answer is a number.")
@option("--text", is_flag=True, help="The answer is one or two sentences.")
@option("--schema", metavar="FILE", type=LocalPath(), help="The answer is JSON by this schema.")
@WHERE
@AGAIN
@STORE
@campaign_options
@json_option("Print JSON Lines, one run each.")
@option(
    "--out",
    heading="Output",
    metavar="FILE",
    type=LocalPath(),
    help="Also write .jsonl, .csv or .parquet.",
)
@click.pass_obj
def command(
    obj: dict[str, Any], /, paths: tuple[str, ...], question: str | None, **flags: Any
) -> int:
    """Ask a model one question about every run: an answer with turns and quotes that are searched
    in the run.

    The answer is yes or no unless an option says otherwise; "cannot tell" is an answer too. A
    failed reply is unscored, never "no". Answers are kept in the store: the same command continues
    where it stopped, and asking again costs nothing.
    """
    return run(obj, paths, question, flags)


def run(
    obj: dict[str, Any], paths: tuple[str, ...], question: str | None, flags: dict[str, Any]
) -> int:
    """The exit code: 0; 1 if a run is unscored or could not be read; 2 if none could; 130 if
    interrupted. "Cannot tell" is an answer.
    """
    from ..judge.ad_hoc import ask_scope
    from ..judge.questions.items import ask_item

    item = ask_item(_checked_question(paths, question), _answer_form(flags))
    settings, quiet = load(obj["config"]), obj["quiet"]
    run_flags, options = read_run_flags(settings, flags), score_options(settings, flags)
    judge = run_flags.judge()
    scope = ask_scope(
        judge,
        item,
        track=options.track,
        tier=options.tier,
        public=options.public,
        running=options.running,
    )
    options = replace(options, rubric=None, questions=scope.questions)
    out = Path(flags["out"]) if flags["out"] else None
    with ExitStack() as stack:
        run_list = list_runs(paths)
        if not run_list.files:
            return 2
        incomplete_code = 0 if run_list.is_complete else 1
        matching = matching_files(obj, run_list.files, paths, flags)
        selected, options = select_shard(run_flags, matching, options)
        files = list(selected)
        part = open_part(run_flags, out, files, judge, options)
        if part is not None:
            out = part.file
            finished_code = part.finished_code(quiet)
            if finished_code is not None:
                return max(finished_code, incomplete_code)
        target = None
        if out is not None and not run_flags.dry_run:
            target = _Target(out, target_of(out, paths), format_of(out))
        store = required_store(
            existing_paths(paths),
            settings,
            flags["store"],
            stack,
            quiet,
            is_dry_run=run_flags.dry_run,
        )
        note_strangers(store, paths, run_list.files, quiet, new=True)
        options, spending = within_budget(store, settings, flags, options)
        work = _Asking(
            files,
            judge,
            scope,
            store,
            spending,
            item.answer,
            target,
            part,
            again=flags["again"],
            as_json=flags["as_json"],
            quiet=quiet,
            verbose=obj["verbose"] > 0,
            batch=run_flags.batch,
        )
        code = campaign(
            work, flags=run_flags, judge=judge, options=options, store=store, quiet=quiet
        )
        return max(code, incomplete_code)


def _checked_question(paths: tuple[str, ...], question: str | None) -> str:
    """The last argument; a usage error if it is a path, because then the question was forgotten."""
    if question is None:
        raise click.UsageError(_USAGE)
    try:
        is_path = Path(question).exists()
    except (OSError, ValueError):
        is_path = False
    if is_path:
        raise click.UsageError(
            f"the last argument is the question, and {question!r} is a path that exists; {_USAGE}"
        )
    if not paths:
        raise click.UsageError(f"PATH is missing before the question; {_USAGE}")
    return question


def _answer_form(flags: dict[str, Any]) -> Answer:
    """The form of the answer that the flags name; yes or no without any."""
    from ..judge.questions.items import Answer

    forms = ("choice", "number", "text", "schema")
    names = [name for name in forms if flags[name] not in (None, False)]
    if len(names) > 1:
        raise click.UsageError(
            f"--{' and --'.join(names)} exclude each other; give one form of the answer"
        )
    if not names:
        return Answer("yes_no")
    if names == ["choice"]:
        choices = (choice.strip() for choice in flags["choice"].split(","))
        return Answer("choice", tuple(choice for choice in choices if choice))
    if names == ["schema"]:
        return Answer("json", schema=_read_schema(Path(flags["schema"])))
    return Answer("number") if names == ["number"] else Answer("text")


def _read_schema(file: Path) -> dict[str, Any]:
    from ..trajectories.reading.json_bytes import read_json

    schema = read_json(file)
    if not isinstance(schema, dict):
        raise ConfigError(
            f"{file}: is not a JSON Schema", 'give an object, for example {"type": "array", ...}'
        )
    return schema


@dataclass(frozen=True)
class _Target:
    """The file that answers are written to."""

    name: Path
    """As the user gave it."""
    file: Path
    """With links followed."""
    format: str


@dataclass(frozen=True)
class _Asking:
    """The work of `ask` in a campaign."""

    files: list[Path]
    judge: Judge
    scope: Scope
    store: Store
    spending: Spending
    answer: Answer
    target: _Target | None
    part: Part | None
    again: bool
    as_json: bool
    quiet: bool
    verbose: bool
    batch: bool
    """Whether the provider's batches are used."""

    def plan(self) -> RejudgePlan:
        """Which answers the store lacks."""
        from ..judge.rejudge.selection import ItemSelection

        plan = make_plan(
            self.store,
            self.files,
            self.judge,
            self.scope,
            self.quiet,
            batch=self.batch,
            selection=ItemSelection(again=True) if self.again else None,
        )
        for _, error in plan.errors:
            console.error(error)
        return plan

    def show_forecast(self, plan: RejudgePlan) -> int:
        """The exit code: 1 if a run could not be read."""
        import json

        if self.as_json:
            data = {"schema": "ambjudge.plan/1", **forecast_json(plan, self.spending)}
            console.raw(json.dumps(data, ensure_ascii=False))
        else:
            console.say(_forecast_line(plan))
            for line in cost_lines(plan, self.spending):
                console.say(line)
        return 1 if plan.errors else 0

    def finish_batch(self, plan: RejudgePlan, step: BatchStep) -> int:
        """Show the answers that are now in the store."""
        code = self._show_stored({path for path, _ in plan.errors}, interrupted=False)
        self._show_second_opinions(plan)
        return code

    async def carry_out(self, scorer: Scorer) -> Answered:
        """Ask for the answers that the store lacks."""
        from ..judge.ad_hoc import ask
        from ..judge.card.view import usage_parts

        planning = console.Progress("planned", len(self.files), self.quiet)
        asking = console.Progress("asked", None, self.quiet)

        def announce(plan: RejudgePlan) -> None:
            planning.clear()
            for _, error in plan.errors:
                console.error(error)
            console.note(_forecast_line(plan), self.quiet)
            for line in cost_lines(plan, self.spending):
                console.note(line, self.quiet)
            asking.total = plan.calls

        try:
            return await ask(
                self.store,
                self.files,
                self.judge,
                self.scope,
                scorer=scorer,
                again=self.again,
                on_planning=planning.update,
                on_planned=announce,
                on_progress=lambda state: asking.update(
                    state.progress.done, ", ".join(usage_parts(state.usage))
                ),
            )
        finally:
            planning.clear()
            asking.clear()

    def report(self, result: Answered) -> int:
        """Show the answers and what they cost; the exit code."""
        from .render import bill

        interrupted = False
        if result.execution is not None:
            for _, error in result.execution.lost:
                console.error(error)
            console.note(bill(result.execution.usage), self.quiet)
            interrupted = result.execution.summary.interrupted
        code = self._show_stored(result.broken, interrupted)
        self._show_second_opinions(result.plan)
        return code

    def _show_second_opinions(self, plan: RejudgePlan) -> None:
        if not self.as_json:
            show_second_opinions(self.store, plan, self.judge)

    def _show_stored(self, unreadable: Collection[Path], interrupted: bool) -> int:
        """Print and write the stored answers about the runs that could be read; the exit code."""
        from ..judge.ad_hoc import stored_answers

        readable = [path for path in self.files if path.absolute() not in unreadable]
        if self.files and not readable:
            return 2
        counts = AnswerCounts(self.answer)
        answers = stored_answers(self.store, readable, self.judge, self.scope)
        is_full = self.verbose or len(readable) == 1
        show_answers(counts.counted(answers), self.answer, as_json=self.as_json, in_full=is_full)
        if len(readable) > 1 or self.as_json:
            console.note(counts.summary(), self.quiet)
        self._write(readable)
        if interrupted:
            console.note_interrupted(self.quiet)
            return 130
        code = 1 if len(readable) < len(self.files) or counts.unscored else 0
        if self.part is not None and not counts.unscored:
            self.part.write_note(len(readable), code)
        return code

    def _write(self, readable: Sequence[Path]) -> None:
        from ..judge.ad_hoc import stored_answers

        if self.target is None:
            return
        answers = stored_answers(self.store, readable, self.judge, self.scope)
        write_answers(self.target.file, self.target.format, answers, self.answer)
        console.note(f"wrote {len(readable)} answers to {self.target.name}", self.quiet)


def _forecast_line(plan: RejudgePlan) -> str:
    runs = console.counted(plan.runs, "run")
    return (
        f"{runs}, judge {plan.judge.judge}: {plan.current} answers are in the store,"
        f" {calls_text(plan)} to make"
    )
