"""No pattern of the package is quadratic on plain repetitions; `make bench` tries more of them, at more characters."""

from __future__ import annotations

import patterns


def test_no_pattern_takes_the_square_of_a_texts_length() -> None:
    assert len(patterns.patterns()) > 100
    assert list(patterns.suspects(3_000, slow_s=0.03, most_units=12)) == []
