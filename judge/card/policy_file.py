"""Choose the policy of a scorecard by name or file: the paper's rules, the harness's, or one's own.

A file is TOML or YAML with any of the keys `like`, `missing`, `breach`, `malformed` and
`strict_evidence`; `fields.Policy` says what each means.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...config import read_toml, suggestion
from ...errors import ConfigError, InputError
from .fields import Policy

NAMED = {"paper": Policy(), "harness": Policy(like="harness")}
_CHOICES: dict[str, tuple[str, ...]] = {
    "like": ("paper", "harness"),
    "missing": ("renormalize", "zero"),
    "breach": ("zero-all", "from-stage"),
    "malformed": ("formula", "zero"),
}
_DECIDED_BY_HARNESS = ("missing", "breach", "malformed")
_SUFFIXES = (".toml", ".yaml", ".yml")


def load_policy(policy: Policy | str | Path) -> Policy:
    """The policy of this name (`paper`, `harness`) or in this file; a Policy is returned unchanged.

    ConfigError for an unknown name, an unreadable file, and a key or value that does not exist.
    """
    if isinstance(policy, Policy):
        return policy
    if policy in NAMED:
        return NAMED[str(policy)]
    file = Path(policy)
    if file.suffix.lower() not in _SUFFIXES:
        raise ConfigError(
            f"unknown policy {str(policy)[:80]!r}", "give paper, harness, or a .toml or .yaml file"
        )
    choices = _read(file)
    for key, value in choices.items():
        _check(key, value, f"{file}: {key}")
    overridden = [key for key in _DECIDED_BY_HARNESS if key in choices]
    if choices.get("like") == "harness" and overridden:
        raise ConfigError(
            f"{file}: like = harness also decides {', '.join(overridden)}", "leave one of them out"
        )
    return Policy(**choices)


def _read(file: Path) -> dict[str, Any]:
    """The keys and values of a policy file, hyphens in keys as underscores."""
    if file.suffix.lower() == ".toml":
        values: Any = read_toml(file)
    else:
        from ...rubrics.document import read_document

        try:
            values = read_document(file).value
        except InputError as error:
            raise ConfigError(error.message, "a policy has lines such as missing: zero") from None
    if not isinstance(values, dict):
        raise ConfigError(f"{file}: is not a table of choices", 'for example missing: "zero"')
    return {key.replace("-", "_"): value for key, value in values.items()}


def _check(key: str, value: Any, location: str) -> None:
    if key == "strict_evidence":
        if not isinstance(value, bool):
            raise ConfigError(f"{location}: {value!r} is not true or false", "give true or false")
    elif key not in _CHOICES:
        known = (*_CHOICES, "strict_evidence")
        raise ConfigError(f"{location}: no such choice", suggestion(key, known))
    elif value not in _CHOICES[key]:
        raise ConfigError(
            f"{location}: {value!r} is not one of {', '.join(_CHOICES[key])}", "choose one of them"
        )
