"""Paths, limits and cases that stand in an object of settings are followed as those in names are."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from shell_turns import facts_of

IMPORTS = """import argparse, dataclasses, enum, json, os, pathlib, types
from collections import namedtuple
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple
import attr, nibabel as nib, numpy as np
from pydantic import BaseModel, Field
"""
ROOT, OUT, PUBLIC = "Path('/workspace')", "Path('/workspace/agents_outputs')", "Path('/data/public')"
CASES = "sorted(p.parent.name for p in cfg.public.glob('case_*/ct.nii.gz'))"
RUN = """
def run(case, cfg):
    a = nib.load(cfg.public / case / 'ct.nii.gz').get_fdata()
    target = cfg.out / case
    target.mkdir(parents=True, exist_ok=True)
    for name in ('lesion',):
        nib.save(nib.Nifti1Image((a > 40).astype('uint8'), None), target / f'{name}.nii.gz')
"""
EACH = f"for case in {CASES}: run(case, cfg)\n"
CONFIG = f"@dataclass(frozen=True)\nclass Config:\n    public: Path = {PUBLIC}\n    out: Path = {OUT}\n    limit: int = 0\n    closing: int = 2\n"


WHOLE = {
    "dataclass": CONFIG + RUN + "cfg = Config()\n" + EACH,
    "dataclass, handed to main": CONFIG + RUN + f"def main(cfg):\n    for case in {CASES}:\n        run(case, cfg)\nmain(Config(closing=3))\n",
    "fields with factories": f"@dataclass\nclass Config:\n    public: Path = field(default={PUBLIC})\n    out: Path = field(default_factory=lambda: {OUT})\n" + RUN + "cfg = Config()\n" + EACH,
    "a joined path": f"ROOT = {ROOT}\n@dataclass\nclass Config:\n    public: Path = {PUBLIC}\n    out: Path = ROOT / 'agents_outputs'\n" + RUN + "cfg = Config()\n" + EACH,
    "NamedTuple": f"class Config(NamedTuple):\n    public: Path = {PUBLIC}\n    out: Path = {OUT}\n" + RUN + "cfg = Config()\n" + EACH,
    "namedtuple": "Config = namedtuple('Config', 'public out')\n" + RUN + f"cfg = Config({PUBLIC}, {OUT})\n" + EACH,
    "attributes of a class": f"class cfg:\n    public = {PUBLIC}\n    out = {OUT}\n" + RUN + EACH,
    "instance of a plain class": f"class Config:\n    public = {PUBLIC}\n    out = {OUT}\n" + RUN + "cfg = Config()\n" + EACH,
    "set in __init__": f"class Config:\n    def __init__(self, public={PUBLIC}, out={OUT}):\n        self.public, self.out = public, out\n" + RUN + "cfg = Config()\n" + EACH,
    "set in __init__, one by one": f"class Config:\n    def __init__(self, root={ROOT}):\n        self.public = {PUBLIC}\n        self.out = root / 'agents_outputs'\n" + RUN + "cfg = Config()\n" + EACH,
    "SimpleNamespace": RUN + f"cfg = SimpleNamespace(public={PUBLIC}, out={OUT})\n" + EACH,
    "types.SimpleNamespace": RUN + f"cfg = types.SimpleNamespace(public={PUBLIC}, out={OUT})\n" + EACH,
    "attributes set later": RUN + f"cfg = SimpleNamespace()\ncfg.public = {PUBLIC}\ncfg.out = {OUT}\n" + EACH,
    "argparse.Namespace": RUN + f"cfg = argparse.Namespace(public={PUBLIC}, out={OUT})\n" + EACH,
    "defaults of a parser": RUN + f"ap = argparse.ArgumentParser()\nap.add_argument('--public', type=Path, default={PUBLIC})\nap.add_argument('--out', type=Path, default={OUT})\ncfg = ap.parse_args()\n" + EACH,
    "defaults of a parser from the class": CONFIG + RUN + "ap = argparse.ArgumentParser()\nap.add_argument('--out', type=Path, default=Config.out)\nap.add_argument('--closing', type=int, default=Config.closing)\nargs = ap.parse_args()\ncfg = Config(out=args.out, closing=args.closing)\n" + EACH,
    "all options spread": CONFIG + RUN + "ap = argparse.ArgumentParser()\nap.add_argument('--closing', type=int, default=2)\ncfg = Config(**vars(ap.parse_args()))\n" + EACH,
    "properties": f"@dataclass\nclass Config:\n    root: Path = {ROOT}\n    public: Path = {PUBLIC}\n    @property\n    def out(self):\n        return self.root / 'agents_outputs'\n" + RUN + "cfg = Config()\n" + EACH,
    "nested settings": f"@dataclass\nclass Paths:\n    public: Path = {PUBLIC}\n    out: Path = {OUT}\n@dataclass\nclass Config:\n    paths: Paths = field(default_factory=lambda: Paths())\n    closing: int = 2\n" + RUN.replace("cfg.", "cfg.paths.") + "cfg = Config()\n" + EACH.replace("cfg.", "cfg.paths."),
    "inherited": CONFIG.replace("class Config", "class Base") + "@dataclass(frozen=True)\nclass Config(Base):\n    closing: int = 4\n" + RUN + "cfg = Config()\n" + EACH,
    "replaced in part": CONFIG + RUN + "cfg = replace(Config(), closing=5)\n" + EACH,
    "pydantic": f"class Config(BaseModel):\n    public: Path = {PUBLIC}\n    out: Path = Field({OUT})\n" + RUN + "cfg = Config()\n" + EACH,
    "attrs": f"@attr.s\nclass Config:\n    public = attr.ib(default={PUBLIC})\n    out = attr.ib(default={OUT})\n" + RUN + "cfg = Config()\n" + EACH,
    "enum": "class Place(enum.Enum):\n    PUBLIC = '/data/public'\n    OUT = '/workspace/agents_outputs'\ncfg = SimpleNamespace(public=Path(Place.PUBLIC.value), out=Path(Place.OUT.value))\n" + RUN + EACH,
    "dict": RUN.replace("cfg.public", "cfg['public']").replace("cfg.out", "cfg['out']") + f"cfg = {{'public': {PUBLIC}, 'out': {OUT}}}\n" + EACH.replace("cfg.public", "cfg['public']"),
    "dict(...)": RUN.replace("cfg.public", "cfg['public']").replace("cfg.out", "cfg['out']") + f"cfg = dict(public={PUBLIC}, out={OUT})\n" + EACH.replace("cfg.public", "cfg['public']"),
    "a pipeline's methods": CONFIG.replace("Config", "Pipeline") + "    def run(self, case):\n        a = nib.load(self.public / case / 'ct.nii.gz').get_fdata()\n        nib.save(nib.Nifti1Image(a, None), self.out / f'{case}.nii.gz')\n    def all(self):\n        for p in sorted(self.public.glob('case_*/ct.nii.gz')): self.run(p.parent.name)\nPipeline().all()\n",
    "cases in the object": f"class Job:\n    def __init__(self):\n        self.public, self.out = {PUBLIC}, {OUT}\n        self.cases = sorted(os.listdir('/data/public'))\n    def go(self):\n        for c in self.cases:\n            a = nib.load(f'/data/public/{{c}}/ct.nii.gz')\n            nib.save(a, self.out / c / 'mask.nii.gz')\nJob().go()\n",
    "a global object": CONFIG + "CFG = Config()\n" + RUN.replace("case, cfg", "case").replace("cfg.", "CFG.") + f"def main():\n    cfg = CFG\n    for case in {CASES}: run(case)\nif __name__ == '__main__': main()\n",
}  # fmt: skip


@pytest.mark.parametrize("script", WHOLE)
def test_everything_is_run(tmp_path: Path, script: str) -> None:
    facts = facts_of(tmp_path, "python kb.py", kb=IMPORTS + WHOLE[script])
    assert (facts.cases_scope, facts.writes_outputs, facts.loads_inputs, facts.reads_outputs) == (
        "all",
        True,
        True,
        False,
    )


LESS = [
    pytest.param(CONFIG + RUN + "cfg = Config(out=Path('/tmp/pilot'))\n" + EACH, "", "none", False, id="sent to a scratch folder"),
    pytest.param(CONFIG + RUN + f"S = {ROOT} / 'scratch'\ncfg = Config(out=S / 'pilot')\n" + EACH, "", "none", False, id="sent to a joined scratch folder"),
    pytest.param(CONFIG + RUN + "cfg = replace(Config(), out=Path('/tmp/pilot'))\n" + EACH, "", "none", False, id="replaced by a scratch folder"),
    pytest.param(RUN + f"cfg = SimpleNamespace(public={PUBLIC}, out=Path('/tmp/pilot'), final={OUT})\n" + EACH, "", "none", False, id="another field is the place"),
    pytest.param(WHOLE["defaults of a parser from the class"], "--out /tmp/pilot", "none", False, id="the command line names a scratch folder"),
    pytest.param(CONFIG + RUN + f"cfg = Config(limit=2)\nfor case in {CASES}[:cfg.limit]: run(case, cfg)\n", "", "few", True, id="a limit in the settings"),
    pytest.param(CONFIG + "    cases: tuple = ('case_0003',)\n" + RUN + "cfg = Config()\nfor case in cfg.cases: run(case, cfg)\n", "", "one", True, id="one case in the settings"),
    pytest.param(CONFIG + RUN + "cfg = Config()\nrun('case_0002', cfg)\n", "", "one", True, id="one case by hand"),
    pytest.param(CONFIG + RUN + "cfg = Config()\nprint(cfg)\n", "", "none", False, id="nothing is run"),
    pytest.param(CONFIG + f"cfg = Config()\nfor case in {CASES}: print(nib.load(cfg.public / case / 'ct.nii.gz').shape)\n", "", "none", False, id="inputs are looked at"),
    pytest.param(CONFIG + f"cfg = Config()\nfor case in {CASES}: assert nib.load(cfg.out / case / 'mask.nii.gz').shape\n", "", "none", False, id="outputs are looked at"),
    pytest.param(CONFIG + RUN + "ap = argparse.ArgumentParser(); ap.add_argument('cases', nargs='*'); args = ap.parse_args()\ncfg = Config()\nfor case in args.cases: run(case, cfg)\n", "", "none", False, id="no words, no rounds"),
    pytest.param(CONFIG + RUN + "ap = argparse.ArgumentParser(); ap.add_argument('cases', nargs='*'); args = ap.parse_args()\ncfg = Config()\nfor case in args.cases: run(case, cfg)\n", "case_0001", "one", True, id="one word, one round"),
]  # fmt: skip


@pytest.mark.parametrize(("script", "line", "scope", "writes"), LESS)
def test_look_alikes(tmp_path: Path, script: str, line: str, scope: str, writes: bool) -> None:
    facts = facts_of(tmp_path, f"python kb.py {line}", kb=IMPORTS + script)
    assert (facts.cases_scope, facts.writes_outputs) == (scope, writes)


IMPORTED = [
    pytest.param("from settings import Config\ncfg = Config()\n", id="class"),
    pytest.param("import settings\ncfg = settings.Config()\n", id="class of a module"),
    pytest.param("from settings import *\ncfg = Config()\n", id="star"),
    pytest.param("from settings import CFG as cfg\n", id="object"),
    pytest.param("import settings as s\ncfg = s.CFG\n", id="object of a module"),
]


@pytest.mark.parametrize("lines", IMPORTED)
def test_settings_in_another_module(tmp_path: Path, lines: str) -> None:
    facts = facts_of(tmp_path, "python kb.py", settings=IMPORTS + CONFIG + "CFG = Config()\n", kb=IMPORTS + lines + RUN + EACH)  # fmt: skip
    assert (facts.cases_scope, facts.writes_outputs, facts.reads_outputs) == ("all", True, False)


def test_many_nested_objects_cost_nothing(tmp_path: Path) -> None:
    chain = "\n".join(f"c{i + 1} = SimpleNamespace(a=c{i}, b=c{i})" for i in range(200))
    nested = "".join(f"class C{i}(C{i - 1}): x{i} = {i}\n" if i else "class C0: y = 1\n" for i in range(150))
    facts = facts_of(tmp_path, "python kb.py", kb=IMPORTS + f"c0 = SimpleNamespace(out={OUT})\n{chain}\n{nested}" + CONFIG + RUN + "cfg = Config()\n" + EACH)  # fmt: skip
    assert facts.writes_outputs
