"""ambjudge doctor: what works here."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import click

from .. import console
from ..config import Settings
from ..errors import ConfigError, StoreError
from ..plugins import SWITCH, Door, installed
from ..sanitize import mask
from ..version import __version__
from .options import json_option, store_place


@click.command(
    "doctor", epilog="\b\nExample:\n  ambjudge doctor --api-base http://localhost:8000/v1"
)
@json_option()
@click.option("--api-base", metavar="URL", help="Also ask this server for its models.")
@click.pass_obj
def command(obj: dict[str, Any], as_json: bool, api_base: str | None) -> int:
    """Show what is installed, which judges can be used, which settings are in force, where the
    store is."""

    from ..config import load

    settings = load(obj["config"])
    findings = examine(settings, settings.get("api_base", api_base))
    if as_json:
        console.raw(json.dumps([f.__dict__ for f in findings], ensure_ascii=False))
    else:
        marks = {True: "ok", False: "problem", None: "–"}
        styles = {True: "good", False: "bad", None: "dim"}
        console.table(
            ["", "What", "State"],
            [[marks[f.ok], f.what, f.state] for f in findings],
            flexible=2,
            styles=[[styles[f.ok], None, None] for f in findings],
        )
    return 1 if any(f.ok is False for f in findings) else 0


_PACKAGES = (
    "pydantic",
    "polars",
    "litellm",
    "tenacity",
    "jsonschema",
    "nibabel",
    "scikit-learn",
    "scipy",
    "statsmodels",
    "textual",
)
_SERVER_S = 5
"""Seconds in which a server has told its models."""
_LOCAL = ("torch", "transformers")
# Environment variables in which providers' keys are looked up by litellm; only their presence is
# ever shown.
_KEYS = {
    "OpenAI": "OPENAI_API_KEY",
    "Anthropic": "ANTHROPIC_API_KEY",
    "Google": "GEMINI_API_KEY",
    "OpenRouter": "OPENROUTER_API_KEY",
    "Mistral": "MISTRAL_API_KEY",
    "DeepSeek": "DEEPSEEK_API_KEY",
    "Azure": "AZURE_API_KEY",
}


@dataclass(frozen=True)
class Finding:
    """One line: `ok` is None for what is neither good nor bad (an extra that is not installed)."""

    what: str
    ok: bool | None
    state: str


def examine(settings: Settings, api_base: str | None = None) -> list[Finding]:
    """All findings; `api_base` is asked for its models, nothing else touches the network."""
    found = [Finding("ambjudge", True, f"{__version__} on Python {platform.python_version()}")]
    for package in _PACKAGES:
        version = _version(package)
        found.append(
            Finding(package, version is not None, version or "missing: reinstall ambjudge")
        )
    local = {package: _version(package) for package in _LOCAL}
    if all(local.values()):
        found.append(
            Finding("judge local:PATH", True, ", ".join(f"{k} {v}" for k, v in local.items()))
        )
    else:
        found.append(
            Finding("judge local:PATH", None, "not installed: pip install 'ambjudge[local]'")
        )
    found.append(Finding("judge rules", True, "always available"))
    keys = [provider for provider, name in _KEYS.items() if os.environ.get(name)]
    found.append(
        Finding(
            "judge MODEL",
            True if keys else None,
            f"keys set for {', '.join(keys)}" if keys else "no provider key in the environment",
        )
    )
    if api_base:
        found.append(_server(api_base))
    found.append(
        Finding(
            "settings",
            True,
            str(settings.file) if settings.file else "defaults (no ambjudge.toml found upward)",
        )
    )
    for name, value in sorted(settings.values.items()):
        shown = ", ".join(value) if isinstance(value, tuple) else mask(str(value))
        found.append(Finding(f"  {name}", True, f"{shown} ({settings.origins[name]})"))
    found.append(_store(settings))
    documents = Path(__file__).parents[1] / "docs"
    found.append(Finding("documents", documents.is_dir() or None, str(documents / "README.md")))
    return found + _plugins()


def _plugins() -> list[Finding]:
    """What other packages add, by door; each is loaded to see whether it can be."""
    from ..analysis.report.report_tables import TABLES
    from ..error_codes.registry import DETECTORS
    from ..judge.select import JUDGES
    from ..tracks import TRACKS
    from ..trajectories.importers import IMPORTERS
    from ..trajectories.importers.exporters import EXPORTERS
    from .registry import commands

    doors: tuple[Door[Any], ...] = (TRACKS, DETECTORS, JUDGES, IMPORTERS, EXPORTERS, TABLES, commands())
    names = {door.group: door for door in doors}
    found = []
    if (allowed := os.environ.get(SWITCH)) is not None:
        found.append(
            Finding(
                "plugins", None, f"{SWITCH}={allowed}: {'no others' if allowed.strip() else 'none'}"
            )
        )
    for plugin in sorted(installed(), key=lambda plugin: [*names, plugin.door].index(plugin.door)):
        door, state, ok = names.get(plugin.door), str(plugin), True
        if door is None:
            state, ok = f"{plugin}: no such door; known: {', '.join(names)}", False
        elif door.entries[plugin.name] is not plugin:
            state, ok = (
                f"{plugin}: left out, {door.entries[plugin.name]} has one of this name",
                False,
            )
        else:
            try:
                door.get(plugin.name)
            except ConfigError as error:
                state, ok = str(error), False
        found.append(Finding(f"{plugin.door}: {plugin.name}", ok, state))
    return found


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _server(api_base: str) -> Finding:
    import asyncio

    import httpx

    from ..judge.judges.api.http_clients import shared_client
    from ..trajectories.reading.json_bytes import loads

    url = api_base.rstrip("/") + "/models"
    api_base = mask(api_base)
    if not url.startswith(("http://", "https://")):
        return Finding("server", False, f"{api_base} is no http(s) URL")

    async def ask() -> httpx.Response:
        answer: httpx.Response = await asyncio.wait_for(shared_client().get(url), _SERVER_S)
        return answer

    try:
        answer = asyncio.run(ask())
        if answer.is_error:
            known = answer.status_code in (401, 403, 404)
            return Finding("server", known, f"{api_base} answers with status {answer.status_code}")
        data = loads(answer.text)
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, ValueError) as error:
        return Finding(
            "server", False, f"{api_base} does not answer: {mask(str(error)) or 'not in time'}"
        )
    listed = data.get("data") if isinstance(data, dict) else None
    names = [
        str(m.get("id"))[:100]
        for m in (listed if isinstance(listed, list) else ())[:5]
        if isinstance(m, dict)
    ]
    return Finding("server", True, f"{api_base}: {', '.join(names) or 'answers, names no models'}")


def _store(settings: Settings) -> Finding:
    try:
        where = store_place(settings, [Path.cwd()])
    except StoreError as error:
        return Finding("store", False, f"{error.message} ({error.hint})")
    if where is None:
        return Finding("store", None, "switched off")
    if "://" in str(where):
        return Finding("store", None, mask(str(where)) + " (not opened)")
    path = Path(where)
    if path.is_file():
        return Finding(
            "store", os.access(path, os.W_OK), f"{path} ({path.stat().st_size / 1e6:.1f} MB)"
        )
    return Finding("store", None, f"{path} (made at the first use)")
