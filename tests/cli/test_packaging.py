"""What is installed is the whole package: a new folder must be listed, a data file must match a
pattern."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
NOT_SHIPPED = {"tests", "benchmarks", "data", "docs", "examples", "build", "dist"}


def _folders() -> list[Path]:
    top = [
        p
        for p in ROOT.iterdir()
        if p.is_dir() and p.name not in NOT_SHIPPED and not p.name.startswith(".")
    ]
    return [
        f
        for folder in top
        for f in (folder, *folder.rglob("*"))
        if f.is_dir() and f.name != "__pycache__"
    ]


def test_every_folder_with_modules_is_listed() -> None:
    setup = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    here = {
        ".".join(("ambjudge", *f.relative_to(ROOT).parts))
        for f in _folders()
        if any(f.glob("*.py"))
    }
    assert set(setup["packages"]) == here | {"ambjudge"}


def test_every_data_file_is_packaged() -> None:
    """Setuptools looks from each package's folder, and a `*` matches no `/`."""
    setup = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    packages = {ROOT.joinpath(*name.split(".")[1:]) for name in setup["packages"]}
    for folder in _folders():
        if folder.name.endswith(".egg-info"):
            continue
        package = next(above for above in (folder, *folder.parents) if above in packages)
        for file in folder.iterdir():
            if file.is_file() and file.suffix not in (".py", ".pyc"):
                inside = file.relative_to(package)
                found = any(
                    inside.match(p) and len(inside.parts) == len(Path(p).parts)
                    for p in setup["package-data"]["*"]
                )
                assert found, f"{file.relative_to(ROOT)} would not be installed"
