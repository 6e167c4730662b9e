"""The workers of `workers` as actors of a Ray cluster, on whose machines paths, addresses and the
store mean what they mean here. The budget is an actor too: whoever makes a call anywhere asks it
first.
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
from ..judges.limits import Budget, PlannedCall, SharedBudget
from ..select import make_judge
from ..session import RunScorer, ScoreOptions, make_scorer
from .workers import Result, Task, Told, Work, Worker, WorkerDied, done

_OBJECTS = 100 * 1024 * 1024
"""Bytes of Ray's shared memory on this machine: what passes is a path and a scorecard at a time."""
_LOOK_S = 5.0
"""Between two looks whether Ray is still there, while an answer is waited for."""


class RayCluster:
    """Workers on the cluster at an address; None: one that is started on this machine for as long
    as this lasts."""

    def __init__(self, work: Work, address: str | None = None) -> None:
        """ConfigError where Ray is not installed, the cluster is not there, or the store is a file
        of this machine alone."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        # Ray is asked to look into no `uv run` around us and to say nothing of its own workers.
        os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
        try:
            import ray
        except ImportError:
            raise ConfigError(
                "--engine ray needs Ray, which is not installed", 'pip install "ambjudge[ray]"'
            ) from None
        if address is not None and work.store is not None and work.store[0].startswith("sqlite"):
            raise ConfigError(
                "the store is a file of this machine, which other machines of a cluster do not"
                " have",
                "name one with --store postgresql://..., or --store none",
            )
        quiet: dict[str, Any] = {
            "log_to_driver": False,
            "logging_level": "ERROR",
            "include_dashboard": False,
        }
        own: dict[str, Any] = {
            "num_cpus": os.cpu_count(),
            "object_store_memory": _OBJECTS,
            "_node_ip_address": "127.0.0.1",
        }
        try:
            if address is None:
                ray.init(address="local", **quiet, **own)
            else:
                ray.init(address=address, log_to_driver=False, logging_level="ERROR")
        except Exception as error:
            text = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            raise ConfigError(
                f"no Ray cluster at {address or 'this machine'}: {text}", "check --address"
            ) from None
        self.ray, self._names, self._node = ray, count(), ray.get_runtime_context().get_node_id()
        self._accounts = None
        if work.options.budget() is not None:
            actor = ray.remote(_Accounts).options(num_cpus=0, max_concurrency=10_000)
            self._accounts = actor.remote(work.options)

    def start(self, work: Work, died: Callable[[Worker], None]) -> Worker:
        name = f"{next(self._names)}"
        room = max(1, work.options.concurrency)
        actor = self.ray.remote(_Scorer).options(num_cpus=1, max_concurrency=room + 1)
        made = actor.remote(work, os.getcwd(), self._accounts, name)
        return _Actor(self, made, died, self._accounts, name)

    def look(self) -> None:
        """ConfigError where the node that this process belongs to is no more: Ray lets it wait for
        ever for actors then."""
        if not any(node["NodeID"] == self._node and node["Alive"] for node in self.ray.nodes()):
            raise ConfigError(
                "Ray ended on this machine (its raylet died, or was cut off too long): no worker"
                " can be had",
                "give the same command again: what is in the store is not done anew",
            )

    def close(self) -> None:
        self.ray.shutdown()


class _Actor:
    """An actor as `workers` wants a worker."""

    def __init__(
        self,
        cluster: RayCluster,
        actor: Any,
        died: Callable[[Worker], None],
        accounts: Any,
        name: str,
    ) -> None:
        self._cluster, self._ray, self._actor, self._died = cluster, cluster.ray, actor, died
        self._accounts, self._name = accounts, name
        self.told, self.in_hand, self._dead = Told(), 0, False

    async def do(self, task: Task) -> Result:
        self.in_hand += 1
        answer = asyncio.ensure_future(self._actor.do.remote(task))
        try:
            while not (await asyncio.wait((answer,), timeout=_LOOK_S))[0]:
                await asyncio.to_thread(self._cluster.look)
            result, self.told = answer.result()
        except self._ray.exceptions.RayActorError:
            if not self._dead:
                self._dead = True
                if self._accounts is not None:
                    self._accounts.forfeit.remote(self._name)
                self._died(self)
            raise WorkerDied from None
        finally:
            answer.cancel()
            self.in_hand -= 1
        if isinstance(result, AmbjudgeError):
            raise result
        return cast("Result", result)

    def dismiss(self) -> None:
        pass

    def end(self) -> None:
        with suppress(Exception):  # it is no more already
            self._ray.kill(self._actor)


class _Scorer:
    """In an actor: what `workers` has in a process."""

    def __init__(self, work: Work, folder: str, accounts: Any, name: str) -> None:
        with suppress(OSError):  # where that folder is not, relative paths are none
            os.chdir(folder)
        self._stack, self._broken = ExitStack(), None
        try:
            self._scorer: RunScorer | None = self._made(work, accounts, name)
        except AmbjudgeError as error:
            self._scorer, self._broken = None, error

    def _made(self, work: Work, accounts: Any, name: str) -> RunScorer:
        store = None
        if work.store is not None:
            from ..store import open_store

            store = self._stack.enter_context(
                open_store(work.store[0], root=work.store[1], create=False)
            )
        budget = None if accounts is None else _AskedBudget(accounts, name, work.options.max_cost)
        return make_scorer(make_judge(work.judges, work.judge_options), work.options, store, budget)

    async def do(self, task: Task) -> tuple[Result | AmbjudgeError, Told]:
        if self._scorer is None:
            assert self._broken is not None
            return self._broken, Told()
        result = await done(self._scorer, task)
        return result, Told(
            self._scorer.usage, self._scorer.throttles, self._scorer.foreign_track_runs
        )


class _Accounts(SharedBudget):
    """The budget of all workers, in an actor."""

    def __init__(self, options: ScoreOptions) -> None:
        super().__init__(options.budget() or Budget())


class _AskedBudget:
    """The budget as a worker sees it."""

    def __init__(self, accounts: Any, name: str, cap: float | None) -> None:
        self.cap, self._accounts, self._name = cap, accounts, name

    async def reserve(self, call: PlannedCall) -> bool:
        return bool(await self._accounts.reserve.remote(self._name, call))

    async def settle(self, call: PlannedCall, usage: Usage | None) -> None:
        await self._accounts.settle.remote(self._name, call, usage)
