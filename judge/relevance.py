"""Which turns matter to the verdict on a stage, judged from the trace alone.

The stage's own turns come first. Others matter when they do something that the rubrics of that stage ask about (paper
table 7 and table 14): a plan is written, weights are loaded, inputs are compared with the model, outputs are checked.
The criteria's text plays no part, so that evidence does not change when a rubric is reworded.
"""

from __future__ import annotations

import re
from typing import Final

from ..trajectories.models import STAGES, Run, Segmentation, Stage, Turn

OWN: Final = 4.0
"""Score of a turn for being of the stage itself."""
RELEVANT: Final = 2.0
"""From this score on, leaving a turn out can change a verdict."""

_PLAN = re.compile(r"plan\.(?:md|png)", re.IGNORECASE)
_PLAN_WRITE = re.compile(r">>?\s*\S*plan\.md|open\([^)\n]*plan\.md[^)\n]*['\"][wa]|plan\.md['\"]?\)?\.write|savefig|tee\s+\S*plan\.md", re.IGNORECASE)  # fmt: skip
_RESEARCH = re.compile(r"model[_ ]?cards?|README|candidat|compar|alternativ|\bzoo\b|huggingface|arxiv", re.IGNORECASE)
_ENVIRONMENT = re.compile(
    r"pip3?\s+(?:install|list|show|freeze)|conda\s|apt(?:-get)?\s+install|nvidia-smi|nproc|free\s+-|df\s+-|"
    r"__version__|cuda\.is_available|sys\.version|python3?\s+(?:-V|--version)|which\s+python|get_num_threads",
    re.IGNORECASE,
)
_WEIGHTS = re.compile(
    r"from_pretrained|load_state_dict|torch\.load|hf_hub_download|snapshot_download|load_model|joblib\.load|pickle\.load|"
    r"onnxruntime|InferenceSession|wget\s|curl\s|keys matched",
    re.IGNORECASE,
)
_WEIGHT_FILE = re.compile(r"\w\.(?:pth?|ckpt|safetensors|onnx|h5|gguf|joblib|pkl)\b", re.IGNORECASE)
_COMPATIBLE = re.compile(
    r"\.shape|\.dtype|zooms|affine|spacing|orientation|aff2axcodes|header|\.mode\b|\.size\b|\bdtype\b|\bmin\(|\bmax\(|"
    r"questions?\.json|manifest|\.keys\(\)",
    re.IGNORECASE,
)
_PROPERTIES = tuple(
    re.compile(words, re.IGNORECASE)
    for words in (
        r"\.shape|\.size\b",
        r"dtype|\.mode\b",
        r"zooms|spacing|pixdim",
        r"affine|axcodes|orientation",
        r"\bmin\b|\bmax\b|percentile|\bmean\(",
        r"\.keys\(\)|columns|schema|manifest",
    )
)
"""Properties of an input that decide whether a model can take it (paper table 7, S2b of the tracks)."""
_BROKEN_SETUP = re.compile(
    r"ModuleNotFoundError|ImportError|No module named|No matching distribution|CUDA|out of memory|FileNotFoundError|"
    r"Connection|Temporary failure|size mismatch|Missing key|Unexpected key|permission denied|command not found",
    re.IGNORECASE,
)
_FORWARD = re.compile(r"no_grad|\.eval\(\)|inference_mode|\.predict\(|model\(|\bnet\(|\bm\(|\.generate\(|pipeline\(")
_PILOT = re.compile(r"\bpilot|\bsmoke|\bsanity|one (?:case|image|patient|study|question)|\[:[1-5]\]|first (?:case|image|patient)", re.IGNORECASE)  # fmt: skip
_CHECK = re.compile(
    r"\bassert\b|np\.unique|\.unique\(|isnan|isfinite|allclose|==\s*\w+\.shape|\bshape\b.*\bdtype\b|\bmin\b.*\bmax\b|"
    r"std\(|psnr|ssim|dice|\biou\b|\bokay?\b|\bvalid|\bcheck|verif|inspect|savefig|imsave|distribution|Counter\(",
    re.IGNORECASE,
)


def relevance(run: Run, segmentation: Segmentation, stage: Stage) -> tuple[float, ...]:
    """One score a turn, in order; at or above `RELEVANT` when the stage's verdict can rest on the turn."""
    stages = segmentation.turn_stages
    first_run = next((i for i, s in enumerate(stages) if s in ("S3", "S4")), None)
    pilots = any(s == "S3" for s in stages)
    return tuple(
        (OWN if stages[place] == stage else 0.0) + _score(run, turn, stages[place], stage, place == first_run, pilots)
        for place, turn in enumerate(run.turns)
    )


def _score(run: Run, turn: Turn, own: Stage, stage: Stage, first_run: bool, pilots: bool) -> float:
    code, output, text = (_clip(x) for x in (turn.code, turn.output, turn.text))
    if stage == "S1":
        return _planning(run, turn, own, code, text)
    if stage == "S2":
        return _setup(turn, own, code, output, first_run)
    if stage == "S3":
        return _validation(own, code, output, text, first_run, pilots)
    # S4 and S5 are decided from files; neighbours of the stage are all there is to show.
    return 1.0 if abs(STAGES.index(own) - STAGES.index(stage)) == 1 else 0.0


def _clip(text: str) -> str:
    """Head and tail of a very long text: the patterns above are not linear in one endless line."""
    return text if len(text) <= 20_000 else f"{text[:10_000]}\n{text[-10_000:]}"


def _planning(run: Run, turn: Turn, own: Stage, code: str, text: str) -> float:
    score = 0.0
    if turn.index in (run.plan.turn, run.plan.image_turn) or _PLAN_WRITE.search(code) or _writes_plan(turn):
        score += 2.5 if own == "S5" else 5.0  # a plan edited while handing over is bookkeeping
    elif _PLAN.search(code) or _PLAN.search(text):
        score += 1.5
    if turn.index <= 2:
        score += 1.0
    if own == "S1" and _COMPATIBLE.search(code):
        score += 1.0  # inputs are opened to understand the task
    if _RESEARCH.search(code) or _RESEARCH.search(text):
        score += 1.0
    return score


def _writes_plan(turn: Turn) -> bool:
    return any(a.kind in ("write", "edit") and a.path is not None and _PLAN.search(a.path) for a in turn.actions)


def _setup(turn: Turn, own: Stage, code: str, output: str, first_run: bool) -> float:
    score = 0.0
    if _WEIGHTS.search(code):
        score += 1.0
    if own in ("S1", "S2") and _WEIGHT_FILE.search(output):
        score += 1.0  # a listing shows which weights there are
    if _ENVIRONMENT.search(code) and own in ("S1", "S2"):
        score += 0.5
    if _COMPATIBLE.search(code) and own in ("S1", "S2", "S3"):
        score += 1.0
        if sum(bool(p.search(code)) for p in _PROPERTIES) >= 3:
            score += 1.0  # inputs are inspected in earnest, not in passing
    if turn.failed and _BROKEN_SETUP.search(output):
        score += 1.5
    if turn.index == 1:
        score += 1.0  # what the machine and the inputs are like is seen first
    if first_run:
        score += 2.0  # the first forward pass shows whether the set-up works
    elif own == "S3" and _FORWARD.search(code):
        score += 0.5
    return score


def _validation(own: Stage, code: str, output: str, text: str, first_run: bool, pilots: bool) -> float:
    score = 0.0
    if own == "S4":
        score += 1.5 if pilots else 3.0  # without a pilot, the batch itself is what there is to judge
    if own == "S5":
        score += 0.5 if pilots else 1.5
    if first_run:
        score += 1.0
    if _PILOT.search(code) or _PILOT.search(text):
        score += 1.0 if own in ("S2", "S3", "S4") else 0.25
    if _CHECK.search(code):
        score += 1.0 if own in ("S3", "S4", "S5") else 0.25
    if not output.strip():
        score -= 0.5
    return score
