"""A circuit breaker: stop calling a provider that keeps failing."""

from __future__ import annotations

import time


class CircuitBreaker:
    """Open after `max_failures` failures in a row, for `pause_s` seconds.

    After the pause one call may try again; if it fails too, the breaker is open for another pause.
    """

    def __init__(self, max_failures: int = 5, pause_s: float = 60.0) -> None:
        self.max_failures, self.pause_s = max_failures, pause_s
        self._failures = 0
        self._last_failure = 0.0

    @property
    def open(self) -> bool:
        """Whether no call may be made now."""
        if self._failures < self.max_failures:
            return False
        return time.monotonic() - self._last_failure < self.pause_s

    def record(self, success: bool) -> None:
        """Note how a call ended."""
        if success:
            self._failures, self._last_failure = 0, 0.0
        else:
            self._failures, self._last_failure = self._failures + 1, time.monotonic()
