"""Features of one turn, shared by the segmentation, the rules judge and the detectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from ..models import Frozen

Scope = Literal["none", "one", "few", "all"]


class TurnFeatures(Frozen):
    """What one turn does, as flags, counts and paths.

    A failed attempt has the features of what it attempted; `failed` says that it failed.
    """

    turn: int
    writes_plan: bool = False
    """A plan.md is written or appended to."""
    revises_plan: bool = False
    """A plan.md is written although an earlier turn wrote one."""
    writes_plan_image: bool = False
    """The figure of the plan is drawn."""
    reads_docs: bool = False
    """The brief, model cards, a README, source code, --help or web pages are read."""
    lists_inputs: bool = False
    """Folders are listed."""
    inspects_inputs: bool = False
    """Input data is loaded, and its shape, type, spacing, range or content is printed."""
    loads_inputs: bool = False
    """Input data is loaded."""
    installs_packages: bool = False
    checks_environment: bool = False
    """Versions, devices, hardware or installed packages are displayed."""
    asks_machine: bool = False
    """Every action only shows the state of the machine or lists files other than deliverables.

    Examples are nvidia-smi, ps, pip list, ls and a search tool.
    """
    obtains_weights: bool = False
    """Weights, repositories or data sets are downloaded."""
    looks_at_weights: bool = False
    """The first bytes or the type of a file in the model's folder are displayed."""
    loads_model: bool = False
    forward_pass: bool = False
    """A model is applied to data; a classical method only sets `writes_outputs`."""
    dummy_forward: bool = False
    """A model is applied to synthetic input (zeros, random numbers)."""
    applies_module: bool = False
    """Functions of a module that the run wrote are called."""
    writes_module: bool = False
    """A source file is written or edited."""
    runs_script: bool = False
    """A script is started, or a module written in this run is imported."""
    runs_tests: bool = False
    """Tests are started (pytest, unittest, doctest, a file of tests)."""
    module_only: bool = False
    """A source file is written and nothing of it is executed in the same turn."""
    cases_scope: Scope = "none"
    """Number of cases, roughly, for which a model ran or an output was written in this turn."""
    cases_share: float | None = None
    """The same as a share of all cases in [0, 1]; None if the cases or their number are unknown."""
    cases: tuple[str, ...] = ()
    """Case ids in the executed code or its output, in order of appearance."""
    inputs_scope: Scope = "none"
    """Number of cases, roughly, whose inputs are read, whether or not a model runs."""
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
    """An archive is packed."""
    watches_progress: bool = False
    """The turn waits for a running job or looks at its progress."""
    prepares_folders: bool = False
    """The commands only make folders or set permissions."""
    training: bool = False
    """A model is trained."""
    builds: bool = False
    """A program is compiled (make, gcc, cargo build)."""
    submits: bool = False
    """The run is submitted."""
    closing_message: bool = False
    """The last message of the run, without any tool call."""
    todo_only: bool = False
    """The turn only writes a to-do list."""
    todo_done: bool = False
    """A to-do list is written in which every item is completed."""
    writes_report: bool = False
    """A README, a summary or results are written as Markdown (other than the plan)."""
    message_only: bool = False
    """The turn has no tool call."""
    failed: bool = False
    blocked: bool = False
    """The harness refused an action."""
    timed_out: bool = False
    unanswered: bool = False
    """A call has no result because the run died in it."""
    executed: bool = False
    """Code or a command ran, or was sent to be run."""
    code_lines: int = 0
    """Lines of executed code, without comments and written files."""
    plan_lines: int = 0
    """Lines of the plan that are written."""
    drawing_lines: int = 0
    """Lines of executed code that only draws the figure of the plan."""
    module_lines: int = 0
    """Lines of other files that are written."""
    run_lines: int = 0
    """Lines of the longest script of the run that the turn starts."""
    written_paths: tuple[str, ...] = ()
    """Files that are written, in order."""
    run_paths: tuple[str, ...] = ()
    """Scripts that are started, in order."""
    quotes: Mapping[str, str] = {}
    """Name of a flag -> a line of the turn that shows it."""

    def has(self, *flags: str) -> bool:
        """Whether any of these flags is set."""
        return any(getattr(self, flag) is True for flag in flags)
