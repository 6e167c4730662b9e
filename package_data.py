"""YAML that ships with the package: patterns, rules and guidance as data."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def yaml_loader() -> Any:
    """The safe loader of libyaml where it is there (ten times faster), else the one in Python."""
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_shipped(file: Path) -> Any:
    """The content of one of our own files. What comes from users is read by `rubrics.document`,
    which names lines."""
    import yaml

    return yaml.load(file.read_text(encoding="utf-8"), Loader=yaml_loader())
