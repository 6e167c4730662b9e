"""Targets of `fuzz.py`: logs of other harnesses, one target a format, through import into a run
that is loaded again."""

from __future__ import annotations

import io
import json
import random
import shutil
import zipfile
from functools import cache, partial
from pathlib import Path
from typing import Any

from ambjudge.errors import AmbjudgeError
from fuzz_inputs import DATA, Place, Target, mutated

IMPORTS = DATA / "imports"
_HARBOR = IMPORTS / "harbor-raw" / "kidney__raw1"
_BENCH = IMPORTS / "terminal-bench"
FILES = {
    "inspect": ["inspect.json"],
    "atif": sorted(str(path.relative_to(IMPORTS)) for path in IMPORTS.glob("harbor*/**/*.json")),
    "codex": ["codex/rollout-2026-01-05T10-00-00-0199.jsonl", "codex-exec/exec-0199.jsonl"],
    "otel": ["otel/langfuse.json", "otel/phoenix.jsonl", "otel/traces.json"],
    "openhands": ["openhands.json"],
    "swe-agent": ["swe-agent.traj", "mini-swe-agent/kidney.traj.json"],
    "parquet": ["openai.json", "openhands.json", "anthropic.json"],
    "terminal-bench": sorted(
        str(path.relative_to(IMPORTS)) for path in _BENCH.rglob("*") if path.is_file()
    ),
    "chat": ["openai.json", "anthropic.json", "responses.json", "claude-code.jsonl"],
}
"""Target -> the samples that its inputs are made from."""


def _read(name: str, path: Path, place: Place, rng: random.Random) -> None:
    """Import a file as the command does: recognise, read, save, load; now and then also export."""
    from ambjudge.trajectories.importers import IMPORTERS
    from ambjudge.trajectories.importers.exporters import EXPORTERS
    from ambjudge.trajectories.importers.recognise import recognise
    from ambjudge.trajectories.importers.saving import FolderNames, save_run
    from ambjudge.trajectories.reading.load import load_conversation

    found, names = recognise(path), FolderNames()
    for draft in IMPORTERS.get(found if found and rng.random() < 0.2 else name).read(path):
        if isinstance(draft, AmbjudgeError):
            continue
        if isinstance(draft, Exception):
            raise draft
        try:
            written = save_run(
                draft, place.folder / "new" / names.assign(draft.name), path, force=True
            )
            load_conversation(written).model_dump_json()
            if rng.random() < 0.1:
                json.dumps(EXPORTERS.get(rng.choice(EXPORTERS.names))(draft))
        except AmbjudgeError as error:
            if "internal error" in str(error):
                raise
    shutil.rmtree(place.folder / "new", ignore_errors=True)


def _alone(name: str, suffix: str, place: Place, data: bytes, rng: random.Random) -> None:
    _read(name, place.put(f"theirs{suffix}", data), place, rng)


def _chat(place: Place, data: bytes, rng: random.Random) -> None:
    _alone(
        rng.choice(("openai", "anthropic", "responses", "claude-code", "conversation")),
        ".jsonl",
        place,
        data,
        rng,
    )


def _swe_agent(place: Place, data: bytes, rng: random.Random) -> None:
    _alone(rng.choice(("swe-agent", "mini-swe-agent")), ".traj.json", place, data, rng)


def _inspect(place: Place, data: bytes, rng: random.Random) -> None:
    """As JSON, or as a zip of its parts, which may be broken too."""
    if rng.random() < 0.5:
        _alone("inspect", ".json", place, data, rng)
        return
    packed = io.BytesIO()
    try:
        log = json.loads(data)
        samples = log.pop("samples")
        parts = {f"samples/{n}_epoch_1.json": sample for n, sample in enumerate(samples)}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        log, parts = {}, {"samples/1_epoch_1.json": data.decode("utf-8", "replace")}
    with zipfile.ZipFile(
        packed, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    ) as archive:
        for part, value in {"header.json": log, **parts}.items():
            archive.writestr(part, json.dumps(value))
    whole = packed.getvalue()
    whole = mutated(whole, rng, [whole]) if rng.random() < 0.5 else whole
    _alone("inspect", ".eval", place, whole, rng)


def _parquet(place: Place, data: bytes, rng: random.Random) -> None:
    """The value as columns, as far as there are such; else, or broken, bytes of a whole file."""
    whole = _table(data) or _table((IMPORTS / "openai.json").read_bytes()) or b""
    whole = mutated(whole, rng, [whole]) if rng.random() < 0.5 else whole
    _alone("parquet", ".parquet", place, whole, rng)


@cache
def _table(data: bytes) -> bytes | None:
    import polars as pl

    packed = io.BytesIO()
    try:
        value: Any = json.loads(data)
        rows = (
            value if isinstance(value, list) and value and isinstance(value[0], dict) else [value]
        )
        rows = [row if "messages" in row else {"messages": [row]} for row in rows]
        pl.DataFrame(rows, strict=False, infer_schema_length=None).write_parquet(packed)
    except (
        ValueError,
        TypeError,
        AttributeError,
        RecursionError,
        OverflowError,
        pl.exceptions.PolarsError,
    ):
        return None
    except BaseException as error:
        # polars cannot write this; reading is what is tried
        if type(error).__name__ == "PanicException":
            return None
        raise
    return packed.getvalue()


def _trial(name: str, root: Path, place: Place, data: bytes, rng: random.Random) -> None:
    """A folder of files, one of them overwritten; then each that the format begins with is read."""
    top = place.folder / root.name
    if not top.exists():
        shutil.copytree(root, top)
    files = sorted(path for path in top.rglob("*") if path.is_file())
    path = rng.choice(files)
    original = path.read_bytes()
    path.write_bytes(data)
    try:
        _read(name, path if rng.random() < 0.3 else rng.choice(files), place, rng)
    finally:
        path.write_bytes(original)


TARGETS: dict[str, Target] = {
    "inspect": _inspect,
    "atif": partial(_trial, "atif", _HARBOR),
    "codex": partial(_alone, "codex", ".jsonl"),
    "otel": partial(_alone, "otel", ".json"),
    "openhands": partial(_alone, "openhands", ".json"),
    "swe-agent": _swe_agent,
    "parquet": _parquet,
    "terminal-bench": partial(_trial, "terminal-bench", _BENCH),
    "chat": _chat,
}


@cache
def seeds(target: str) -> list[bytes]:
    """The real files that a target's inputs are made from."""
    return [(IMPORTS / name).read_bytes() for name in FILES[target]]
