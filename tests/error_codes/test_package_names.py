"""Names of packages and how tools deny a name: every entry of package_names.yaml with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from ambjudge.error_codes import package_names
from ambjudge.error_codes.package_names import denied_names, is_general, is_known

DATA = yaml.safe_load(Path(package_names.__file__).with_suffix(".yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("entry", DATA["denials"], ids=lambda entry: entry["pattern"][:30])
def test_a_tool_denies_a_name(entry):
    assert entry["name"] in list(denied_names(f"Trying.\n{entry['example']}\n"))


def test_names_are_known_however_they_are_written():
    assert is_general("Scikit-Image")
    assert is_general("scikit_image")
    assert is_known("TotalSegmentator")
    assert not is_general("totalsegmentator")
    assert not is_known("pancnext")
    assert list(denied_names("pancnext is not known to anyone")) == []
