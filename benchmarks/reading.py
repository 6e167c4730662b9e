"""What reading finds, from recorded replies of language models that saw one prompt alone: codes,
criteria, stages.

    python benchmarks/reading.py                      figures of every set whose replies were
    recorded
    python benchmarks/reading.py --prompts DIR        write the prompts as they are now, one file
    each
    python benchmarks/reading.py --take DIR           keep the replies in DIR/replies beside those
    prompts

Sets: `recorded` (15 runs of the benchmark's shape: S1, S2, S3, diagnosis, stages), `public` (10
labelled runs of other agents: diagnosis, stages), `constructed-z` and `constructed-x` (20 and 23
runs that no prompt was written on: diagnosis). A reply was made for one prompt: the hash of its
text is kept with it, and the figures say how many prompts are still the same.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ambjudge.judge.base import JudgeWrapper, QuestionName, Reply, Request
from ambjudge.judge.card.stage_results import unscored
from ambjudge.judge.engine import PreparedRun, prepare
from ambjudge.judge.judges.api.answers import Completion
from ambjudge.judge.judges.api.judge import ApiJudge
from ambjudge.judge.questions.items import QuestionSet
from ambjudge.judge.trust.against_labels import compare_run
from ambjudge.judge.trust.comparison import RunComparison, figures
from ambjudge.judge.trust.human_labels import parse_labels
from ambjudge.judge.trust.measures import Figure
from ambjudge.trajectories.reading.load import load_run
from labelled_runs import LabelledRun, constructed, external, recorded

REPLIES = Path(__file__).resolve().parents[1] / "tests" / "data" / "readings"
FLOORS = {
    "recorded": {"codes": 0.92, "kappa": 0.75},
    "public": {"codes": 0.65, "stages": 0.85},
    "constructed-z": {"codes": 0.85},
    "constructed-x": {"codes": 0.85},
}
"""What reading is to reach; the command fails below."""
JUDGE = "openai/recorded"


@dataclass(frozen=True)
class Source:
    """A set: where its runs, labels and public inputs are, and what is asked."""

    name: str
    runs: dict[str, Path]
    """Name -> run folder."""
    labels: dict[str, dict[str, Any]]
    questions: tuple[QuestionName, ...]
    public: Path | None = None

    @cached_property
    def name_of(self) -> dict[Path, str]:
        return {folder.resolve(): name for name, folder in self.runs.items()}


class Recorded(JudgeWrapper):
    """The judge that these replies are of: they are read as a live call's would be; nobody is
    called."""

    def __init__(self, source: Source) -> None:
        super().__init__(ApiJudge(JUDGE, "http://127.0.0.1:9/v1"))
        self.source, self.count, self.same = source, 0, 0

    @property
    def questions(self) -> frozenset[QuestionName]:
        return frozenset(self.source.questions)

    def evidence_sha256(self, request: Request) -> str:
        return self.inner.evidence_sha256(request)

    def kept(self, request: Request) -> Path:
        return (
            REPLIES
            / self.source.name
            / self.source.name_of[request.run.folder.resolve()]
            / f"{request.question}.json"
        )

    async def judge(self, request: Request) -> Reply:
        assert isinstance(self.inner, ApiJudge)
        path = self.kept(request)
        if not path.is_file():
            return Reply(unscored(request.criteria, "judge_error", "no reply was recorded"))
        kept = json.loads(path.read_text(encoding="utf-8"))
        self.count += 1
        self.same += kept["prompt_sha256"] == sha(prompt_of(self.inner, request))
        return self.inner.reply_from(request, [Completion(kept["reply"], "stop")])


def sources() -> Iterator[Source]:
    """The sets that are on this machine."""
    found = recorded()
    yield _source(
        "recorded",
        {run.name: run for run in found},
        ("S1", "S2", "S3", "diagnosis", "stages"),
        found[0].public,
    )
    if public := {f"{run.folder.parent.name}--{run.name}": run for run in external()}:
        yield _source("public", public, ("diagnosis", "stages"))
    for name in ("z", "x"):
        yield _source(
            f"constructed-{name}", {run.name: run for run in constructed(name)}, ("diagnosis",)
        )


def _source(
    name: str,
    runs: dict[str, LabelledRun],
    questions: tuple[QuestionName, ...],
    public: Path | None = None,
) -> Source:
    folders, labels = (
        {key: run.folder for key, run in runs.items()},
        {key: run.label for key, run in runs.items()},
    )
    return Source(name, folders, labels, questions, public)


def prepared(source: Source, name: str) -> PreparedRun:
    # The replies were recorded before facts decided anything: they answer every criterion.
    questions = QuestionSet(
        stages="judge" if "stages" in source.questions else "rules", ask_all=True
    )
    return prepare(load_run(source.runs[name]), public=source.public, questions=questions)


def prompt_of(reader: ApiJudge, request: Request) -> str:
    return "\n\n".join(
        f"##### {m['role'].upper()} #####\n{m['content']}" for m in reader.messages(request)
    )


def sha(text: str) -> str:
    """Of a prompt, the key of its fence cut to the ten digits that it had when the replies were
    recorded."""
    if key := re.search(r"^<<<RECORD (\w{10})(\w+)$", text, re.MULTILINE):
        text = text.replace(key[1] + key[2], key[1])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def write_prompts(folder: Path) -> None:
    (folder / "prompts").mkdir(parents=True, exist_ok=True)
    (folder / "replies").mkdir(exist_ok=True)
    for source in sources():
        judge = Recorded(source)
        assert isinstance(judge.inner, ApiJudge)
        for name in source.runs:
            for request in prepared(source, name).requests(judge):
                file = folder / "prompts" / f"{source.name}__{name}__{request.question}.txt"
                file.write_text(prompt_of(judge.inner, request), encoding="utf-8")


def take(folder: Path) -> None:
    """Keep every reply that stands in FOLDER/replies under its prompt's name, with the prompt's
    hash."""
    for path in sorted((folder / "replies").glob("*.json")):
        source, rest = path.stem.split("__", 1)
        name, question = rest.rsplit("__", 1)
        prompt = (folder / "prompts" / f"{path.stem}.txt").read_text(encoding="utf-8")
        target = REPLIES / source / name / f"{question}.json"
        target.parent.mkdir(parents=True, exist_ok=True)
        kept = {
            "prompt_sha256": sha(prompt),
            "prompt_chars": len(prompt),
            "reply": path.read_text(encoding="utf-8"),
        }
        target.write_text(json.dumps(kept, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


async def read(source: Source) -> tuple[list[RunComparison], Recorded]:
    """The labelled runs that have recorded replies, beside their labels."""
    judge, found = Recorded(source), []
    for name, label in source.labels.items():
        if (REPLIES / source.name / name).is_dir():
            found.append(await compare_run(prepared(source, name), parse_labels(label), judge))
    return found, judge


def line(title: str, figure: Figure, floor: float | None = None, more: str = "") -> bool:
    """Print a figure; whether it is at least its floor."""
    value = math.nan if figure.value is None else figure.value
    span = (
        "" if figure.interval is None else f"[{figure.interval[0]:.2f}, {figure.interval[1]:.2f}]"
    )
    wanted = "" if floor is None else f"  target {floor:.2f}{'' if value >= floor else ': MISSED'}"
    print(f"  {title:<44}{value:6.3f} {span:<14} n {figure.n:<5}{more}{wanted}")
    return floor is None or value >= floor


def report(source: Source, runs: list[RunComparison], misses: bool) -> bool:
    found, floors, good = figures(runs), FLOORS.get(source.name, {}), True
    if found.codes is not None:
        for by, title in (
            ("both", "facts and reading"),
            ("reading", "reading alone"),
            ("facts", "nobody read"),
        ):
            codes = found.codes[by]  # type: ignore[index]
            more = (
                f"precision {codes.micro.precision.value or 0:.2f}, recall"
                f" {codes.micro.recall.value or 0:.2f}"
            )
            good &= line(
                f"codes, micro F1: {title}",
                codes.micro.f1,
                floors.get("codes") if by == "both" else None,
                more,
            )
        clean = found.codes["both"].clean
        print(f"  clean runs with a code: {round((clean.value or 0) * clean.n)} of {clean.n}")
        for code, each in found.codes["both"].by_code.items():
            print(f"    {code}: precision {_of(each.precision)}, recall {_of(each.recall)}")
    if found.reading is not None:
        reading = found.reading
        print(
            f"  quotes of present codes found {_of(reading.quotes)}, unproven {reading.unproven},"
            f" cannot tell {reading.cannot_tell}; expected calibration error"
            f" {reading.calibration.ece or 0:.3f}"
        )
    if found.criteria is not None:
        line("criteria equal to the label", found.criteria.overall.equal)
        good &= line("criteria, kappa", found.criteria.overall.kappa, floors.get("kappa"))
        line("gain over the rules", found.criteria.over_rules)
        line("gain over 'always met'", found.criteria.over_always_met)
    for by in ("reading", "rules"):
        if found.stages is not None:
            each = found.stages[by]  # type: ignore[index]
            floor = floors.get("stages") if by == "reading" else None
            good &= line(
                f"stages, accuracy: {by}",
                each.accuracy,
                floor,
                f"macro F1 {each.macro_f1.value or 0:.3f}",
            )
    for run in runs if misses else ():
        if run.codes is not None and run.codes.fired["both"] != run.codes.labelled:
            print(
                f"    {run.run}: found {sorted(run.codes.fired['both'])}, labelled"
                f" {sorted(run.codes.labelled)}"
            )
        for item in run.criteria:
            if item.value != item.label:
                print(f"    {run.run} {item.id}: {item.value}, labelled {item.label}")
    return good


def _of(figure: Figure) -> str:
    return "-" if figure.value is None else f"{round(figure.value * figure.n)}/{figure.n}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--prompts", type=Path, metavar="DIR")
    parser.add_argument("--take", type=Path, metavar="DIR")
    parser.add_argument(
        "--misses", action="store_true", help="name every run whose codes differ from the label"
    )
    args = parser.parse_args()
    if args.prompts:
        write_prompts(args.prompts)
        return 0
    if args.take:
        take(args.take)
        return 0
    good = True
    for source in sources():
        runs, judge = asyncio.run(read(source))
        if runs:
            print(
                f"{source.name}: {len(runs)} runs, {judge.count} replies, {judge.same} of them to"
                " prompts as they are now"
            )
            good &= report(source, runs, args.misses)
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
