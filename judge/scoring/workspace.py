"""What the public harness's vqa branch reads in an agent's workspace (`--policy harness` alone).

The facts follow inference_verifier.py and tool_usage.py of AutoMedBench/AutoMedBench, branch
eval_vqa. No code of the agent is run: answer_postprocess.py, which the branch imports and calls,
counts if it parses and defines `postprocess`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
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
_LOADING_OUTPUT = (
    "Loading checkpoint shards",
    "Downloading shards",
    "model.safetensors",
    "pytorch_model.bin",
    "Loading weights",
)
_CALLS = (".generate(", "model.generate")
_STAND_INS = ("heuristic:", "fallback:", "placeholder:", "mock:")
_NO_GOLD = frozenset({"", "unknown", "n/a", "na", "none", "null", "?", "-"})
_MIN_RECORDS = 10
"""Calibration records that the branch requires."""
_MAX_SPOILED = 0.2
"""Share of them that may lack a gold answer or raw output."""
_MIN_SMOKE_S = 0.3
_MIN_SAMPLE = 5
"""Characters of a raw output from which it counts."""
_PREVIEW = 200
"""Characters of an execution's output that the runner keeps."""
USAGE = 0.2
"""Weight of tool usage in the S3 and S4 that the branch reports."""


@dataclass(frozen=True)
class Workspace:
    """What replaces S2, and what is blended into S3 and S4 after Agentic is computed."""

    called: bool | None
    """A model was loaded and called; None if unknown."""
    smoke: bool | None
    """A smoke test of a forward pass on CUDA succeeded; None if unknown."""
    artefacts: bool | None
    """There is a postprocessor and enough calibration records; None if unknown."""
    inspected: bool | None
    """The agent looked at an image; None if unknown."""
    submitted: float | None
    """Successful submit_answer calls per expected case, at most 1; None if unknown."""


def workspace_of(run: Run, expected: int | None) -> Workspace:
    """By the files beside the answers; without files, by the report."""
    root = run.outputs.root
    if root is None:
        return _reported_workspace(run)
    folders = (root,) if root.parent == run.folder else (root, root.parent)

    def find(name: str) -> Path:
        for folder in folders:
            if (folder / name).is_file():
                return folder / name
        return root / name

    calls = list(_json_lines(find("tool_calls.jsonl"), run.folder))
    submissions = sum(
        call.get("tool") == "submit_answer" and _status(call) == "ok" for call in calls
    )
    has_postprocessor = _defines_postprocess(find("answer_postprocess.py"), run.folder)
    calibration = _json_or_none(find("s3_calibration.json"), run.folder)
    return Workspace(
        called=_is_model_called(run) is True,
        smoke=_smoke_passed(_json_or_none(find("smoke_forward.json"), run.folder)),
        artefacts=has_postprocessor and _is_calibrated(calibration),
        inspected=any(call.get("tool") == "inspect_image" for call in calls),
        submitted=_coverage(submissions, expected),
    )


def _reported_workspace(run: Run) -> Workspace:
    """By the report; whether a model was called, also by the conversation."""
    metrics: Mapping[str, Any] = {} if run.report is None else run.report.metrics
    called = _flag(metrics, "model_call_detected")
    usage = metrics.get("tool_usage")
    if not isinstance(usage, dict):
        usage = {}
    inspected = usage.get("inspect_used")
    return Workspace(
        called=_is_model_called(run) if called is None else called,
        smoke=_flag(metrics, "smoke_forward_passed"),
        artefacts=_flag(metrics, "postprocess_valid"),
        inspected=inspected if isinstance(inspected, bool) else None,
        submitted=_coverage(
            number(usage.get("submit_answer_ok")), number(usage.get("expected_samples"))
        ),
    )


def _flag(metrics: Mapping[str, Any], name: str) -> bool | None:
    value = metrics.get(name)
    return value if isinstance(value, bool) else None


def _coverage(submissions: float | None, expected: float | None) -> float | None:
    if submissions is None or expected is None:
        return None
    return min(1.0, max(0.0, submissions) / max(1.0, expected))


def _is_model_called(run: Run) -> bool | None:
    """Whether executions that ended with 0 contain a call, and a loader or its output.

    None if no execution has a known outcome.
    """
    loaded = called = any_outcome = False
    for _, action in run.actions():
        observation = action.observation
        if action.kind != "execute" or observation is None:
            continue
        any_outcome = any_outcome or observation.kind != "unknown"
        if observation.exit_code != 0:
            continue
        output = observation.stdout[:_PREVIEW]
        text = f"{action.code}\n{output}"
        loaded = loaded or any(marker in text for marker in _LOADERS)
        loaded = loaded or any(marker in output for marker in _LOADING_OUTPUT)
        called = called or any(marker in text for marker in _CALLS)
    return (loaded and called) if any_outcome else None


def _json_or_none(path: Path, root: Path) -> Any:
    try:
        return read_json(path, root, allow_bom=False)
    except Refused:
        return None


def _json_lines(path: Path, root: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSON Lines file; lines that hold none are skipped."""
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


def _status(call: dict[str, Any]) -> Any:
    summary = call.get("result_summary")
    return summary.get("status") if isinstance(summary, dict) else None


def _smoke_passed(record: Any) -> bool:
    """Whether a forward pass on CUDA took at least 0.3 s and gave a raw output, not a stand-in."""
    if not isinstance(record, dict) or not record.get("success") or "model_name" not in record:
        return False
    seconds = record.get("wall_s")
    sample = str(record.get("raw_output_sample") or "").strip()
    return (
        isinstance(seconds, int | float)
        and seconds >= _MIN_SMOKE_S
        and len(sample) >= _MIN_SAMPLE
        and not sample.lower().startswith(_STAND_INS)
        and "cuda" in str(record.get("device") or "").lower()
    )


def _defines_postprocess(path: Path, root: Path) -> bool:
    try:
        tree = parse(read_text(path, root))
    except Refused:
        return False
    return tree is not None and any(
        isinstance(node, ast.FunctionDef) and node.name == "postprocess" for node in tree.body
    )


def _is_calibrated(records: Any) -> bool:
    """Whether there are ten records with the three keys, few of them without gold or raw output."""
    if not isinstance(records, list) or len(records) < _MIN_RECORDS:
        return False
    keys = {"question_id", "raw_model_output", "predicted_answer"}
    if not all(isinstance(record, dict) and keys <= record.keys() for record in records):
        return False
    without_gold = sum(
        record.get("gold_answer") is not None and not _is_gold(record["gold_answer"])
        for record in records
    )
    without_raw = sum(not _is_raw(record["raw_model_output"]) for record in records)
    return max(without_gold, without_raw) / len(records) <= _MAX_SPOILED


def _is_gold(value: Any) -> bool:
    return isinstance(value, str) and value.strip().lower() not in _NO_GOLD


def _is_raw(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    text = value.strip()
    return len(text) >= _MIN_SAMPLE and text[0] not in ",.;:!?-"
