"""The facts of one turn, shared by the segmentation, the rules judge and the detectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from ..models import Frozen

Scope = Literal["none", "one", "few", "all"]


class TurnFeatures(Frozen):
    """Facts of one turn.

    A failed attempt has the facts of what it attempted; `failed` says that it failed.
    """

    turn: int
    writes_plan: bool = False
    """A plan.md is written or appended to."""
    revises_plan: bool = False
    """A plan.md is written although an earlier turn wrote one."""
    writes_plan_image: bool = False
    reads_docs: bool = False
    """The brief, model cards, a README, source code, --help or web pages are read."""
    lists_inputs: bool = False
    """Folders are listed."""
    inspects_inputs: bool = False
    """Input data is loaded, and its shape, type, spacing, range or content is printed."""
    loads_inputs: bool = False
    installs_packages: bool = False
    checks_environment: bool = False
    """Versions, devices, hardware or installed packages are looked up."""
    asks_machine: bool = False
    """Every action only shows the state of the machine or lists files that are not delivered ones.

    Examples are nvidia-smi, ps, pip list, ls and a search tool.
    """
    obtains_weights: bool = False
    """Weights, repositories or data sets are downloaded."""
    looks_at_weights: bool = False
    """The first bytes or the kind of a file in the model's folder are looked at."""
    loads_model: bool = False
    forward_pass: bool = False
    """A model is applied to something; a classical method shows as `writes_outputs`."""
    dummy_forward: bool = False
    """A model is applied to made-up input (zeros, random numbers)."""
    applies_module: bool = False
    """Functions of a module that the run wrote are called."""
    writes_module: bool = False
    """A source file is written or edited."""
    runs_script: bool = False
    """A script is started, or a module written in this run is imported."""
    runs_tests: bool = False
    """Unit tests are started (pytest, unittest, doctest, a file of tests)."""
    module_only: bool = False
    """A source file is written and nothing of it is executed in the same turn."""
    cases_scope: Scope = "none"
    """For how many cases a model ran or an output was written in this turn."""
    cases_share: float | None = None
    """The same as a share of the cases in [0, 1]; None if the cases or their number are unknown."""
    cases: tuple[str, ...] = ()
    """Case ids in the executed code or its output, in order of appearance."""
    inputs_scope: Scope = "none"
    """For how many cases inputs are read, whether or not a model runs."""
    writes_outputs: bool = False
    """Deliverables are written."""
    writes_files: bool = False
    """Python code writes files that are not deliverables."""
    module_looks: bool = False
    """A Python file is written that reads data, writes nothing and applies no model."""
    stores_results: bool = False
    """A model is applied, and files are written that are not deliverables."""
    reads_outputs: bool = False
    """Delivered files are opened or listed."""
    checks_outputs: bool = False
    """Delivered files are opened or listed, and compared with an expectation or counted."""
    inspects_values: bool = False
    """Statistics, counts or contents of data or results are printed."""
    inspects_shapes: bool = False
    """Shapes, types, spacing or sizes of data or results are printed."""
    packages_outputs: bool = False
    watches_progress: bool = False
    prepares_folders: bool = False
    """The commands only make folders or set permissions."""
    training: bool = False
    builds: bool = False
    submits: bool = False
    closing_message: bool = False
    """The last message of the run, without any tool call."""
    todo_only: bool = False
    todo_done: bool = False
    """A to-do list is written in which everything is completed."""
    writes_report: bool = False
    """A README, a summary or results (Markdown, not the plan) are written."""
    message_only: bool = False
    failed: bool = False
    blocked: bool = False
    timed_out: bool = False
    unanswered: bool = False
    """A call has no result: the run died in it."""
    executed: bool = False
    """Code or a command ran, or was meant to."""
    code_lines: int = 0
    """Lines of executed code, without comments and written files."""
    plan_lines: int = 0
    drawing_lines: int = 0
    """Lines of executed code that only draws the figure of the plan."""
    module_lines: int = 0
    run_lines: int = 0
    """Lines of the longest of its own scripts that the turn starts."""
    written_paths: tuple[str, ...] = ()
    run_paths: tuple[str, ...] = ()
    quotes: Mapping[str, str] = {}
    """Fact -> a line on which it was seen."""

    def has(self, *facts: str) -> bool:
        """Whether any of these facts holds."""
        return any(getattr(self, fact) is True for fact in facts)
