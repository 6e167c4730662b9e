"""Where the benchmark's text and its public harness differ: what each choice of rules does.

`paper` is the benchmark's text, and our reading where the text is silent. `harness` is what the
branches of AutoMedBench/AutoMedBench compute, so that published numbers come out to the last digit.
A choice changes numbers alone: what a judge is shown, codes and facts stay the same, and so do
verdicts and their keys. docs/harness.md explains the ids (D4, A8, ...).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Literal

Like = Literal["paper", "harness"]


@dataclass(frozen=True)
class Rules:
    """What a choice changes; all false are the paper's rules."""

    prefixed_lesions: bool = False
    """D4: names such as `kidney_lesion.nii.gz` count as delivered, not as valid."""
    complex_voxels: bool = False
    """D5: the real part of complex voxels is read."""
    links: bool = False
    """D6: links are followed out of the run."""
    one_folder: bool = False
    """D7: only the branch's own folder of outputs counts (`HarnessBranch.outputs_folder`)."""
    rounded_labels: bool = False
    """D9: values of label maps are rounded."""
    unreadable_is_missing: bool = False
    """D10: a label map that cannot be read counts as missing."""
    reported_labels: bool = False
    """D11: the label set is the report's, which takes it from the task's configuration."""
    true_is_one: bool = False
    """D14: `true` is a number."""
    no_byte_order_mark: bool = False
    """D15: JSON after a byte order mark cannot be read."""
    printable_ascii: bool = False
    """D17: a character outside printable ASCII makes a report invalid."""
    bare_labels: bool = False
    """D20: a label without text and raw output is valid and no placeholder."""
    five_labels: bool = False
    """D23: A to E are valid, whatever the options; open answers need only the label's key."""
    loose_answers: bool = False
    """D29: a run time of NaN or infinity and a blank model name are valid, and the label of an open
    answer is not looked at."""
    psnr_needed: bool = False
    """D26: images have valid results if the mean PSNR is finite, whatever else is measured."""
    workspace: bool = False
    """A1, A2, A5 to A7, F1 to F3: answers are scored by what lies in the agent's workspace and what
    its code contains."""
    unscored_is_cap: bool = False
    """A8: an unscored S1 or S3 under a cap has the cap's value."""
    nearly_complete: bool = False
    """A9: answers are complete from 99 % on."""
    branch: bool = False
    """A10, A12, G12: the track's branch decides on missing stages and breaches (`Track.branch`)."""
    rounded: bool = False
    """A11: rates, stages, Agentic and Overall are rounded as in the track's branch, each before it
    is used."""


LIKE: Mapping[Like, Rules] = MappingProxyType(
    {"paper": Rules(), "harness": Rules(**{each.name: True for each in fields(Rules)})}
)
