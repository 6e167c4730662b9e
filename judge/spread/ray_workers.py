"""The workers of `workers` as actors of a Ray cluster.

Paths, addresses and the store must mean on its machines what they mean here. The budget is an actor
too: whoever makes a call anywhere asks it first.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import ExitStack, suppress
from itertools import count
from typing import Any, cast

from ...errors import AmbjudgeError, ConfigError
from ..base import Usage
from ..judges.limits import Budget, Leave, PlannedCall, SharedBudget
from ..session import RunScorer, ScoreOptions
from .workers import (
    Result,
    Task,
    Worker,
    WorkerDied,
    WorkerSettings,
    WorkerTotals,
    open_scorer,
    result_of,
)

_SHARED_MEMORY_BYTES = 100 * 1024 * 1024
"""Of Ray on this machine: what passes is one path and one scorecard at a time."""
_CHECK_INTERVAL_S = 5.0
"""Between two checks that Ray still runs, while a result is waited for."""
_MAX_BUDGET_CALLS = 10_000
"""Workers may wait for the budget at the same time."""


class RayCluster:
    """Workers on the cluster at an address.

    Without an address, a cluster is started on this machine for as long as this lasts.
    """

    def __init__(self, settings: WorkerSettings, address: str | None = None) -> None:
        """Connect to the cluster, or start one.

        Raises ConfigError if Ray is not installed, if there is no cluster, or if the store is a
        file of this machine alone.
        """
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        # Otherwise Ray looks for a `uv run` around us and prints a note about its own workers.
        os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
        try:
            import ray
        except ImportError:
            raise ConfigError(
                "--engine ray needs Ray, which is not installed", 'pip install "ambjudge[ray]"'
            ) from None
        store = settings.store
        if address is not None and store is not None and store[0].startswith("sqlite"):
            raise ConfigError(
                "the store is a file of this machine, which other machines of a cluster do not"
                " have",
                "name one with --store postgresql://..., or --store none",
            )
        try:
            if address is None:
                self._start_local(ray)
            else:
                ray.init(address=address, log_to_driver=False, logging_level="ERROR")
        except Exception as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            raise ConfigError(
                f"no Ray cluster at {address or 'this machine'}: {reason}", "check --address"
            ) from None
        self.ray, self._numbers = ray, count()
        self._node_id = ray.get_runtime_context().get_node_id()
        self._budget = None
        if settings.options.budget() is not None:
            actor = ray.remote(_BudgetActor).options(num_cpus=0, max_concurrency=_MAX_BUDGET_CALLS)
            self._budget = actor.remote(settings.options)

    @staticmethod
    def _start_local(ray: Any) -> None:
        ray.init(
            address="local",
            log_to_driver=False,
            logging_level="ERROR",
            include_dashboard=False,
            num_cpus=os.cpu_count(),
            object_store_memory=_SHARED_MEMORY_BYTES,
            _node_ip_address="127.0.0.1",
        )

    def start(self, settings: WorkerSettings, on_death: Callable[[Worker], None]) -> Worker:
        name = str(next(self._numbers))
        concurrency = max(1, settings.options.concurrency)
        actor_class = self.ray.remote(_ScorerActor).options(
            num_cpus=1, max_concurrency=concurrency + 1
        )
        actor = actor_class.remote(settings, os.getcwd(), self._budget, name)
        return _RayWorker(self, actor, on_death, self._budget, name)

    def check_alive(self) -> None:
        """Raise ConfigError if the node of this process is gone.

        Ray would let this process wait for its actors for ever.
        """
        alive = any(node["NodeID"] == self._node_id and node["Alive"] for node in self.ray.nodes())
        if not alive:
            raise ConfigError(
                "Ray ended on this machine (its raylet died, or was cut off too long): no worker"
                " can start",
                "run the same command again: what is in the store is not judged again",
            )

    def close(self) -> None:
        self.ray.shutdown()


class _RayWorker:
    """An actor as a `Worker`."""

    def __init__(
        self,
        cluster: RayCluster,
        actor: Any,
        on_death: Callable[[Worker], None],
        budget: Any,
        name: str,
    ) -> None:
        self._cluster, self._actor, self._on_death = cluster, actor, on_death
        self._budget, self._name = budget, name
        self.totals, self.unfinished, self._dead = WorkerTotals(), 0, False

    async def run(self, task: Task) -> Result:
        self.unfinished += 1
        answer = asyncio.ensure_future(self._actor.run.remote(task))
        try:
            while not answer.done():
                await asyncio.wait((answer,), timeout=_CHECK_INTERVAL_S)
                if not answer.done():
                    await asyncio.to_thread(self._cluster.check_alive)
            result, self.totals = answer.result()
        except self._cluster.ray.exceptions.RayActorError:
            self._handle_death()
            raise WorkerDied from None
        finally:
            answer.cancel()
            self.unfinished -= 1
        if isinstance(result, AmbjudgeError):
            raise result
        return cast("Result", result)

    def _handle_death(self) -> None:
        if self._dead:  # Another task of this worker noticed first.
            return
        self._dead = True
        if self._budget is not None:
            self._budget.forfeit.remote(self._name)
        self._on_death(self)

    def dismiss(self) -> None:
        pass

    def end(self) -> None:
        with suppress(Exception):  # It may be gone already.
            self._cluster.ray.kill(self._actor)


class _ScorerActor:
    """The actor's side of a worker."""

    def __init__(self, settings: WorkerSettings, folder: str, budget: Any, name: str) -> None:
        with suppress(OSError):  # Without this folder, relative paths are not found.
            os.chdir(folder)
        self._stack = ExitStack()
        remote_budget = None
        if budget is not None:
            remote_budget = _RemoteBudget(budget, name, settings.options.max_cost)
        self._scorer: RunScorer | AmbjudgeError
        try:
            self._scorer = open_scorer(self._stack, settings, remote_budget)
        except AmbjudgeError as error:
            self._scorer = error

    async def run(self, task: Task) -> tuple[Result | AmbjudgeError, WorkerTotals]:
        if isinstance(self._scorer, AmbjudgeError):
            return self._scorer, WorkerTotals()
        result = await result_of(self._scorer, task)
        return result, WorkerTotals.of(self._scorer)


class _BudgetActor(SharedBudget):
    """The budget of all workers."""

    def __init__(self, options: ScoreOptions) -> None:
        super().__init__(options.budget() or Budget())


class _RemoteBudget:
    """The budget as a worker sees it."""

    def __init__(self, budget: Any, name: str, cap: float | None) -> None:
        self.cap, self._budget, self._name = cap, budget, name

    async def reserve(self, call: PlannedCall) -> Leave:
        leave: Leave = await self._budget.reserve.remote(self._name, call)
        return leave

    async def settle(self, call: PlannedCall, usage: Usage | None) -> None:
        await self._budget.settle.remote(self._name, call, usage)
