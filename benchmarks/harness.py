"""Scores of random submissions: ours beside those of the public harness's own functions.

    HARNESS_CHECKOUT=DIR python benchmarks/harness.py [--n 300] [--formulas 0] [--seed 1] [--track
    NAME]

DIR holds the branches of AutoMedBench/AutoMedBench, each unpacked under its name
(`eval_seg/eval_seg/aggregate.py`, ...); their modules are imported at run time and nothing of them
is kept here. Each submission has a few cases, each right or spoiled in one way, random verdicts,
and now and then a breach. We see it three ways: files with public inputs and a report without step
scores; files and the report; the report alone. `--formulas` submissions a track and tier have right
files and are seen once, as a report alone.

The judge `reported` then scores the report's own S1 to S3. With `--policy harness` every stage,
Agentic, Task and Overall must be the harness's to the last digit it prints. By default S4, S5, Task
and the limit of S1 must be, but for submissions spoiled in a way that docs/harness.md lists: these
bear its name and are counted apart. Any other difference is printed and makes the exit code 1.
Submissions on which the harness raises are left out.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import re
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple

from ambjudge.judge.base import Reply
from ambjudge.judge.card.fields import Policy
from ambjudge.judge.engine import assemble, make_scorecard, prepare
from ambjudge.judge.judges.reported import ReportedJudge
from ambjudge.judge.questions.items import QuestionSet
from ambjudge.trajectories.models import Run
from ambjudge.trajectories.reading.harness_report import parse_report
from ambjudge.trajectories.reading.load import load_run
from harness_branches import SCORES, branch, formula
from harness_submissions import TRACKS, Judged, Submission, made


class Replies(NamedTuple):
    """Stands where a judge stands on a card."""

    name: str = "random"
    members: tuple[str, ...] = ()
    prompt_sha256: None = None
    parameters: Mapping[str, Any] = MappingProxyType({})


def card(
    run: Run,
    work: Submission,
    public: Path | None,
    like: Any,
    judged: bool,
    known: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """Our scorecard as JSON has it; `known`: of the prepared run, what need not be worked out
    again."""
    ready = prepare(
        run,
        policy=Policy(like=like),
        public=public,
        rubric=work.judged.rubric,
        questions=QuestionSet(ask_all=True),
    )
    vars(ready).update(known)
    replies = (
        {stage: Reply(results) for stage, results in work.judged.results.items()} if judged else {}
    )
    return assemble(ready, Replies(), replies).to_dict()


def printed(report: dict[str, Any]) -> dict[str, float | None]:
    """The harness's scores as our card names them."""
    total, steps = report["aggregate"], report["step_scores"]
    task = next(total[k] for k in ("clinical_score", "task_score") if k in total)
    whole = {
        "agentic": total["agentic_score"],
        "task": task,
        "overall": 100 * total["overall_score"],
    }
    return {**{stage.upper(): value for stage, value in steps.items()}, **whole}


def exact(found: dict[str, Any], report: dict[str, Any]) -> list[str]:
    """Scores that are not the harness's to the last digit."""
    shown = {
        **{stage: part["score"] for stage, part in found["stages"].items()},
        **{k: found[k] for k in ("agentic", "task", "overall")},
    }
    digits = {"overall": 2}
    return [
        f"{key} {shown[key]}, not {value}"
        for key, value in printed(report).items()
        if shown[key] != (None if value is None else round(value, digits.get(key, 4)))
    ]


def near(found: dict[str, Any], report: dict[str, Any], breach: int) -> list[str]:
    """S4, S5, Task and the limit of S1 that are not the harness's by default, and the rest where no
    listed choice stands between."""
    wanted = printed(report)
    steps = report.get("unblended", report["step_scores"])
    wanted |= {"S4": steps["s4"], "S5": steps["s5"]}
    shown = {stage: part["score"] for stage, part in found["stages"].items()}
    shown |= {k: found[k] for k in ("agentic", "task", "overall")}
    keys = ["S4", "S5", "task"] if "unblended" in report else [*wanted]
    if breach:
        keys = ["agentic", "task", "overall"]
    wrong = []
    for key in keys:
        a, b, off = (
            shown[key],
            wanted[key],
            0.3 if key == "overall" else 6e-3 if key in ("S1", "agentic") else 1e-3,
        )
        if (a is None) != (b is None) or (a is not None and b is not None and abs(a - b) > off):
            wrong.append(f"{key} {a}, the harness {b}")
    return wrong


LISTED = re.compile(r"[A-G]\d{1,2}\b")


def compare(name: str, checkout: Path, n: int, rng: random.Random, like: str) -> int:
    """Print a line of figures, and the unnamed differences; how many these are."""
    what = TRACKS[name]
    unnamed, named, raised, done = 0, Counter[str](), 0, 0
    with branch(checkout, what.branch) as load:
        for _ in range(n):
            with tempfile.TemporaryDirectory() as folder:
                work = made(name, Path(folder), rng)
                try:
                    with (
                        contextlib.redirect_stdout(io.StringIO()),
                        warnings.catch_warnings(action="ignore"),
                    ):
                        theirs = SCORES[name](load, work)
                # it has no guard against hostile files: nothing to compare with
                except Exception as error:
                    raised += 1
                    if os.environ.get("HARNESS_DEBUG"):
                        print(type(error), error, work.told)
                    continue
                done += 1
                bare = {key: value for key, value in theirs.items() if key != "step_scores"}
                run = Path(folder) / "run"
                for view, report in (("public", bare), ("files", theirs), ("report", theirs)):
                    (run / "detail_report.json").write_text(json.dumps(report))
                    if view == "report" and (run / "outputs").exists():
                        (run / "outputs").rename(work.root / "away")
                    loaded = load_run(run)
                    found = card(
                        loaded,
                        work,
                        work.public if view == "public" else None,
                        like,
                        name != "enhancement",
                    )
                    wrong = (
                        exact(found, theirs)
                        if like == "harness"
                        else near(found, theirs, work.breach)
                    )
                    if like == "harness" and view != "public":
                        again = make_scorecard(
                            loaded, ReportedJudge(), policy=Policy(like=like)
                        ).to_dict()
                        wrong += [f"reported: {line}" for line in exact(again, theirs)]
                    known = sorted(match[0] for how in work.told if (match := LISTED.match(how)))
                    if wrong and known and like != "harness":
                        named.update(known[:1])
                    elif wrong:
                        unnamed += 1
                        how = ", ".join(sorted(work.told))
                        print(
                            f"{name} {view}: {'; '.join(wrong)}: {len(work.cases)} cases, tier"
                            f" {work.tier}, breach {work.breach}, {how}"
                        )
    apart = ", ".join(f"{key} {count}" for key, count in sorted(named.items())) or "none"
    print(
        f"{name:18} like {like}: submissions {done:5} (harness raised on {raised}) unnamed"
        f" differences {unnamed}; named: {apart}"
    )
    return unnamed


def compare_formulas(name: str, checkout: Path, n: int, rng: random.Random) -> int:
    """The same for submissions without files, seen as a report alone and scored like the
    harness."""
    what, wrong_ones = TRACKS[name], 0
    with branch(checkout, what.branch) as load, tempfile.TemporaryDirectory() as folder:
        first = made(name, Path(folder), rng)
        if (Path(folder) / "run/outputs").exists():
            (Path(folder) / "run/outputs").rename(Path(folder) / "away")
        base = load_run(Path(folder) / "run")
        ready = prepare(base, policy=Policy(like="harness"), rubric=first.judged.rubric)
        known = {"segmentation": ready.segmentation, "detected": ready.detected}
        for tier in what.tiers:
            for _ in range(n):
                work = Submission(
                    Path(folder), [], tier=tier, many=first.many, quality=round(rng.random(), 4)
                )
                work.judged = Judged.of(first.judged.rubric, tier, rng)
                work.breach = rng.randint(1, 25) if what.breaches and rng.random() < 0.05 else 0
                fakes = formula(name, work, rng)

                def loaded(module: str, fakes: dict[str, SimpleNamespace] = fakes) -> Any:
                    if module in fakes and module != "run_eval":
                        return fakes[module]
                    real = load(module)
                    vars(real).update(vars(fakes.get(module, SimpleNamespace())))
                    return real

                with (
                    contextlib.redirect_stdout(io.StringIO()),
                    warnings.catch_warnings(action="ignore"),
                ):
                    theirs = json.loads(json.dumps(SCORES[name](loaded, work)))
                report = parse_report(theirs, Path(folder) / "detail_report.json", [])
                status = base.status.model_copy(
                    update={"disqualified": bool(work.breach), "breach_turn": work.breach or None}
                )
                run = base.model_copy(update={"report": report, "tier": tier, "status": status})
                found = card(run, work, None, "harness", name != "enhancement", known)
                if wrong := exact(found, theirs):
                    wrong_ones += 1
                    print(
                        f"{name} formula: {'; '.join(wrong)}: tier {tier}, breach {work.breach},"
                        f" {json.dumps(theirs)[:300]}"
                    )
    print(f"{name:18} like harness: formulas {n * len(what.tiers):6} differences {wrong_ones}")
    return wrong_ones


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--n", type=int, default=300, help="submissions a track")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--track", choices=sorted(TRACKS), action="append")
    parser.add_argument("--policy", choices=("paper", "harness"), default="paper")
    parser.add_argument(
        "--formulas",
        type=int,
        default=0,
        help="submissions a track and tier; always like the harness",
    )
    args = parser.parse_args()
    checkout = os.environ.get("HARNESS_CHECKOUT")
    if not checkout or not Path(checkout).is_dir():
        print(
            "set HARNESS_CHECKOUT to a folder with the branches of AutoMedBench/AutoMedBench",
            file=sys.stderr,
        )
        return 2
    place, wrong = Path(checkout), 0
    for name in args.track or TRACKS:
        wrong += (
            compare(name, place, args.n, random.Random(args.seed), args.policy) if args.n else 0
        )
        if args.formulas and name != "vqa open":
            wrong += compare_formulas(name, place, args.formulas, random.Random(args.seed))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
