"""What a dry run says before money is spent, and the budget of a month over all commands."""

from __future__ import annotations

import json
from pathlib import Path

from ambjudge.testing import tiny_run


def test_a_dry_run_leaves_no_store_and_a_month_limits_all_commands(
    out, judge_server, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        tiny_run(tmp_path / "runs" / name, brief=f"Do task {name} for 2 cases.")
    judge = ("--judge", "m", "--api-base", judge_server.url, "--price", "1,5", "--store", "s.db")
    command = ("score", "runs", *judge)

    code, text, _ = out(*command, "--dry-run", "--max-cost", "0.001")
    assert (code, judge_server.count, (tmp_path / "s.db").exists()) == (0, 0, False)
    assert "expected cost $" in text
    assert "a limit of $0.0010 covers about 0 of " in text
    table = text.split("\n\n")[0].splitlines()
    assert len(table) <= 4, "a line for the rubric and one for the codes"
    assert "a limit of $9.00 covers the plan" in out(*command, "--dry-run", "--max-cost", "9")[1]

    assert out(*command)[0] == 0
    spent = json.loads(out("rejudge", "runs", *judge, "--dry-run", "--json")[1])["spending"]
    assert 0 < spent["spent_usd"] == spent["spent_this_month_usd"]

    (tmp_path / "ambjudge.toml").write_text(f"max_cost_month = {spent['spent_usd']}\n", "utf-8")
    before = judge_server.count
    code, _, err = out("rejudge", "runs", *judge, "--temperature", "0.5")
    assert (code, judge_server.count) == (1, before), "nothing is left of the month"
    assert "spent this month $" in err
    code, _, _ = out("ask", "runs", "Did it end well?", *judge)
    assert (code, judge_server.count) == (1, before), "over all commands"
    assert out("ask", "runs", "Did it end well?", *judge, "--max-cost-month", "9")[0] == 0
    assert judge_server.count == before + 2
