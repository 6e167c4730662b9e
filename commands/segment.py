"""ambjudge segment: turns to stages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from .. import console
from .options import JSON, PATHS, STAGES_FROM, known_options, reading_options

if TYPE_CHECKING:
    from ..judge.questions.items import StagesFrom
    from ..trajectories.models import Run, Segmentation


@click.command(
    "segment",
    epilog=(
        "\b\nExamples:\n  ambjudge segment runs/elm-chest-1 --why\n  ambjudge segment runs/"
        " --stages mixed --judge openai/gpt-5.4-mini"
    ),
)
@PATHS
@JSON
@click.option("--why", is_flag=True, help="The signals by which the rules label every turn.")
@STAGES_FROM
@reading_options
@known_options
@click.pass_obj
def command(
    obj: dict[str, Any], /, paths: tuple[str, ...], as_json: bool, why: bool, **flags: Any
) -> int:
    """Show which stage, S1 to S5, each turn of a run belongs to, and what each stage cost.

    Turns are labelled by rules, by a model that reads the run (--stages judge), or by the model
    where the rules are unsure (--stages mixed). What a model said is kept in the store.
    """

    from ..config import load
    from ..trajectories.turns.segment import segment

    settings = load(obj["config"])
    printed = _Printed(as_json, why)
    if (settings.get("stages", flags["stages"]) or "rules") != "rules":
        return _read(obj, paths, settings, flags, printed)

    from ..errors import AmbjudgeError
    from .runs import each_result, each_run

    failed = 0
    for item in each_result(each_run(paths), lambda run: segment(run, explain=why)):
        if isinstance(item, AmbjudgeError):
            failed += 1
            console.error(item)
        else:
            printed.add(*item)
    return 0 if not failed else 1 if printed.done else 2


def _read(
    obj: dict[str, Any],
    paths: tuple[str, ...],
    settings: Any,
    flags: dict[str, Any],
    printed: _Printed,
) -> int:
    """Turns labelled by a judge that reads."""
    from dataclasses import replace

    from ..judge.engine import read_stages
    from ..judge.questions.items import QuestionSet
    from ..trajectories.turns.segment import segment
    from .judge_readings import Read, read_runs
    from .options import check_can_label_stages, judge_of, score_options

    judge, options = judge_of(settings, flags), score_options(settings, flags)
    check_can_label_stages(judge, options.questions)
    options = replace(
        options,
        questions=QuestionSet(criteria=False, diagnosis=False, stages=options.questions.stages),
    )

    def show(read: Read) -> None:
        run = read.ready.run
        rules = segment(run, explain=True) if printed.why else read.ready.segmentation
        printed.add(run, rules, *read_stages(read.ready, read.replies.get("stages")))

    return read_runs(obj, paths, settings, flags, judge, options, show)


class _Printed:
    """Runs as they are printed, one after the other."""

    def __init__(self, as_json: bool, why: bool) -> None:
        self.as_json, self.why, self.done = as_json, why, 0

    def add(
        self,
        run: Run,
        rules: Segmentation,
        found: Segmentation | None = None,
        stages_from: StagesFrom = "rules",
    ) -> None:
        """`found`: the stages in the end, where they are not by `rules` alone, which the signals
        speak for."""
        from ..trajectories.summary import segments_json

        stages = found or rules
        if self.as_json:
            data = {**segments_json(run, stages), "stages_from": stages_from}
            if self.why:
                signs = segments_json(run, rules, with_signals=True)
                data |= {"confidence": signs["confidence"], "signals": signs["signals"]}
                data |= {"rules": signs["turn_stages"]} if stages_from != "rules" else {}
            console.raw(json.dumps(data, ensure_ascii=False))
        else:
            _show(run, rules, stages, stages_from, self.why, first=self.done == 0)
        self.done += 1


def _show(
    run: Run, rules: Segmentation, stages: Segmentation, stages_from: str, why: bool, first: bool
) -> None:
    from ..judge.card.view import STAGES_BY
    from ..judge.card.view_parts import turn_ranges
    from ..sanitize import sanitize_line
    from ..trajectories.models import STAGE_NAMES, STAGES
    from ..trajectories.summary import stage_uses

    if not first:
        console.say()
    by = "" if stages_from == "rules" else f" · {STAGES_BY[stages_from]}"
    console.say(
        f"{run.id}  {run.task or 'unknown task'} · {len(run.turns)} turns · ended:"
        f" {run.status.ended}{by}"
    )
    costs = stage_uses(run, stages)
    rows = []
    for stage in STAGES:
        cost = costs[stage]
        seconds = "–" if cost.exec_time_s is None else f"{cost.exec_time_s:.1f}"
        rows.append(
            [
                f"{stage} {STAGE_NAMES[stage]}",
                turn_ranges(stages.turns_of(stage)) or "–",
                str(cost.turns),
                str(cost.calls),
                str(cost.failed_calls),
                seconds,
            ]
        )
    console.table(
        ["Stage", "Turns", "n", "Calls", "Failed", "Seconds"], rows, right=range(2, 6), flexible=1
    )
    if why:
        console.say()
        for turn, stage, guess in zip(
            run.turns, stages.turn_stages, rules.turn_stages, strict=True
        ):
            sure = f"{rules.confidence[turn.index - 1]:.2f}" if rules.confidence else ""
            ours = sure if stages_from == "rules" else f"(rules {guess} {sure})"
            said = sanitize_line(turn.text.strip()[:90]) or sanitize_line(turn.code.strip()[:90])
            console.say(
                console.fit(f"turn {turn.index:<4} {stage} {ours}  {said}", console.width())
            )
            for signal in rules.signals[turn.index - 1] if rules.signals else ():
                quote = f": {sanitize_line(signal.quote)[:80]}" if signal.quote else ""
                line = f"          {signal.stage} {signal.weight:+.1f} {signal.name}{quote}"
                console.say(console.fit(line, console.width()))
