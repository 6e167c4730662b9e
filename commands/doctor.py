"""ambjudge doctor: what works on this machine."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import click

from .. import console
from ..config import Settings
from ..errors import ConfigError, StoreError
from ..plugins import SWITCH, Door, Plugin, installed
from ..sanitize import mask
from ..version import __version__
from .grouped_help import command as grouped_command
from .options import json_option
from .sessions import store_place

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
_LOCAL_PACKAGES = ("torch", "transformers")
_SERVER_TIMEOUT_S = 5
_MAX_MODELS = 5
"""Models of a server that are named."""
_KEY_VARIABLES = {
    "OpenAI": "OPENAI_API_KEY",
    "Anthropic": "ANTHROPIC_API_KEY",
    "Google": "GEMINI_API_KEY",
    "OpenRouter": "OPENROUTER_API_KEY",
    "Mistral": "MISTRAL_API_KEY",
    "DeepSeek": "DEEPSEEK_API_KEY",
    "Azure": "AZURE_API_KEY",
}
"""The variables in which litellm looks for providers' keys; only whether one is set is shown."""


@grouped_command("doctor", "AMBJUDGE_API_BASE=http://localhost:8000/v1 ambjudge doctor")
@json_option()
@click.pass_obj
def command(obj: dict[str, Any], as_json: bool) -> int:
    """Show what is installed, which judges can be used, which settings are in force, and where the
    store is.

    A server that the setting `api_base` names is asked for its models.
    """
    from ..config import load

    settings = load(obj["config"])
    findings = examine(settings)
    if as_json:
        console.raw(json.dumps([asdict(finding) for finding in findings], ensure_ascii=False))
    else:
        marks = {True: "ok", False: "problem", None: "–"}
        styles = {True: "good", False: "bad", None: "dim"}
        console.table(
            ["", "What", "State"],
            [[marks[finding.ok], finding.what, finding.state] for finding in findings],
            flexible=2,
            styles=[[styles[finding.ok], None, None] for finding in findings],
        )
    return 1 if any(finding.ok is False for finding in findings) else 0


@dataclass(frozen=True)
class Finding:
    """One line."""

    what: str
    ok: bool | None
    """None for what is neither good nor bad, such as an extra that is not installed."""
    state: str


def examine(settings: Settings) -> list[Finding]:
    """All findings. Only the server of `api_base` is reached over the network."""
    python = platform.python_version()
    findings = [Finding("ambjudge", True, f"{__version__} on Python {python}")]
    findings += _packages()
    findings += _judges()
    api_base = settings.get("api_base")
    if api_base:
        findings.append(_server(api_base))
    findings += _settings(settings)
    findings += _store(settings)
    documents = Path(__file__).parents[1] / "docs"
    findings.append(Finding("documents", documents.is_dir() or None, str(documents / "README.md")))
    return findings + _plugins()


def _packages() -> list[Finding]:
    findings = []
    for package in _PACKAGES:
        version = _version(package)
        state = version or "missing: reinstall ambjudge"
        findings.append(Finding(package, version is not None, state))
    return findings


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _judges() -> list[Finding]:
    """Which kinds of judges can be used."""
    versions = {package: _version(package) for package in _LOCAL_PACKAGES}
    if all(versions.values()):
        state = ", ".join(f"{package} {version}" for package, version in versions.items())
        local = Finding("judge local:PATH", True, state)
    else:
        local = Finding("judge local:PATH", None, "not installed: pip install 'ambjudge[local]'")
    providers = [name for name, variable in _KEY_VARIABLES.items() if os.environ.get(variable)]
    if providers:
        models = Finding("judge MODEL", True, f"keys set for {', '.join(providers)}")
    else:
        models = Finding("judge MODEL", None, "no provider key in the environment")
    return [local, Finding("judge rules", True, "always available"), models]


def _settings(settings: Settings) -> list[Finding]:
    """The settings file, and each setting with its origin."""
    file = str(settings.file) if settings.file else "defaults (no ambjudge.toml found upward)"
    findings = [Finding("settings", True, file)]
    for name, value in sorted(settings.values.items()):
        text = ", ".join(value) if isinstance(value, tuple) else mask(str(value))
        findings.append(Finding(f"  {name}", True, f"{text} ({settings.origins[name]})"))
    return findings


def _plugins() -> list[Finding]:
    """What other packages add, by door; each is loaded to see whether it works."""
    from ..analysis.report.report_tables import TABLES
    from ..error_codes.registry import DETECTORS
    from ..judge.select import JUDGES
    from ..tracks import TRACKS
    from ..trajectories.importers import IMPORTERS
    from ..trajectories.importers.exporters import EXPORTERS
    from .registry import commands

    doors: list[Door[Any]] = [TRACKS, DETECTORS, JUDGES, IMPORTERS, EXPORTERS, TABLES, commands()]
    door_by_name = {door.group: door for door in doors}
    findings = []
    allowed = os.environ.get(SWITCH)
    if allowed is not None:
        effect = "no others" if allowed.strip() else "none"
        findings.append(Finding("plugins", None, f"{SWITCH}={allowed}: {effect}"))
    order = list(door_by_name)
    plugins = sorted(
        installed(),
        key=lambda plugin: order.index(plugin.door) if plugin.door in order else len(order),
    )
    for plugin in plugins:
        problem = _plugin_problem(plugin, door_by_name)
        state = problem or str(plugin)
        findings.append(Finding(f"{plugin.door}: {plugin.name}", not problem, state))
    return findings


def _plugin_problem(plugin: Plugin, door_by_name: dict[str, Door[Any]]) -> str:
    """Why a plugin cannot be used; empty if it can."""
    door = door_by_name.get(plugin.door)
    if door is None:
        return f"{plugin}: no such door; known: {', '.join(door_by_name)}"
    if door.entries[plugin.name] is not plugin:
        return f"{plugin}: left out, {door.entries[plugin.name]} has one of this name"
    try:
        door.get(plugin.name)
    except ConfigError as error:
        return str(error)
    return ""


def _server(api_base: str) -> Finding:
    """Ask an OpenAI-compatible server for its models."""
    import asyncio

    import httpx

    from ..judge.judges.api.http_clients import shared_client
    from ..trajectories.reading.json_bytes import loads

    url = api_base.rstrip("/") + "/models"
    name = mask(api_base)
    if not url.startswith(("http://", "https://")):
        return Finding("server", False, f"{name} is not an http(s) URL")

    async def ask() -> httpx.Response:
        request = shared_client().get(url)
        response: httpx.Response = await asyncio.wait_for(request, _SERVER_TIMEOUT_S)
        return response

    try:
        response = asyncio.run(ask())
        if response.is_error:
            # A server that wants a key, or has no list of models, works nevertheless.
            is_alive = response.status_code in (401, 403, 404)
            return Finding("server", is_alive, f"{name} answers with status {response.status_code}")
        data = loads(response.text)
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, ValueError) as error:
        reason = mask(str(error)) or "not in time"
        return Finding("server", False, f"{name} does not answer: {reason}")
    models = _model_names(data)
    return Finding(
        "server", True, f"{name}: {', '.join(models) or 'the server answers but lists no models'}"
    )


def _model_names(data: Any) -> list[str]:
    """The first models of a server's list, which may be anything."""
    models = data.get("data") if isinstance(data, dict) else None
    if not isinstance(models, list):
        return []
    return [str(model.get("id"))[:100] for model in models[:_MAX_MODELS] if isinstance(model, dict)]


def _store(settings: Settings) -> list[Finding]:
    """The store, and the batches at providers that it knows to be open."""
    try:
        place = store_place(settings, [Path.cwd()])
    except StoreError as error:
        return [Finding("store", False, f"{error.message} ({error.hint})")]
    if place is None:
        return [Finding("store", None, "switched off")]
    if "://" in str(place):
        return [Finding("store", None, mask(str(place)) + " (not opened)")]
    path = Path(place)
    if not path.is_file():
        return [Finding("store", None, f"{path} (made at the first use)")]
    megabytes = path.stat().st_size / 1e6
    state = f"{path} ({megabytes:.1f} MB)"
    return [Finding("store", os.access(path, os.W_OK), state), *_open_batches(path)]


def _open_batches(path: Path) -> list[Finding]:
    """The open batches of a store; none if it cannot be read, which other commands explain."""
    from ..judge.provider_batch import status
    from ..judge.store import open_store
    from .open_batches import describe_batches

    try:
        with open_store(path, create=False) as store:
            batches = status(store)
    except StoreError as error:
        return [Finding("open batches", False, error.message)]
    if not batches:
        return []
    number = console.counted(len(batches), "open batch", "open batches")
    return [Finding("open batches", None, f"{number}: {describe_batches(batches)}")]
