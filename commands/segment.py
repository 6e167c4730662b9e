"""ambjudge segment: the stage of every turn."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from .. import console
from .grouped_help import command as grouped_command
from .grouped_help import option
from .options import JSON, JUDGE, MAX_COST, PATHS, STAGES_FROM, STORE, WHERE

if TYPE_CHECKING:
    from ..config import Settings
    from ..judge.questions.items import StagesFrom
    from ..trajectories.models import Run, Segmentation


@grouped_command(
    "segment",
    "ambjudge segment runs/elm-chest-1 --why",
    "ambjudge segment runs/ --stages mixed --judge openai/gpt-5.4-mini",
)
@PATHS
@JSON
@option("--why", is_flag=True, help="Show the signals by which the rules label every turn.")
@JUDGE
@STAGES_FROM
@MAX_COST
@WHERE
@STORE
@click.pass_obj
def command(
    obj: dict[str, Any], /, paths: tuple[str, ...], as_json: bool, why: bool, **flags: Any
) -> int:
    """Show the stage of every turn, S1 to S5, and what each stage cost.

    Turns are labelled by rules, by a model that reads the run (--stages judge), or by the model
    where the rules are unsure (--stages mixed). The store keeps the model's labels.
    """
    from ..config import load
    from .runs import matching_paths

    settings = load(obj["config"])
    printer = _Printer(as_json, why)
    if (settings.get("stages", flags["stages"]) or "rules") == "rules":
        return _segment_by_rules(matching_paths(obj, paths, flags), printer)
    return _segment_by_judge(obj, paths, settings, flags, printer)


def _segment_by_rules(paths: tuple[str, ...], printer: _Printer) -> int:
    from ..errors import AmbjudgeError
    from ..trajectories.turns.segment import segment
    from .runs import each_result, each_run

    failed = 0
    for item in each_result(each_run(paths), lambda run: segment(run, explain=printer.why)):
        if isinstance(item, AmbjudgeError):
            failed += 1
            console.error(item)
        else:
            run, segmentation = item
            printer.add(run, segmentation, segmentation, "rules")
    if not failed:
        return 0
    return 1 if printer.count else 2


def _segment_by_judge(
    obj: dict[str, Any],
    paths: tuple[str, ...],
    settings: Settings,
    flags: dict[str, Any],
    printer: _Printer,
) -> int:
    from ..judge.engine import choose_stages
    from ..judge.questions.items import QuestionSet, check_can_label_stages
    from ..trajectories.turns.segment import segment
    from .judge_readings import Reading, read_runs
    from .sessions import judge_of, score_options

    judge, options = judge_of(settings, flags), score_options(settings, flags)
    check_can_label_stages(judge, options.questions)
    stages_only = QuestionSet(criteria=False, diagnosis=False, stages=options.questions.stages)
    options = replace(options, questions=stages_only)

    def show(reading: Reading) -> None:
        run = reading.prepared.run
        by_rules = segment(run, explain=True) if printer.why else reading.prepared.segmentation
        stages, stages_from = choose_stages(reading.prepared, reading.replies.get("stages"))
        printer.add(run, by_rules, stages, stages_from)

    return read_runs(obj, paths, settings, flags, judge, options, show)


class _Printer:
    """Prints runs one after the other."""

    def __init__(self, as_json: bool, why: bool) -> None:
        self.as_json = as_json
        self.why = why
        self.count = 0

    def add(
        self, run: Run, by_rules: Segmentation, stages: Segmentation, stages_from: StagesFrom
    ) -> None:
        """Print the stages of a run; the signals are those of the rules, whoever labelled the
        turns."""
        if self.as_json:
            data = _to_json(run, by_rules, stages, stages_from, self.why)
            console.raw(json.dumps(data, ensure_ascii=False))
        else:
            if self.count:
                console.say()
            _show_stages(run, stages, stages_from)
            if self.why:
                console.say()
                _show_signals(run, by_rules, stages, stages_from)
        self.count += 1


def _to_json(
    run: Run, by_rules: Segmentation, stages: Segmentation, stages_from: StagesFrom, why: bool
) -> dict[str, Any]:
    """`ambjudge.segments/1`."""
    from ..trajectories.summary import segments_json

    data = {**segments_json(run, stages), "stages_from": stages_from}
    if why:
        rules = segments_json(run, by_rules, with_signals=True)
        data["confidence"] = rules["confidence"]
        data["signals"] = rules["signals"]
        if stages_from != "rules":
            data["rules"] = rules["turn_stages"]
    return data


def _show_stages(run: Run, stages: Segmentation, stages_from: StagesFrom) -> None:
    """Print turns, calls and seconds by stage."""
    from ..judge.card.view import STAGES_BY
    from ..judge.card.view_parts import turn_ranges
    from ..trajectories.models import STAGE_NAMES, STAGES
    from ..trajectories.summary import stage_uses

    source = "" if stages_from == "rules" else f" · {STAGES_BY[stages_from]}"
    console.say(
        f"{run.id}  {run.task or 'unknown task'} · {len(run.turns)} turns · ended:"
        f" {run.status.ended}{source}"
    )
    costs = stage_uses(run, stages)
    rows = []
    for stage in STAGES:
        cost = costs[stage]
        rows.append(
            [
                f"{stage} {STAGE_NAMES[stage]}",
                turn_ranges(stages.turns_of(stage)) or "–",
                str(cost.turns),
                str(cost.calls),
                str(cost.failed_calls),
                console.number(cost.exec_time_s, digits=1),
            ]
        )
    console.table(
        ["Stage", "Turns", "n", "Calls", "Failed", "Seconds"], rows, right=range(2, 6), flexible=1
    )


def _show_signals(
    run: Run, by_rules: Segmentation, stages: Segmentation, stages_from: StagesFrom
) -> None:
    """Print every turn with its stage and the signals of the rules."""
    from ..sanitize import sanitize_line
    from ..trajectories.summary import speaker_name

    pairs = zip(run.turns, stages.turn_stages, by_rules.turn_stages, strict=True)
    for turn, stage, rules_stage in pairs:
        confidence = f"{by_rules.confidence[turn.index - 1]:.2f}" if by_rules.confidence else ""
        if stages_from != "rules":
            confidence = f"(rules {rules_stage} {confidence})"
        words = sanitize_line(turn.text.strip()[:90]) or sanitize_line(turn.code.strip()[:90])
        words = f"{speaker_name(turn.speaker)}: {words}" if turn.speaker else words
        line = f"turn {turn.index:<4} {stage} {confidence}  {words}"
        console.say(console.fit(line, console.width()))
        for signal in by_rules.signals[turn.index - 1] if by_rules.signals else ():
            quote = f": {sanitize_line(signal.quote)[:80]}" if signal.quote else ""
            line = f"          {signal.stage} {signal.weight:+.1f} {signal.name}{quote}"
            console.say(console.fit(line, console.width()))
