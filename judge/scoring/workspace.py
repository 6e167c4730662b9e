"""What the runner of the public harness's vqa branch finds in an agent's workspace, and does with
it (`--policy harness`).

Facts after inference_verifier.py and tool_usage.py of AutoMedBench/AutoMedBench, branch eval_vqa.
Nothing of the agent's is run: answer_postprocess.py counts when it parses and defines
`postprocess`, which the branch imports and calls.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...trajectories.models import Run
from ...trajectories.reading.json_bytes import number, parse_json
from ...trajectories.turns.python_code import parse
from ..checks.untrusted_files import Refused, read_data, read_json, read_text

_LOADERS = (
    ".from_pretrained(",
    "pipeline(",
    "load_pretrained_model(",
    "snapshot_download(",
    "AutoProcessor",
    "LlavaProcessor",
    "AutoModelForVision2Seq",
    "AutoModelForCausalLM",
    "LlavaMistralForCausalLM",
    "LlavaForConditionalGeneration",
    "Qwen2VLForConditionalGeneration",
)
_PRINTED = (
    "Loading checkpoint shards",
    "Downloading shards",
    "model.safetensors",
    "pytorch_model.bin",
    "Loading weights",
)
_CALLS = (".generate(", "model.generate")
_STAND_INS = ("heuristic:", "fallback:", "placeholder:", "mock:")
_NO_GOLD = frozenset({"", "unknown", "n/a", "na", "none", "null", "?", "-"})
_RECORDS, _SPOILED = 10, 0.2
"""Calibration records needed, and the share of them that may lack gold or raw output."""
_SMOKE_S = 0.3
_PREVIEW = 200
"""Characters of its output that the runner keeps of an execution."""
USAGE = 0.2
"""Weight of tool usage in the S3 and S4 that the branch reports."""


@dataclass(frozen=True)
class Workspace:
    """What stands for S2, and what is blended into S3 and S4 after Agentic is computed; None where
    nobody says."""

    called: bool
    smoke: bool
    artefacts: bool
    inspected: bool | None
    submitted: float | None
    """submit_answer calls that went well, per expected case, at most 1."""


def workspace_of(run: Run, expected: int | None) -> Workspace:
    """By the files beside the answers; without files by the report."""
    metrics = run.report.metrics if run.report is not None else {}
    if run.outputs.root is None:
        usage = metrics.get("tool_usage")
        usage = usage if isinstance(usage, dict) else {}
        inspected = usage.get("inspect_used")
        return Workspace(
            called=metrics.get("model_call_detected") is True,
            smoke=metrics.get("smoke_forward_passed") is True,
            artefacts=metrics.get("postprocess_valid") is True,
            inspected=inspected if isinstance(inspected, bool) else None,
            submitted=_coverage(
                number(usage.get("submit_answer_ok")), number(usage.get("expected_samples"))
            ),
        )
    root = run.outputs.root
    places = (root, root.parent) if root.parent != run.folder else (root,)

    def file(name: str) -> Path:
        return next((place / name for place in places if (place / name).is_file()), root / name)

    records = list(_lines(file("tool_calls.jsonl"), run.folder))
    sent = sum(1 for r in records if r.get("tool") == "submit_answer" and _status(r) == "ok")
    return Workspace(
        called=_called(run),
        smoke=_smoke(_object(file("smoke_forward.json"), run.folder)),
        artefacts=_defines(file("answer_postprocess.py"), run.folder)
        and _calibrated(_object(file("s3_calibration.json"), run.folder)),
        inspected=any(r.get("tool") == "inspect_image" for r in records),
        submitted=_coverage(sent, expected),
    )


def _coverage(sent: float | None, expected: float | None) -> float | None:
    return (
        None if sent is None or expected is None else min(1.0, max(0.0, sent) / max(1.0, expected))
    )


def _called(run: Run) -> bool:
    """A call and a loader, or what loading prints, in the code or output of executions that ended
    with 0."""
    loads = calls = False
    for _, action in run.actions():
        seen = action.observation
        if action.kind == "execute" and seen is not None and seen.exit_code == 0:
            printed = seen.stdout[:_PREVIEW]
            text = f"{action.code}\n{printed}"
            loads = loads or any(m in text for m in _LOADERS) or any(m in printed for m in _PRINTED)
            calls = calls or any(m in text for m in _CALLS)
    return loads and calls


def _object(path: Path, root: Path) -> Any:
    try:
        return read_json(path, root, allow_bom=False)
    except Refused:
        return None


def _lines(path: Path, root: Path) -> Iterator[dict[str, Any]]:
    try:
        data = read_data(path, root)
    except Refused:
        return
    for line in data.splitlines():
        try:
            value = parse_json(line.decode(), path) if line.strip() else None
        except (InputError, UnicodeDecodeError):
            continue
        if isinstance(value, dict):
            yield value


def _status(record: dict[str, Any]) -> Any:
    summary = record.get("result_summary")
    return summary.get("status") if isinstance(summary, dict) else None


def _smoke(record: Any) -> bool:
    """A forward pass on CUDA of at least 0.3 s with a raw output of 5 characters that is no
    stand-in."""
    if not isinstance(record, dict) or not record.get("success") or "model_name" not in record:
        return False
    seconds, sample = record.get("wall_s"), str(record.get("raw_output_sample") or "").strip()
    long_enough = isinstance(seconds, int | float) and seconds >= _SMOKE_S
    real = len(sample) >= 5 and not sample.lower().startswith(_STAND_INS)
    return long_enough and real and "cuda" in str(record.get("device") or "").lower()


def _defines(path: Path, root: Path) -> bool:
    try:
        tree = parse(read_text(path, root))
    except Refused:
        return False
    return tree is not None and any(
        isinstance(node, ast.FunctionDef) and node.name == "postprocess" for node in tree.body
    )


def _calibrated(records: Any) -> bool:
    """At least ten records with the three keys, at most a fifth of them with a gold answer or a raw
    output that is none."""
    if not isinstance(records, list) or len(records) < _RECORDS:
        return False
    needed = {"question_id", "raw_model_output", "predicted_answer"}
    if not all(isinstance(record, dict) and needed <= record.keys() for record in records):
        return False
    gold = sum(
        record.get("gold_answer") is not None and not _is_gold(record["gold_answer"])
        for record in records
    )
    raw = sum(not _is_raw(record["raw_model_output"]) for record in records)
    return max(gold, raw) / len(records) <= _SPOILED


def _is_gold(value: Any) -> bool:
    return isinstance(value, str) and value.strip().lower() not in _NO_GOLD


def _is_raw(value: Any) -> bool:
    return isinstance(value, str) and len(value.strip()) >= 5 and value.strip()[0] not in ",.;:!?-"
