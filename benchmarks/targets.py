"""What benchmarks print of a figure with a target, and how they wait for a quiet machine."""

from __future__ import annotations

import os
import time


def against(what: str, measured: float, target: float, unit: str, *, least: bool = False) -> bool:
    """Print target, measured, ratio, met or missed, and how busy the machine is; `least`: the
    target is a lower bound."""
    ratio = measured / target
    met = ratio >= 1 if least else ratio <= 1
    bound = "at least" if least else "at most"
    said = (
        f"{bound} {target:g} {unit}, measured {measured:.2f}, ratio {ratio:.2f}:"
        f" {'met' if met else 'MISSED'}"
    )
    print(
        f"{what}: target {said} (load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores)",
        flush=True,
    )
    return met


def wait_until_quiet(most_s: float) -> None:
    """Until the load of the last minute is below a third of the cores, at the longest so many
    seconds."""
    end = time.monotonic() + most_s
    while time.monotonic() < end and os.getloadavg()[0] > (os.cpu_count() or 1) / 3:
        time.sleep(5)
