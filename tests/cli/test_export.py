"""export as a user runs it: every table in every format, whole files or none, errors of one
line."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from ambjudge.analysis import frame
from ambjudge.cli import run
from polars.testing import assert_frame_equal

RECORDED = Path(__file__).parents[1] / "data" / "recorded"
RUNS = RECORDED / "runs"
TABLES = ("runs", "criteria", "codes", "verdicts", "labels")


@pytest.fixture
def out(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Run a command line in an empty project; (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AMBJUDGE_STORE", raising=False)
    (tmp_path / "ambjudge.toml").write_text("", encoding="utf-8")

    def call(*args: str | Path) -> tuple[int, str, str]:
        code = run([str(a) for a in args])
        seen = capsys.readouterr()
        return code, seen.out, seen.err

    return call


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project folder with a store that has judged all recorded runs and holds their labels, and
    the scorecards."""
    folder = tmp_path_factory.mktemp("project")
    store = folder / ".ambjudge" / "ambjudge.db"
    cards = folder / "cards.jsonl"
    assert run(["-q", "score", str(RUNS), "--store", str(store), "--out", str(cards)]) == 0
    assert run(["-q", "label", "import", str(RECORDED / "labels"), "--store", str(store)]) == 0
    return folder


@pytest.fixture
def store(project: Path) -> Path:
    return project / ".ambjudge" / "ambjudge.db"


def rows(text: str) -> list[dict]:
    return [json.loads(line) for line in text.split("\n") if line]


def no_leftovers(folder: Path) -> bool:
    return not list(folder.glob(".ambjudge-export-*"))


# Tables


@pytest.mark.parametrize("what", TABLES)
def test_formats_agree_row_by_row(out, store: Path, tmp_path: Path, what: str) -> None:
    code, text, _ = out("-q", "export", store, "--what", what)
    assert code == 0
    lines = rows(text)
    for name in ("t.jsonl", "t.csv", "t.parquet"):
        assert out("-q", "export", store, "--what", what, "--out", f"new/{name}") == (0, "", "")
    assert no_leftovers(tmp_path / "new")
    assert (tmp_path / "new" / "t.jsonl").read_text("utf-8") == text
    assert (
        out("-q", "export", store, "--what", what, "--format", "csv")[1]
        == (tmp_path / "new" / "t.csv").read_text()
    )
    parquet = pl.read_parquet(tmp_path / "new" / "t.parquet")
    assert parquet.to_dicts() == lines
    with (tmp_path / "new" / "t.csv").open(encoding="utf-8", newline="") as stream:
        table = list(csv.DictReader(stream))
    assert len(table) == len(lines) == parquet.height > 10
    for cells, line in zip(table, lines, strict=True):
        assert list(cells) == list(line)
        for name, value in line.items():
            cell = cells[name]
            if value is None or value in ("", []):
                assert cell == ""
            elif isinstance(value, bool):
                assert cell == str(value).lower()
            elif isinstance(value, int | float):
                assert float(cell) == value
            elif isinstance(value, list):
                assert cell == "; ".join(map(str, value))
            else:
                assert cell in (value, "'" + value)


def test_counts_are_those_of_the_recorded_runs(out, project: Path, store: Path) -> None:
    cards = rows((project / "cards.jsonl").read_text("utf-8"))
    runs = rows(out("-q", "export", store)[1])
    # A store keeps scores exact, scorecards as JSON have two decimals of Overall.
    exact = {r["run_id"]: r["overall"] for r in runs}
    assert exact == {c["run"]["id"]: pytest.approx(c["overall"], abs=0.00501) for c in cards}
    criteria = rows(out("-q", "export", store, "--what", "criteria")[1])
    assert len(criteria) == sum(len(s["criteria"]) for c in cards for s in c["stages"].values())
    codes = rows(out("-q", "export", store, "--what", "codes")[1])
    assert len(codes) == sum(len(c["codes"]) for c in cards) > 0
    labels = rows(out("-q", "export", store, "--what", "labels")[1])
    gold = {r["run_id"]: 0 for r in labels if r["annotator"] == "gold"}
    assert len(gold) == len(list((RECORDED / "labels" / "gold").glob("*.json")))
    want = json.loads((RECORDED / "labels" / "gold" / "crc-lite-01.json").read_text("utf-8"))
    mine = [
        r for r in labels if (r["run_id"], r["annotator"]) == ("crc-lite-01", want["annotator"])
    ]
    assert {str(r["turn"]): r["item"] for r in mine if r["kind"] == "stage"} == want["stages"]
    assert {r["item"]: r["value"] for r in mine if r["kind"] == "criterion"} == want["criteria"]
    assert {r["item"] for r in mine if r["kind"] == "code" and r["value"] == 1} == set(
        want["codes"]
    )


def test_verdicts_have_key_run_judge_and_cost(out, store: Path) -> None:
    found = rows(out("-q", "export", store, "--what", "verdicts")[1])
    assert len({r["key"] for r in found}) == len(found)
    assert {r["judge"] for r in found} == {"rules"}
    assert {r["run_id"] for r in found} == {p.name for p in RUNS.iterdir()}
    assert {r["call_cost_usd"] for r in found} == {0.0}
    assert all(r["created_at"].endswith("Z") for r in found)
    assert {(r["status"], r["reason"]) for r in found} == {
        ("scored", None),
        ("unscored", "not_read"),
    }, "none is presumed"


def test_old_verdicts_and_their_cost_are_told(out, judge_server, tmp_path: Path) -> None:
    args = (
        "-q",
        "score",
        RUNS / "crc-lite-01",
        "--ask-all",
        "--json",
        "--judge",
        "good",
        "--api-base",
        judge_server.url,
    )
    assert out(*args, "--price", "1,10", "--store", "s.db")[0] == 0
    assert out(*args, "--price", "1,10", "--store", "s.db", "--temperature", "0.5")[0] == 0
    found = rows(out("export", "s.db", "--what", "verdicts")[1])
    assert len({r["parameters"] for r in found}) == 2
    assert len({r["key"] for r in found}) == len(found)
    calls = {r["call_id"]: r for r in found}
    card = rows(out("export", "s.db", "--what", "scorecards")[1])[0]
    assert sum(r["call_cost_usd"] for r in calls.values()) > 0
    assert len(calls) == 2 * card["judge"]["calls"]
    assert {r["call_criteria"] for r in calls.values()} >= {1, 3, 5}
    assert {(r["call_served_model"], r["call_estimated_requests"]) for r in found} == {("good", 0)}


def test_scorecards_come_out_as_they_went_in(
    out, project: Path, store: Path, tmp_path: Path
) -> None:
    cards = (project / "cards.jsonl").read_text("utf-8")
    assert out("-q", "export", project / "cards.jsonl", "--what", "scorecards") == (0, cards, "")
    code, text, _ = out(
        "-q", "export", store, "--what", "scorecards", "--out", tmp_path / "again.jsonl"
    )
    assert (code, text) == (0, "")
    assert sorted((tmp_path / "again.jsonl").read_text("utf-8").splitlines()) == sorted(
        cards.splitlines()
    )
    assert out("-q", "verify", tmp_path / "again.jsonl")[0] == 0
    assert out("-q", "analyze", tmp_path / "again.jsonl", "--table", "cohort")[0] == 0


@pytest.mark.parametrize("name", ["runs.parquet", "runs.csv"])
def test_the_table_of_runs_reads_back_into_analyze(out, project: Path, name: str) -> None:
    assert out("-q", "export", project / "cards.jsonl", "--out", name)[0] == 0
    assert_frame_equal(frame(name), frame(project / "cards.jsonl"))
    assert out("-q", "analyze", name, "--table", "leaderboard")[0] == 0
    assert out("-q", "export", name)[0] == 0


# What a path means


def test_a_folder_is_its_store_or_its_runs(out, project: Path, tmp_path: Path) -> None:
    code, text, err = out("export", project)
    assert (code, len(rows(text))) == (0, 15)
    assert f"reading the store {project}" in err
    # Another project's folder: no store knows it, so the rules judge scores what is there.
    code, text, err = out("export", RUNS / "crc-lite-01")
    assert (code, [r["run_id"] for r in rows(text)]) == (0, ["crc-lite-01"])
    assert err == "1 run scored by the rules judge\n"


def test_a_folder_in_a_collection_is_its_own_runs_only(out, tmp_path: Path) -> None:
    import shutil

    for name, group in (("crc-lite-01", "a"), ("bccd-lite-01", "ab"), ("ldct-lite-02", "a")):
        shutil.copytree(RUNS / name, tmp_path / "runs" / group / name)
    assert out("-q", "score", "runs", "--json")[0] == 0
    for what in ("runs", "verdicts", "scorecards"):
        found = rows(out("-q", "export", "runs/a", "--what", what)[1])
        assert {r.get("run_id") or r["run"]["id"] for r in found} == {"crc-lite-01", "ldct-lite-02"}
    assert len(rows(out("-q", "export", "runs")[1])) == 3
    assert len(rows(out("-q", "export", "runs/a", "runs/ab")[1])) == 3


def test_labels_come_from_files_too(out, project: Path, store: Path) -> None:
    found = rows(out("-q", "export", store, "--what", "labels")[1])
    files = rows(out("-q", "export", RECORDED / "labels", "--what", "labels")[1])
    assert sorted(map(str, found)) == sorted(map(str, files))
    one = RECORDED / "labels" / "a1" / "crc-lite-01.json"
    assert rows(out("-q", "export", one, "--what", "labels")[1])


def test_an_empty_store_gives_empty_tables(out, tmp_path: Path) -> None:
    from ambjudge.judge.store import open_store

    open_store(tmp_path / "empty.db").close()
    for what in TABLES:
        assert out("-q", "export", "empty.db", "--what", what) == (0, "", "")
        code, text, err = out("export", "empty.db", "--what", what, "--out", "t.csv")
        assert (code, text, err) == (0, "", f"wrote 0 rows to {tmp_path / 't.csv'}\n")
        assert (tmp_path / "t.csv").read_text("utf-8").startswith(("run_id,", "key,"))
        assert out("-q", "export", "empty.db", "--what", what, "--out", "t.parquet")[0] == 0
        assert pl.read_parquet(tmp_path / "t.parquet").height == 0


# Hostile texts


HOSTILE = '=HYPERLINK("http://x","y")\x1b]0;owned\x07\u202e\n-2'


@pytest.fixture
def hostile(project: Path, tmp_path: Path) -> Path:
    card = rows((project / "cards.jsonl").read_text("utf-8"))[0]
    card["run"]["id"] = HOSTILE
    card["stages"]["S1"]["criteria"][0]["rationale"] = "@SUM(1)"
    path = tmp_path / "hostile.jsonl"
    path.write_text(json.dumps(card) + "\n", encoding="utf-8")
    return path


def test_hostile_ids_stay_in_files_and_are_no_formulas(out, hostile: Path, tmp_path: Path) -> None:
    for name in ("h.csv", "h.parquet", "h.jsonl"):
        assert out("-q", "export", hostile, "--what", "criteria", "--out", name)[0] == 0
    assert set(pl.read_parquet(tmp_path / "h.parquet")["run_id"]) == {HOSTILE}
    assert {r["run_id"] for r in rows((tmp_path / "h.jsonl").read_text("utf-8"))} == {HOSTILE}
    table = list(csv.DictReader(io.StringIO((tmp_path / "h.csv").read_text("utf-8"), newline="")))
    assert {r["run_id"] for r in table} == {"'" + HOSTILE}
    assert table[0]["rationale"] == "'@SUM(1)"


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_control_characters_never_reach_a_terminal(hostile: Path, terminal, kind: str) -> None:
    code, seen = terminal("export", str(hostile), "--what", "criteria", "--format", kind)
    assert code == 0
    assert "HYPERLINK" in seen
    assert not {"\x1b", "\x07", "\u202e"} & set(seen)


# Files


def test_a_file_is_replaced_whole_or_not_at_all(out, project: Path, tmp_path: Path) -> None:
    target = tmp_path / "t.csv"
    target.write_text("old", encoding="utf-8")
    link = tmp_path / "link.csv"
    link.symlink_to(target)
    broken = tmp_path / "broken.jsonl"
    broken.write_text("{}\n", encoding="utf-8")
    assert out("export", broken, "--out", "t.csv")[0] == 2
    assert target.read_text("utf-8") == "old"
    assert out("-q", "export", project / "cards.jsonl", "--out", "link.csv")[0] == 0
    assert link.is_symlink()
    assert target.read_text("utf-8").startswith("run_id,")
    assert no_leftovers(tmp_path)


def test_one_bad_line_is_named_and_the_rest_is_exported(out, project: Path, tmp_path: Path) -> None:
    text = (project / "cards.jsonl").read_text("utf-8")
    (tmp_path / "some.jsonl").write_text(text + '{"schema": "other"}\nnot json\n', "utf-8")
    for what in ("runs", "criteria", "scorecards"):
        code, _, err = out("-q", "export", "some.jsonl", "--what", what, "--out", "t.jsonl")
        assert code == 1
        assert "some.jsonl:16" in err
        assert "some.jsonl:17" in err
        assert (tmp_path / "t.jsonl").stat().st_size > 0
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / "a.json").write_text(
        '{"run": "r", "annotator": "a", "codes": {}}', "utf-8"
    )
    (tmp_path / "labels" / "b.json").write_text('{"run": 7}', "utf-8")
    code, text, err = out("-q", "export", "labels", "--what", "labels")
    assert (code, len(rows(text))) == (1, 5)
    assert "b.json" in err


HUGE = [
    pytest.param(("run", "repeat"), id="repeat"),
    pytest.param(("resources", "input_tokens"), id="tokens"),
    pytest.param(("status", "violations"), id="violations"),
    pytest.param(("stage_use", "S1", "turns"), id="turns of a stage"),
    pytest.param(("codes", 0, "turns", 0), id="turn of a code"),
    pytest.param(("stages", "S1", "criteria", 0, "evidence", 0, "turn"), id="turn of evidence"),
    pytest.param(("resources", "cost_usd"), id="cost"),
    pytest.param(("resources", "wall_time_s"), id="seconds"),
    pytest.param(("stage_use", "S1", "exec_time_s"), id="seconds of a stage"),
]
VALUES = {"turns": 10**30, "cost_usd": 1e308, "wall_time_s": -1e300, "exec_time_s": 1e31}


@pytest.mark.parametrize("place", HUGE)
@pytest.mark.parametrize(
    "command", [["export"], ["analyze", "--table", "cohort"], ["leaderboard"]], ids=lambda c: c[0]
)
def test_a_number_no_table_can_hold_is_one_line(
    out, project: Path, command: list[str], place: tuple
) -> None:
    good = (project / "cards.jsonl").read_text("utf-8").splitlines()
    good.sort(
        key=lambda line: (
            '"codes":[]' in line or not json.loads(line)["stages"]["S1"]["criteria"][0]["evidence"]
        )
    )
    card = json.loads(good[0])
    *way, last = place
    spot = card
    for step in way:
        spot = spot[step]
    spot[last] = VALUES.get(last, -(2**64))
    Path("huge.jsonl").write_text("\n".join([json.dumps(card), *good[1:]]), "utf-8")
    code, _, err = out(command[0], "huge.jsonl", *command[1:])
    assert code == 1
    assert f"huge.jsonl:1: {'.'.join(map(str, place))}: Input should be" in err
    assert len(err.splitlines()) <= 2
    Path("huge.jsonl").write_text(json.dumps(card), "utf-8")
    code, _, err = out(command[0], "huge.jsonl", *command[1:])
    assert code == 2
    assert ".".join(map(str, place)) in err
    code, text, _ = out("verify", "huge.jsonl")
    assert code == 1
    assert ".".join(map(str, place)) in text


@pytest.mark.parametrize(
    ("args", "message"),
    [
        pytest.param(["nowhere"], "no such file or folder", id="no path"),
        pytest.param(["nowhere.db"], "no such store", id="no store"),
        pytest.param(["BAD.db"], "is not a readable store", id="unreadable store"),
        pytest.param(
            ["BAD.db", "--what", "verdicts", "--out", "t.csv"],
            "is not a readable store",
            id="verdicts of it",
        ),
        pytest.param(["."], "holds neither scorecards nor runs", id="empty folder"),
        pytest.param([".", "--what", "verdicts"], "has no verdicts", id="no verdicts"),
        pytest.param(
            [".", "--what", "labels"], "holds neither a store nor label files", id="no labels"
        ),
        pytest.param(
            ["CARDS", "--what", "verdicts"], "has no verdicts", id="scorecards have no verdicts"
        ),
        pytest.param(
            ["CARDS", "--what", "labels"],
            "cards.jsonl:1: is a scorecard",
            id="scorecards are no labels",
        ),
        pytest.param(["CARDS", "--what", "cards"], "'cards' is not one of", id="table"),
        pytest.param(
            ["CARDS", "--format", "parquet"],
            "Parquet cannot be written to stdout",
            id="parquet to stdout",
        ),
        pytest.param(
            ["CARDS", "--out", "-", "--format", "parquet"],
            "Parquet cannot be written to stdout",
            id="dash",
        ),
        pytest.param(
            ["CARDS", "--out", "t.xlsx"], "its suffix is not that of a known format", id="suffix"
        ),
        pytest.param(
            ["CARDS", "--what", "scorecards", "--out", "t.csv"],
            "is not a row of csv",
            id="scorecards as csv",
        ),
        pytest.param(
            ["CARDS", "--out", "CARDS"], "is an input of this command", id="over its input"
        ),
        pytest.param(
            ["CARDS", "--out", "STORE", "--format", "csv"], "is a store", id="over a store"
        ),
        pytest.param(
            ["CARDS", "--out", ".", "--format", "csv"], "not a regular file", id="over a folder"
        ),
        pytest.param(
            ["CARDS", "--out", "/dev/null", "--format", "csv"],
            "not a regular file",
            id="over a device",
        ),
        pytest.param(["CARDS", "--out", "BAD.db/t.csv"], "cannot be written", id="below a file"),
        pytest.param(
            ["FRAME", "--what", "criteria"], "has no scorecards", id="a frame has no criteria"
        ),
    ],
)
def test_errors_are_one_line_with_a_hint(
    out, project: Path, tmp_path: Path, args: list[str], message: str
) -> None:
    (tmp_path / "BAD.db").write_bytes(b"nonsense" * 300)
    places = {"CARDS": project / "cards.jsonl", "STORE": project / ".ambjudge" / "ambjudge.db"}
    if "FRAME" in args:
        assert out("-q", "export", places["CARDS"], "--out", "frame.parquet")[0] == 0
        places["FRAME"] = tmp_path / "frame.parquet"
    code, text, err = out("export", *(str(places.get(a, a)) for a in args))
    assert (code, text) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "t.csv").exists()
    assert no_leftovers(tmp_path)


def test_memory_stays_flat(project: Path, tmp_path: Path) -> None:
    """Ten times the scorecards: the same memory but for what libraries and batches take."""
    lines = (project / "cards.jsonl").read_text("utf-8")
    peaks = []
    for times in (20, 200):
        cards = tmp_path / f"{times}.jsonl"
        with cards.open("w", encoding="utf-8") as file:
            for number in range(times):
                file.write(lines.replace('"run":{"id":"', f'"run":{{"id":"{number}-'))
        code = (
            "import resource, sys\nfrom ambjudge.cli import run\nassert run(['-q', 'export',"
            f" {str(cards)!r}, '--what', 'criteria', '--out', {str(tmp_path / 't.parquet')!r}]) =="
            " 0\nprint(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        peaks.append(int(done.stdout))
        assert pl.read_parquet(tmp_path / "t.parquet").height == 180 * times
    assert peaks[1] < 1.5 * peaks[0], peaks
