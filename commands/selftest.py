"""ambjudge selftest: how far can a judge be trusted?"""

from __future__ import annotations

import json
from typing import Any

import click

from .options import judge_options


@click.command(
    "selftest",
    epilog="\b\nExamples:\n  ambjudge selftest\n  ambjudge selftest --judge openai/my-model --api-base http://localhost:8000/v1",
)
@click.argument("paths", nargs=-1, type=click.Path(), metavar="[PATH...]")
@judge_options
@click.option("--rubric", metavar="FILE|ID", help="Rubric file or id; default: each run's own.")
@click.option(
    "--labels",
    metavar="DIR",
    type=click.Path(),
    help="Human labels of the runs: also say the gain over the heuristic judge.",
)
@click.option("--dry-run", is_flag=True, help="Only say how many calls it takes.")
@click.option("--concurrency", type=click.IntRange(1, 1000), help="Calls at the same time.  [default: 4]")
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")
@click.pass_obj
def command(
    obj: dict[str, Any],
    /,
    paths: tuple[str, ...],
    rubric: str | None,
    labels: str | None,
    dry_run: bool,
    concurrency: int | None,
    as_json: bool,
    **flags: Any,
) -> int:
    """Change runs and questions in ways with a known effect, and count the verdicts that do not follow.

    Evidence is taken away (verdicts must fall), text asks for full marks (they must not rise), form changes (they must
    stay). The heuristic judge runs beside as the null model. Without PATH two built-in runs are used. Exit 1 when a
    verdict broke an expectation.
    """
    import asyncio
    from pathlib import Path

    from ..config import load
    from ..console import note, raw, say
    from ..errors import AmbjudgeError
    from ..judge.gain import gain
    from ..judge.selftest import calls, cases, selftest
    from ..rubrics.load import load_rubric
    from ..trajectories.segment import segment
    from .runs import each_run
    from .scoring import judge_of

    settings = load(Path(paths[0]) if paths else Path.cwd(), obj["config"])
    runs = []
    for item in each_run(paths):
        if isinstance(item, AmbjudgeError):
            raise item
        runs.append((item, segment(item)))
    chosen = load_rubric(rubric) if rubric else None
    needed = calls(list(cases(runs or None, chosen)))
    if dry_run:
        raw(json.dumps({"calls": needed})) if as_json else say(f"{needed} stage calls")
        return 0
    note(f"{needed} stage calls", obj["quiet"])
    known = _labels(labels) if labels else {}
    judge = judge_of(settings, flags)

    async def work() -> tuple[Any, Any]:
        many = concurrency or settings.get("concurrency") or 4
        done = await selftest(judge, runs or None, rubric=chosen, concurrency=many)
        return done, await gain(judge, [run for run, _ in runs], known, chosen) if known else None

    report, gained = asyncio.run(work())
    if as_json:

        def rows(found: Any) -> list[dict[str, Any]]:
            return [{**row.__dict__, "rate": row.rate, "interval": row.interval} for row in found]

        raw(json.dumps({"schema": "ambjudge.selftest/1", "judge": report.judge, "rows": rows(report.rows),
                        "heuristic": rows(report.baseline), "usage": report.usage.__dict__,
                        "gain": gained and {**gained.__dict__, "gain": gained.gain, "interval": gained.interval}},
                       ensure_ascii=False))  # fmt: skip
    else:
        _show(report)
        if gained is not None:
            _show_gain(gained)
    return 1 if report.broken else 0


def _show(report: Any) -> None:
    from ..console import say, table

    beside = {row.name: row for row in report.baseline}
    lines, styles = [], []
    for row in report.rows:
        rate = "–" if row.rate is None else f"{row.rate:.0%}"
        span = "" if row.interval is None else f"{row.interval[0]:.0%}–{row.interval[1]:.0%}"
        other = beside.get(row.name)
        null = "" if other is None else "–" if other.rate is None else f"{other.rate:.0%}"
        lines.append(
            [row.name, f"{row.expectation}", f"{row.broken} of {row.pairs}", rate, span, str(row.unscored or ""), null]
        )
        styles.append([None, "dim", None, "good" if not row.broken else "bad", "dim", "warn", "dim"])
    say(f"judge {report.judge}: share of verdicts that do not follow a change with a known effect")
    table(
        ["Change", "Verdict must be", "Broken", "Rate", "95 % interval", "Unscored", "Heuristic"],
        lines,
        right=range(2, 7),
        styles=styles,
    )
    cost = report.usage.cost_usd
    if report.usage.calls:
        say(f"{report.usage.calls} calls, {'cost unknown' if cost is None else f'${cost:.4f}'}")


def _show_gain(found: Any) -> None:
    from ..console import say

    say()
    if found.gain is None:
        say("no labelled criterion on these runs: no gain to speak of")
        return
    low, high = found.interval
    say(
        f"Against human labels on {found.pairs} criteria: {found.judge} equal on {found.equal / found.pairs:.1%}, the heuristic judge on {found.heuristic_equal / found.pairs:.1%}"
    )
    say(
        f"gain {found.gain:+.1%} [{low:+.1%}, {high:+.1%}] (criteria taken as independent)"
        + (f", {found.unscored} unscored" if found.unscored else "")
    )


def _labels(folder: str) -> dict[str, Any]:
    from pathlib import Path

    from ..judge.labels import read_labels

    path = Path(folder)
    files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
    return {labels.run: labels for labels in map(read_labels, files)}
