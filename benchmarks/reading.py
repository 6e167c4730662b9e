"""What reading finds, from recorded replies of language models that saw one prompt alone: codes, criteria, stages.

    python benchmarks/reading.py                      figures of every set whose replies were recorded
    python benchmarks/reading.py --prompts DIR        write the prompts as they are now, one file each
    python benchmarks/reading.py --take DIR           keep the replies in DIR/replies beside those prompts

Sets: `recorded` (15 runs of the benchmark's shape: S1, S2, S3, diagnosis, stages), `public` (10 labelled runs of other
agents: diagnosis, stages), `constructed` (set z, 20 runs that no prompt was written on: diagnosis). A reply was made for
one prompt: the hash of its text is kept with it, and the figures say how many prompts are still the same.

Intervals: 95 %, percentile bootstrap over runs (2,000 resamples, seed 0).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ambjudge.judge.api import ApiJudge
from ambjudge.judge.base import QuestionName, Reply, Request
from ambjudge.judge.engine import Prepared, assemble, prepare
from ambjudge.judge.items import Wanted
from ambjudge.judge.scorecard import ScoreCard
from ambjudge.judge.transport import Completion
from ambjudge.trajectories.load import load_run
from ambjudge.trajectories.models import STAGES

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "tests" / "data"
REPLIES = DATA / "readings"
CODES = ("E1", "E2", "E3", "E4", "E5")
JUDGE = "openai/recorded"


@dataclass(frozen=True)
class Source:
    """A set: where its runs, labels and public inputs are, and what is asked."""

    name: str
    runs: dict[str, Path]
    """Name -> run folder."""
    labels: dict[str, Path]
    questions: tuple[QuestionName, ...]
    public: Path | None = None


@dataclass(frozen=True)
class Read:
    """One run as read: its card with the reader's word, the card without anybody reading, the labels."""

    name: str
    card: ScoreCard
    alone: ScoreCard
    """By rules and facts alone."""
    gold: dict
    replies: dict[QuestionName, Reply]


def sources() -> Iterator[Source]:
    """The sets that are on this machine."""
    recorded = DATA / "recorded"
    labels = {p.stem: p for p in sorted((recorded / "labels" / "gold").glob("*.json"))}
    runs = {name: recorded / "runs" / name for name in labels}
    yield Source("recorded", runs, labels, ("S1", "S2", "S3", "diagnosis", "stages"), recorded / "public")
    external = Path(os.environ.get("AMBJUDGE_EXTERNAL_DATA") or ROOT.parent / "shared" / "data" / "external")
    labels = {f"{p.parent.name}--{p.stem}": p for p in sorted((external.parent / "external_labels").glob("*/*.json"))}
    runs = {name: external / labels[name].parent.name / labels[name].stem for name in labels}
    if labels:
        yield Source("public", runs, labels, ("diagnosis", "stages"))
    z = DATA / "constructed" / "z"
    labels = {p.stem: p for p in sorted((z / "labels").glob("*.json"))}
    yield Source("constructed", {name: z / "runs" / name for name in labels}, labels, ("diagnosis",))


def judge() -> ApiJudge:
    """Makes prompts and reads replies; nobody is called."""
    return ApiJudge(JUDGE, "http://127.0.0.1:9/v1")


def requests(source: Source, name: str, reader: ApiJudge) -> tuple[Prepared, dict[QuestionName, Request]]:
    ready = prepare(load_run(source.runs[name]), public=source.public, wanted=Wanted(stages="judge"))
    return ready, {r.question: r for r in ready.requests(reader) if r.question in source.questions}


def prompt_of(reader: ApiJudge, request: Request) -> str:
    return "\n\n".join(f"##### {m['role'].upper()} #####\n{m['content']}" for m in reader.messages(request))


def sha(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def write_prompts(folder: Path) -> None:
    reader = judge()
    (folder / "prompts").mkdir(parents=True, exist_ok=True)
    (folder / "replies").mkdir(exist_ok=True)
    for source in sources():
        for name in source.runs:
            for question, request in requests(source, name, reader)[1].items():
                text = prompt_of(reader, request)
                (folder / "prompts" / f"{source.name}__{name}__{question}.txt").write_text(text, encoding="utf-8")


def take(folder: Path) -> None:
    """Keep every reply that stands in FOLDER/replies under its prompt's name, with the prompt's hash."""
    for path in sorted((folder / "replies").glob("*.json")):
        source, name, question = path.stem.split("__")
        prompt = (folder / "prompts" / f"{path.stem}.txt").read_text(encoding="utf-8")
        target = REPLIES / source / name / f"{question}.json"
        target.parent.mkdir(parents=True, exist_ok=True)
        kept = {"prompt_sha256": sha(prompt), "prompt_chars": len(prompt), "reply": path.read_text(encoding="utf-8")}
        target.write_text(json.dumps(kept, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def read(source: Source, reader: ApiJudge) -> tuple[list[Read], int, int]:
    """The runs with recorded replies; how many replies there are, and how many of their prompts are unchanged."""
    found, count, same = [], 0, 0
    for name in source.runs:
        ready, asked = requests(source, name, reader)
        replies: dict[QuestionName, Reply] = {}
        for question, request in asked.items():
            path = REPLIES / source.name / name / f"{question}.json"
            if not path.is_file():
                continue
            kept = json.loads(path.read_text(encoding="utf-8"))
            count += 1
            same += kept["prompt_sha256"] == sha(prompt_of(reader, request))
            replies[question] = reader.reply_to(request, [Completion(kept["reply"], "stop", None, None, None, None, None)])
        if replies:
            gold = json.loads(source.labels[name].read_text(encoding="utf-8"))
            found.append(Read(name, assemble(ready, reader, replies), assemble(ready, reader, {}), gold, replies))
    return found, count, same


def fired(card: ScoreCard, by: Callable[[str], bool] = lambda _: True) -> set[str]:
    return {c.code for c in card.codes if c.independence != "from_score" and by(c.by)}


def f1(pairs: Sequence[tuple[set[str], set[str]]]) -> float | None:
    """Micro F1 of (found, gold) sets."""
    right = sum(len(a & b) for a, b in pairs)
    wrong = sum(len(a ^ b) for a, b in pairs)
    return 2 * right / (2 * right + wrong) if right or wrong else None


def kappa(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Cohen's kappa of (judge, label) values."""
    if not pairs:
        return None
    n = len(pairs)
    agree = sum(a == b for a, b in pairs) / n
    values = {v for pair in pairs for v in pair}
    chance = sum(sum(a == v for a, _ in pairs) * sum(b == v for _, b in pairs) for v in values) / n**2
    return (agree - chance) / (1 - chance) if chance < 1 else None


def interval(runs: Sequence[Read], figure: Callable[[Sequence[Read]], float | None]) -> str:
    rng = random.Random(0)
    drawn = sorted(v for _ in range(2_000) if (v := figure(rng.choices(runs, k=len(runs)))) is not None)
    return f"[{drawn[int(0.025 * len(drawn))]:.2f}, {drawn[int(0.975 * len(drawn)) - 1]:.2f}]" if drawn else "-"


def line(title: str, runs: Sequence[Read], figure: Callable[[Sequence[Read]], float | None], more: str = "") -> None:
    value = figure(runs)
    print(f"  {title:<44}{'-' if value is None else f'{value:.3f}':>6} {interval(runs, figure):<14} {more}")


def codes_by(by: str) -> Callable[[Sequence[Read]], float | None]:
    def figure(runs: Sequence[Read]) -> float | None:
        sets = {
            "both": lambda r: fired(r.card), "read": lambda r: fired(r.card, lambda b: b.startswith("judge:")),
            "rules": lambda r: fired(r.alone),
        }  # fmt: skip
        return f1([(sets[by](r), set(r.gold["codes"])) for r in runs])

    return figure


def criteria_pairs(runs: Sequence[Read]) -> list[tuple[float, float]]:
    return [
        (c.value, gold)
        for r in runs for stage in ("S1", "S2", "S3") for c in r.card.stages[stage].criteria
        if c.status == "scored" and c.value is not None and (gold := r.gold["criteria"].get(c.id)) is not None
    ]  # fmt: skip


def stages_right(runs: Sequence[Read], card: Callable[[Read], ScoreCard] = lambda r: r.card) -> list[tuple[str, str]]:
    return [(card(r).turn_stages[int(t) - 1], s) for r in runs for t, s in r.gold["stages"].items()]


def macro_f1(pairs: Sequence[tuple[str, str]]) -> float:
    scores = []
    for stage in STAGES:
        gold, ours = sum(g == stage for _, g in pairs), sum(o == stage for o, _ in pairs)
        if gold:
            scores.append(2 * sum(o == g == stage for o, g in pairs) / (gold + ours))
    return sum(scores) / len(scores)


def report(source: Source, runs: list[Read], misses: bool) -> None:
    with_codes = [r for r in runs if "diagnosis" in r.replies]
    if with_codes:
        pairs = [(fired(r.card), set(r.gold["codes"])) for r in with_codes]
        counts = f"{sum(len(a & b) for a, b in pairs)} right, {sum(len(a - b) for a, b in pairs)} wrong, {sum(len(b - a) for a, b in pairs)} missed"
        line("codes, micro F1: facts and reading", with_codes, codes_by("both"), counts)
        line("codes, micro F1: reading alone", with_codes, codes_by("read"))
        line("codes, micro F1: nobody read", with_codes, codes_by("rules"))
        clean = [found for found, gold in pairs if not gold]
        print(f"  clean runs with a code: {sum(map(bool, clean))} of {len(clean)}")
        unproven = sum(len(r.card.unproven) for r in with_codes)
        quotes = [c.quote.check for r in with_codes for c in (*r.card.codes, *r.card.unproven) if c.quote is not None]
        print(f"  readings unproven: {unproven}; quotes of present codes found: {sum(q != 'not_found' for q in quotes)} of {len(quotes)}")
        for r, (found, gold) in zip(with_codes, pairs, strict=True):
            if misses and found != gold:
                said = "; ".join(f"{c.code} by {c.by}: {c.why}" for c in r.card.codes if c.code in found - gold)
                print(f"    {r.name}: found {sorted(found)}, labelled {sorted(gold)} {said[:300]}")
    if judged := criteria_pairs(runs):
        print(f"  criteria {len(judged)}: equal {sum(a == b for a, b in judged) / len(judged):.3f}")
        line("criteria, kappa", runs, lambda rs: kappa(criteria_pairs(rs)))
    staged = [r for r in runs if r.card.stages_from == "judge"]
    if staged:
        def accuracy(rs: Sequence[Read]) -> float:
            pairs = stages_right(rs)
            return sum(a == b for a, b in pairs) / len(pairs)

        line("stages, accuracy: reading", staged, accuracy, f"macro F1 {macro_f1(stages_right(staged)):.3f}")
        rules = stages_right(staged, lambda r: r.alone)
        print(f"  stages by rules: {sum(a == b for a, b in rules) / len(rules):.3f}, macro F1 {macro_f1(rules):.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--prompts", type=Path, metavar="DIR")
    parser.add_argument("--take", type=Path, metavar="DIR")
    parser.add_argument("--misses", action="store_true", help="name every run whose codes differ from the label")
    args = parser.parse_args()
    if args.prompts:
        return write_prompts(args.prompts)
    if args.take:
        return take(args.take)
    reader = judge()
    for source in sources():
        runs, count, same = read(source, reader)
        if runs:
            print(f"{source.name}: {len(runs)} runs, {count} replies, {same} of them to prompts as they are now")
            report(source, runs, args.misses)
    return None


if __name__ == "__main__":
    main()
