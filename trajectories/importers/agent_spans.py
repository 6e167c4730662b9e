"""Tells the agents of a trace apart, by the spans of agents around the calls of models.

A trace's main agent is the outermost one that calls a model; agents inside it are sub-agents with
runs of their own. Agents side by side, which hand over to each other, are speakers of one run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .spans import Span

_MAX_DEPTH = 1_000

AgentPath = tuple[str, ...]
"""Ids of the agents' spans around a call, the outermost first, less what all calls share."""


class AgentCalls(NamedTuple):
    """The spans of one agent."""

    path: AgentPath
    agent: str | None
    calls: list[Span]
    speakers: list[str | None]
    """Who made each call, if several agents did."""


def spans_by_agent(spans: Sequence[Span]) -> list[AgentCalls]:
    """The spans of the main agent, then those of each sub-agent, in order of their first call."""
    tree = _SpanTree(spans)
    calls = [span for span in spans if span.kind == "llm" and not tree.is_inside_call(span)]
    paths = {id(span): tree.agent_path(span) for span in calls}
    n_shared = _n_shared(list(paths.values()))
    shortest = min((len(path) for path in paths.values()), default=0)
    # Without a call of its own, an agent around others only holds them together.
    n_main = max(n_shared, shortest)
    groups: dict[AgentPath, list[Span]] = {}
    for span in calls:
        path = paths[id(span)]
        groups.setdefault(() if len(path) <= n_main else path, []).append(span)
    result: list[AgentCalls] = []
    for path in sorted(groups, key=bool):  # the main agent first
        speakers = [tree.speaker(span) for span in groups[path]]
        if len(set(speakers)) == 1:
            speakers = [None] * len(speakers)
        agent = tree.name(path[-1]) if path else None
        result.append(AgentCalls(path, agent, groups[path], speakers))
    return result


def _n_shared(paths: list[AgentPath]) -> int:
    """How many agents all paths begin with."""
    n_shared = 0
    for level in zip(*paths, strict=False):
        if len(set(level)) > 1:
            break
        n_shared += 1
    return n_shared


class _SpanTree:
    """Spans with the ones around them."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self._by_id = {span.id: span for span in spans if span.id}

    def is_inside_call(self, span: Span) -> bool:
        """Whether a call is made inside the span of the same call, by another instrumentation."""
        around = next((s for s in self._around(span) if s.kind in ("llm", "agent", "tool")), None)
        return around is not None and around.kind == "llm" and around.has_reply

    def agent_path(self, span: Span) -> AgentPath:
        """The agents around a call, the outermost first; an agent's inner spans are itself."""
        path: list[Span] = []
        is_behind_tool = False
        for outer in self._around(span):
            if outer.kind == "tool":
                is_behind_tool = True
            elif outer.kind == "agent":
                is_same = bool(path) and not is_behind_tool and path[-1].agent == outer.agent
                if is_same:
                    path[-1] = outer
                else:
                    path.append(outer)
                is_behind_tool = False
        return tuple(span.id for span in reversed(path))

    def name(self, span_id: str) -> str | None:
        """The name of an agent."""
        return self._by_id[span_id].agent

    def speaker(self, span: Span) -> str | None:
        """The innermost agent around a call."""
        return next((outer.agent for outer in self._around(span) if outer.kind == "agent"), None)

    def _around(self, span: Span) -> list[Span]:
        """The spans around one, the innermost first."""
        around: list[Span] = []
        seen = {span.id}
        parent = self._by_id.get(span.parent)
        while parent is not None and parent.id not in seen and len(around) < _MAX_DEPTH:
            around.append(parent)
            seen.add(parent.id)
            parent = self._by_id.get(parent.parent)
        return around
