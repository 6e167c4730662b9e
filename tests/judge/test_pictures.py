"""Pictures that go to a model that takes images: drawn anew, within limits, a reason for what is
not shown."""

from __future__ import annotations

import io
import json
import shutil
import struct
import zlib
from pathlib import Path

import pytest
from ambjudge.judge.judges.api.pictures import MAX_SIDE, output_pictures, plan_picture
from ambjudge.trajectories.reading.load import load_run
from PIL import Image

RECORDED = Path(__file__).parents[1] / "data" / "recorded"


def _run(folder: Path, name: str = "bccd-std-01") -> Path:
    copy = folder / name
    shutil.copytree(RECORDED / "runs" / name, copy)
    return copy


def _plan_png(folder: Path, data: bytes) -> Path:
    run = _run(folder)
    for old in run.rglob("plan.png"):
        old.unlink()
    place = run / "outputs" / "plan"
    place.mkdir(parents=True, exist_ok=True)
    (place / "plan.png").write_bytes(data)
    return run


def _png(width: int, height: int) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (width, height), (10, 200, 30)).save(out, "PNG")
    return out.getvalue()


def _bomb() -> bytes:
    """A few hundred bytes whose header promises 10 gigapixels."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    head = struct.pack(">IIBBBBB", 100_000, 100_000, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(b"\0" * 1_000))
        + chunk(b"IEND", b"")
    )


def test_a_large_plan_is_sent_small_and_drawn_anew(tmp_path: Path) -> None:
    picture = plan_picture(
        load_run(_plan_png(tmp_path, _png(3_000, 1_500) + b"<script>trailing bytes</script>"))
    )
    assert picture is not None
    assert picture.png is not None
    assert b"script" not in picture.png
    with Image.open(io.BytesIO(picture.png)) as image:
        assert image.size == (MAX_SIDE, MAX_SIDE // 2)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        pytest.param(_bomb(), "DecompressionBomb", id="bomb"),
        pytest.param(_png(8_000, 8_000), "pixels", id="too-many-pixels"),
        pytest.param(b"not a picture", "UnidentifiedImageError", id="text"),
        pytest.param(_png(40, 40)[:60], "cannot be read", id="cut"),
        pytest.param(b"", "cannot be read", id="empty"),
    ],
)
def test_what_cannot_be_shown_has_a_reason_and_no_picture(
    tmp_path: Path, data: bytes, why: str
) -> None:
    picture = plan_picture(load_run(_plan_png(tmp_path, data)))
    assert picture is not None
    assert picture.png is None
    assert why in picture.problem


def test_a_link_that_leaves_the_run_is_not_followed(tmp_path: Path) -> None:
    run = _plan_png(tmp_path, b"")
    secret = tmp_path / "secret.png"
    secret.write_bytes(_png(10, 10))
    (run / "outputs" / "plan" / "plan.png").unlink()
    (run / "outputs" / "plan" / "plan.png").symlink_to(secret)
    picture = plan_picture(load_run(run))
    assert picture is None or picture.png is None


def test_a_link_that_took_the_place_of_the_file_since_is_not_followed(tmp_path: Path) -> None:
    run = load_run(_plan_png(tmp_path, _png(10, 10)))
    secret = run.plan.image_path.rename(tmp_path / "secret.png")
    run.plan.image_path.symlink_to(secret)
    picture = plan_picture(run)
    assert picture.png is None
    assert "is a link that leaves the run" in picture.problem


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        pytest.param("kidney-lite-01", ["lesion.nii.gz", "organ.nii.gz"], id="masks"),
        pytest.param("bccd-lite-01", ["prediction.json"], id="boxes"),
        pytest.param("ldct-lite-01", ["enhanced.npy"], id="images"),
        pytest.param("crc-lite-01", [], id="labels"),
    ],
)
def test_one_output_of_each_kind_lies_over_its_input(name: str, shown: list[str]) -> None:
    pictures = output_pictures(load_run(RECORDED / "runs" / name), RECORDED / "public")
    assert [next(s for s in shown if s in p.title) for p in pictures] == shown
    for picture in pictures:
        assert picture.png is not None, picture.problem
        assert "input" in picture.title
        with Image.open(io.BytesIO(picture.png)) as image:
            assert max(image.size) <= MAX_SIDE
            colours = {
                pixel
                for _, pixel in image.convert("RGB").getcolors(image.width * image.height) or ()
            }
        red = any(r > g + 60 and r > b + 60 for r, g, b in colours)
        assert red == (" in red" in picture.title)


def test_broken_outputs_are_named_not_drawn(tmp_path: Path) -> None:
    run = _run(tmp_path, "kidney-lite-01")
    for file in run.rglob("*.nii.gz"):
        file.write_bytes(b"\x1f\x8b broken")
    pictures = output_pictures(load_run(run), None)
    assert pictures
    assert all(p.png is None and p.problem for p in pictures)
    boxes = _run(tmp_path, "bccd-lite-01")
    for file in boxes.rglob("prediction.json"):
        file.write_text(
            json.dumps(
                {"boxes": [{"x1": 1e308, "y1": "a"}, None, {"x1": 9, "y1": 9, "x2": 1, "y2": 1}]}
            )
        )
    (picture,) = output_pictures(load_run(boxes), RECORDED / "public")
    assert picture.png is not None
