"""ambjudge segment: turns to stages."""

from __future__ import annotations

import json
from typing import Any

import click

from .options import JSON, PATHS


@click.command("segment", epilog="\b\nExample:\n  ambjudge segment examples/codes --why")
@PATHS
@JSON
@click.option("--why", is_flag=True, help="The signals behind the stage of every turn.")
@click.pass_obj
def command(obj: dict[str, Any], paths: tuple[str, ...], as_json: bool, why: bool) -> int:
    """Show which stage, S1 to S5, each turn of a run belongs to, and what each stage cost."""
    from ..console import note, raw
    from ..errors import AmbjudgeError
    from ..trajectories.segment import segment
    from ..trajectories.summary import segments_json
    from .runs import each_result, each_run

    failed = done = 0
    for item in each_result(each_run(paths), lambda run: segment(run, explain=why)):
        if isinstance(item, AmbjudgeError):
            failed += 1
            note(f"ambjudge: error: {item}")
            continue
        run, result = item
        if as_json:
            raw(json.dumps(segments_json(run, result, why=why), ensure_ascii=False))
        else:
            _show(run, result, why, first=done == 0)
        done += 1
    return 0 if not failed else 1 if done else 2


def _show(run: Any, result: Any, why: bool, first: bool) -> None:
    from ..console import say, table
    from ..sanitize import sanitize_line
    from ..trajectories.models import STAGE_NAMES, STAGES
    from ..trajectories.summary import stage_costs
    from .render import turns

    if not first:
        say()
    say(f"{run.id}  {run.task or 'unknown task'} · {len(run.turns)} turns · ended: {run.status.ended}")
    costs = stage_costs(run, result)
    rows = []
    for stage in STAGES:
        cost = costs[stage]
        seconds = "–" if cost.exec_time_s is None else f"{cost.exec_time_s:.1f}"
        rows.append(
            [
                f"{stage} {STAGE_NAMES[stage]}",
                turns(result.turns_of(stage)) or "–",
                str(cost.turns),
                str(cost.calls),
                str(cost.failed_calls),
                seconds,
            ]
        )
    table(["Stage", "Turns", "n", "Calls", "Failed", "Seconds"], rows, right=range(2, 6), flexible=1)
    if why:
        say()
        for turn, stage in zip(run.turns, result.turn_stages, strict=True):
            confidence = f"{result.confidence[turn.index - 1]:.2f}" if result.confidence else ""
            said = sanitize_line(turn.text.strip()[:90]) or sanitize_line(turn.code.strip()[:90])
            say(f"turn {turn.index:<4} {stage} {confidence}  {said}")
            for signal in result.signals[turn.index - 1] if result.signals else ():
                say(
                    f"          {signal.stage} {signal.weight:+.1f} {signal.name}"
                    + (f": {sanitize_line(signal.quote)[:80]}" if signal.quote else "")
                )
