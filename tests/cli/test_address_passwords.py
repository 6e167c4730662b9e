"""No part of a password in an address is shown or stored, however the address is mistyped."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from ambjudge.addresses import Address
from ambjudge.cli import run

RECORDED = Path(__file__).parents[1] / "data" / "recorded" / "runs" / "crc-lite-02"
BASES = {
    "hash": "http://u:sec#ret@127.0.0.1:1/v1",
    "slash": "http://u:sec/ret@127.0.0.1:1/v1",
    "question mark": "http://u:sec?ret@127.0.0.1:1/v1",
    "number": "http://u:12/sec@127.0.0.1:1/v1",
    "bracket": "http://[::1/sec",
    "no scheme": "u:sec@127.0.0.1/v1",
    "one slash": "http:/u:sec@h/v1",
}
STORES = {
    "one slash": "postgresql:/u:secret@h/db",
    "slash": "postgresql://u:sec/ret@h/db",
    "at": "postgresql://u:p@sec/ret@h/db",
    "bracket": "postgresql://u:secret@[::1/db",
}
RUNS = {
    "plain": "s3://u:secret@bucket/x",
    "slash": "s3://u:sec/ret@bucket/x",
    "bracket": "s3://[sec/x",
}
PLACES = [
    *(pytest.param("--api-base", text, id=f"api {name}") for name, text in BASES.items()),
    *(pytest.param("--store", text, id=f"store {name}") for name, text in STORES.items()),
    *(pytest.param("", text, id=f"run {name}") for name, text in RUNS.items()),
]


@pytest.mark.parametrize(("option", "address"), PLACES)
def test_a_mistyped_address_is_one_line_without_its_password(
    option: str,
    address: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(RECORDED, "run")
    judge = ["--judge", "openai/x"] if option == "--api-base" else ["--judge", "rules"]
    words = ["run", option, address] if option else [address]
    assert run(["score", *words, *judge]) not in (0, 70)
    captured = capsys.readouterr()
    text = captured.out + captured.err
    assert "internal error" not in text
    assert len(text.strip().splitlines()) == 1, text
    assert "sec" not in text
    assert [path.name for path in Path().iterdir()] == ["run"]


def test_an_address_shows_itself_without_credentials() -> None:
    address = Address("https://u:p%2Fw@[::1]:8000/v1?key=k#f")
    assert str(address) == "https://[::1]:8000/v1"
    assert (address.host, address.has_credentials) == ("::1", True)
    assert "p%2F" not in repr(address)
