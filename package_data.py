"""YAML files that ship with the package: patterns, rules and guidance as data."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def yaml_loader() -> Any:
    """The safe loader of libyaml if it is installed (ten times faster), else the one in Python."""
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_package_yaml(file: Path) -> Any:
    """The content of a YAML file of this package.

    `rubrics.document` reads the files of users, and names lines in its errors.
    """
    import yaml

    return yaml.load(file.read_text(encoding="utf-8"), Loader=yaml_loader())
