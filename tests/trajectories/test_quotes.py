"""A quote is verified in its turn, moved if it is in another, and never found by resemblance."""

import json
from pathlib import Path

import pytest
from ambjudge.trajectories.reading.load import load_run
from ambjudge.trajectories.record import QuoteIndex, check_quote, make_record
from ambjudge.trajectories.record.quotes import normalise
from ambjudge.trajectories.turns.segment import segment
from hypothesis import given, settings
from hypothesis import strategies as st

CODE = 'print("a\\tb")\nx = {"key": "caf\u00e9"}\nif x:\n    run(x)'


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quotes")
    call = {"name": "execute_code", "arguments": json.dumps({"language": "python", "code": CODE})}
    result = {
        "exit_code": 0,
        "stdout": "loss  0.25\nall keys\n   matched ...",
        "stderr": "warning: slow",
    }
    submit = {"name": "submit_results", "arguments": json.dumps({"note": "line1\nline2"})}
    messages = [
        {"role": "user", "content": "brief only words"},
        {
            "role": "assistant",
            "content": "First I “look” at it.",
            "reasoning": "because of doubt",
            "tool_calls": [{"id": "1", "type": "function", "function": call}],
        },
        {"role": "tool", "tool_call_id": "1", "content": json.dumps(result)},
        {
            "role": "assistant",
            "content": "loss 0.25 again",
            "tool_calls": [{"id": "2", "type": "function", "function": submit}],
        },
        {"role": "tool", "tool_call_id": "2", "content": "{}"},
        {"role": "assistant", "content": "The end."},
    ]
    path = folder / "conversation.json"
    path.write_text(json.dumps({"messages": messages}), encoding="utf-8")
    (folder / "plan").mkdir()
    (folder / "plan" / "plan.md").write_text("# Plan\nuse the model", encoding="utf-8")
    return load_run(path)


@pytest.mark.parametrize(
    ("turn", "quote", "check", "found_turn"),
    [
        pytest.param(1, "First I “look” at it.", "verified", None, id="text"),
        pytest.param(1, "because of doubt", "verified", None, id="reasoning"),
        pytest.param(1, 'x = {"key": "café"}', "verified", None, id="code"),
        pytest.param(1, 'x = {\\"key\\": \\"caf\\u00e9\\"}', "verified", None, id="json-escapes"),
        pytest.param(1, 'x = {"key": "cafe\u0301"}', "verified", None, id="decomposed-accent"),
        pytest.param(1, "loss 0.25 all keys matched", "verified", None, id="white-space-collapsed"),
        pytest.param(1, "loss 0.25\\nall keys", "verified", None, id="escaped-newline"),
        pytest.param(1, "loss ... matched", "verified", None, id="ellipsis"),
        pytest.param(1, "matched ...", "verified", None, id="literal-ellipsis"),
        pytest.param(2, "submit_results", "verified", None, id="tool-name"),
        pytest.param(0, "use the model", "verified", None, id="plan"),
        pytest.param(2, "use the model", "moved", 0, id="plan-cited-as-turn"),
        pytest.param(3, "warning: slow", "moved", 1, id="other-turn"),
        pytest.param(3, "loss 0.25", "moved", 2, id="nearest-other-turn"),
        pytest.param(99, "The end.", "moved", 3, id="turn-that-is-not-there"),
        pytest.param(1, "matched ... loss", "not_found", None, id="ellipsis-in-wrong-order"),
        pytest.param(1, "loss ... nothing", "not_found", None, id="ellipsis-part-missing"),
        pytest.param(1, 'First I "look" at it.', "not_found", None, id="typographic-quotes-differ"),
        pytest.param(1, "first i “look” at it.", "not_found", None, id="case-differs"),
        pytest.param(1, "loss 0.26", "not_found", None, id="another-number"),
        pytest.param(1, "at it. because of", "not_found", None, id="not-across-text-and-reasoning"),
        pytest.param(0, "brief only words", "verified", None, id="brief"),
        pytest.param(1, "brief only words", "moved", 0, id="brief-cited-as-turn"),
        pytest.param(0, "use the model brief", "not_found", None, id="not-across-plan-and-brief"),
        pytest.param(
            1, "all keys [… 12 similar lines …] matched", "verified", None, id="mark-of-the-record"
        ),
        pytest.param(1, "", "not_found", None, id="empty"),
        pytest.param(1, "...", "not_found", None, id="only-ellipsis"),
        pytest.param(1, "{", "not_found", None, id="only-punctuation"),
        pytest.param(1, "\x00", "not_found", None, id="nul"),
    ],
)
def test_where_a_quote_stands(run, turn, quote, check, found_turn):
    evidence = check_quote(run, turn, quote)
    assert (evidence.check, evidence.found_turn) == (check, found_turn)
    assert (evidence.turn, evidence.quote) == (turn, quote)


@given(st.text(), st.text())
@settings(max_examples=80, deadline=None)
def test_any_text_is_checked_without_an_error(run, quote, more):
    QuoteIndex(run).check(1, quote + more)
    assert normalise(normalise(quote)) == normalise(normalise(normalise(quote)))


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_every_slice_of_a_turn_with_words_is_verified(run, data):
    output = run.turn(1).output
    start = data.draw(st.integers(0, len(output) - 1))
    quote = output[start : data.draw(st.integers(start + 1, len(output)))]
    expected = "verified" if any(c.isalnum() for c in quote) else "not_found"
    assert QuoteIndex(run).check(1, quote).check == expected


def test_a_line_copied_from_the_record_is_found_with_what_sanitize_replaced(tmp_path: Path):
    output = "start\x1b[31m red \u202e end\r\nnext \x00 line\n" + "\n".join(
        f"{i} of {i * i}: {7 * i}" for i in range(9)
    )
    result = json.dumps({"exit_code": 0, "stdout": output, "stderr": ""})
    call = {"name": "execute_code", "arguments": json.dumps({"language": "bash", "code": "cat x"})}
    messages = [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "1", "type": "function", "function": call}],
        },
        {"role": "tool", "tool_call_id": "1", "content": result},
    ]
    path = tmp_path / "conversation.json"
    path.write_text(json.dumps(messages), encoding="utf-8")
    run = load_run(path)
    record = make_record(run, segment(run))
    for words in ("start␛[31m red ⇄ end", "next ␀ line", "8 of 64: 56"):
        assert words in record.text
        assert check_quote(run, 1, words).check == "verified"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a" + "\u0301\u0316" * 400_000, id="combining-marks"),
        pytest.param("█" * 1_000_000, id="bars"),
        pytest.param("\\" * 1_000_000, id="backslashes"),
        pytest.param("[… " * 300_000, id="open-marks"),
        pytest.param("x ... " * 300_000, id="ellipses"),
        pytest.param("( . . . " * 200_000, id="brackets"),
    ],
)
def test_hostile_texts_and_quotes_are_checked_in_bounded_time(run, text, no_runaway):
    hostile = run.model_copy(
        update={"turns": (run.turns[0].model_copy(update={"text": text}), *run.turns[1:])}
    )
    with no_runaway():
        index = QuoteIndex(hostile)
        assert index.check(2, "a" + text[:1_000] + "never said").check == "not_found"
        assert index.check(1, text + " never said").check == "not_found"
