"""Where the benchmark's text and its public harness part: what each choice of `like` does
(docs/harness.md has the ids).

`paper` is the benchmark's text, and ours where that is silent. `harness` is what the branches of
AutoMedBench/AutoMedBench compute, so that published numbers come out to the last digit. A choice
changes numbers alone: what a judge is shown, codes and facts stay the same, and so do verdicts and
their keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Literal

Like = Literal["paper", "harness"]


@dataclass(frozen=True)
class Rules:
    """What a choice changes; without any, the paper's rules."""

    prefixed_lesions: bool = False
    """D4: `kidney_lesion.nii.gz` and its like count as delivered, not as valid."""
    complex_voxels: bool = False
    """D5: the real part is read."""
    links: bool = False
    """D6: links are followed out of the run."""
    one_folder: bool = False
    """D7: `agent_outputs` is not `agents_outputs`."""
    rounded_labels: bool = False
    """D9: of label maps."""
    unreadable_is_missing: bool = False
    """D10: of label maps."""
    reported_labels: bool = False
    """D11: the label set is the report's, which has it from the task's configuration."""
    true_is_one: bool = False
    """D14: `true` is a number."""
    no_byte_order_mark: bool = False
    """D15: JSON after one cannot be read."""
    printable_ascii: bool = False
    """D17: any other character makes a report invalid."""
    bare_labels: bool = False
    """D20: a label without text and raw output is no placeholder, and valid."""
    five_labels: bool = False
    """D23: A to E are valid, whatever the options; open answers have no label, but its key."""
    psnr_needed: bool = False
    """D26: images have valid results when the mean PSNR is finite, whatever else is measured."""
    workspace: bool = False
    """A1, A2, A5 to A7, F1 to F3: answers go by what lies in the agent's workspace and stands in
    its code (`Track.branch`)."""
    unscored_is_cap: bool = False
    """A8: an unscored S1 or S3 under a cap is the cap's value."""
    nearly_complete: bool = False
    """A9: answers are complete from 99 % on."""
    branch: bool = False
    """A10, A12, G12: missing stages and breaches go by the track's branch (`Track.branch`)."""
    rounded: bool = False
    """A11: rates, stages, Agentic and Overall are rounded as in the track's branch, each before it
    is used."""


LIKE: Mapping[Like, Rules] = MappingProxyType(
    {"paper": Rules(), "harness": Rules(**{each.name: True for each in fields(Rules)})}
)
