"""ambjudge selftest: how far can a judge be trusted?"""

from __future__ import annotations

import json
from typing import Any

import click

from .. import console
from .options import (
    DRY_RUN,
    MAX_COST,
    SOURCES,
    STAGES_FROM,
    STORE,
    json_option,
    judge_of,
    judge_options,
    run_options,
)


@click.command(
    "selftest",
    epilog=(
        "\b\nExamples:\n  ambjudge selftest\n  ambjudge selftest --judge openai/my-model --api-base"
        " http://localhost:8000/v1\n  ambjudge selftest runs/ --labels labels/ --judge"
        " openai/my-model --split dev"
    ),
)
@SOURCES
@judge_options
@run_options
@click.option(
    "--labels",
    metavar="DIR|STORE",
    help="Human labels of the runs: measure the judge against them.",
)
@click.option(
    "--annotator", metavar="NAME", help="With --labels: whose.  [gold, else the first by name]"
)
@click.option(
    "--split",
    type=click.Choice(["dev", "test", "both"]),
    help="With --labels: which runs; write prompts on dev only.  [default: both]",
)
@click.option(
    "--test-share",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help="With --labels: share of runs that are test.  [default: 0.5]",
)
@STAGES_FROM
@MAX_COST
@STORE
@DRY_RUN
@click.option(
    "--concurrency", type=click.IntRange(1, 1000), help="Calls at once.  [4; --labels: 8]"
)
@json_option()
@click.pass_obj
def command(obj: dict[str, Any], /, paths: tuple[str, ...], **flags: Any) -> int:
    """How robust is a judge, and with --labels: how right?

    Evidence is taken away (verdicts must fall), text asks for full marks and for no codes (they
    must not rise), form changes (they must stay). The rules judge runs beside as the null model.
    Without PATH two built-in runs are used. Exit 1 when a verdict broke an expectation.

    With --labels the judge is asked about the labelled runs among PATH: agreement, kappa, F1 of
    codes, calibration, gain over the rules and over "always met", beside each other on a dev and a
    test split. What the store has is not asked again.
    """
    from ..errors import ConfigError

    if flags["labels"] is not None:
        from .selftest_labels import run

        return run(obj, paths, flags)
    for name in ("annotator", "split", "test_share", "stages", "max_cost", "store"):
        if flags[name] is not None:
            raise ConfigError(
                f"--{name.replace('_', '-')} belongs to the figures on labelled runs",
                "give --labels too",
            )
    return _robustness(obj, paths, flags)


def _robustness(obj: dict[str, Any], paths: tuple[str, ...], flags: dict[str, Any]) -> int:
    import asyncio

    from ..config import load
    from ..errors import AmbjudgeError
    from ..judge.base import extra_questions
    from ..judge.trust.selftest import calls, cases, selftest
    from ..rubrics.load import load_rubric
    from ..trajectories.turns.segment import segment
    from .runs import each_run

    settings = load(obj["config"])
    runs = []
    for item in each_run(paths, flags["track"], flags["tier"]):
        if isinstance(item, AmbjudgeError):
            raise item
        runs.append((item, segment(item)))
    chosen = load_rubric(flags["rubric"]) if flags["rubric"] else None
    judge = judge_of(settings, flags)
    prepared = list(cases(runs or None, chosen, extra_questions(judge)))
    needed, of_codes = (
        calls(prepared),
        calls([case for case in prepared if case.base.question == "diagnosis"]),
    )
    told = f"{needed - of_codes} stage calls" + (
        f", {of_codes} about error codes" if of_codes else ""
    )
    if flags["dry_run"]:
        console.raw(json.dumps({"calls": needed})) if flags["as_json"] else console.say(told)
        return 0
    console.note(told, obj["quiet"])
    many = flags["concurrency"] or settings.get("concurrency") or 4
    report = asyncio.run(selftest(judge, runs or None, rubric=chosen, concurrency=many))
    if flags["as_json"]:

        def rows(found: Any) -> list[dict[str, Any]]:
            return [{**row.__dict__, "rate": row.rate, "interval": row.interval} for row in found]

        console.raw(
            json.dumps(
                {
                    "schema": "ambjudge.selftest/1",
                    "judge": report.judge,
                    "rows": rows(report.rows),
                    "heuristic": rows(report.baseline),
                    "usage": report.usage.__dict__,
                },
                ensure_ascii=False,
            )
        )
    else:
        _show(report)
    return 1 if report.broken else 0


def _show(report: Any) -> None:

    beside = {row.name: row for row in report.baseline}
    lines, styles = [], []
    for row in report.rows:
        rate = "–" if row.rate is None else f"{row.rate:.0%}"
        span = "" if row.interval is None else f"{row.interval[0]:.0%}–{row.interval[1]:.0%}"
        other = beside.get(row.name)
        null = "" if other is None else "–" if other.rate is None else f"{other.rate:.0%}"
        codes = f"{row.codes_broken} of {row.codes}" if row.codes else ""
        lines.append(
            [
                row.name,
                row.expectation,
                f"{row.broken} of {row.pairs}",
                codes,
                rate,
                span,
                str(row.unscored or ""),
                null,
            ]
        )
        styles.append(
            [None, "dim", None, None, "good" if not row.broken else "bad", "dim", "warn", "dim"]
        )
    console.say(
        f"judge {report.judge}: share of verdicts that do not follow a change with a known effect"
    )
    heads = [
        "Change",
        "Verdict must be",
        "Broken",
        "Of them codes",
        "Rate",
        "95 % interval",
        "Unscored",
        "Rules",
    ]
    kept = [i for i in range(len(heads)) if any(line[i] for line in lines)]
    console.table(
        [heads[i] for i in kept],
        [[line[i] for i in kept] for line in lines],
        right=range(2, 8),
        spare=[kept.index(i) for i in (5, 3) if i in kept],
        styles=[[style[i] for i in kept] for style in styles],
    )
    console.say(
        console.wrap(
            "Unscored: pairs without two verdicts, which show nothing; Rules: rate of the judge"
            " without a model."
        )
    )
    cost = report.usage.cost_usd
    if report.usage.calls:
        console.say(
            f"{report.usage.calls} calls, {'cost unknown' if cost is None else f'${cost:.4f}'}"
        )
