"""plan.md and plan.png: their places, and recovering a lost plan from the code that wrote it."""

from __future__ import annotations

import pytest
from ambjudge.trajectories.models import Action, Observation, Turn
from ambjudge.trajectories.reading.layout import RunFolder
from ambjudge.trajectories.reading.messages import make_action
from ambjudge.trajectories.reading.plan_files import MAX_PLAN_BYTES, read_plan, writes_plan_image

OK = Observation(exit_code=0, kind="ok")
UNKNOWN = Observation(stdout="File written", kind="unknown")
FAILED = Observation(exit_code=1, stderr="No such directory", kind="failed")


def run(code: str, language: str | None = "python", observation: Observation | None = OK) -> Action:
    return Action(
        tool="execute_code", kind="execute", language=language, code=code, observation=observation
    )


def tool(name: str, observation: Observation | None = UNKNOWN, **arguments) -> Action:
    return make_action(name, arguments, None).model_copy(update={"observation": observation})


def plan_of(tmp_path, *actions: Action):
    warnings: list[str] = []
    turns = [Turn(index=i, actions=(a,)) for i, a in enumerate(actions, 1)]
    return read_plan(RunFolder(tmp_path), turns, warnings), warnings


PLACES = [
    "outputs/plan",
    "plan",
    "workspace/plan",
    "outputs",
    "process/plan",
    "process",
    "workspace",
    ".",
]


@pytest.mark.parametrize("place", PLACES)
def test_every_place_of_a_plan(place, tmp_path):
    (tmp_path / place).mkdir(parents=True, exist_ok=True)
    (tmp_path / place / "plan.md").write_text("# Plan\n")
    (tmp_path / place / "plan.png").write_bytes(b"png")
    plan, warnings = plan_of(tmp_path, run("open('plan.md','w').write('other')"))
    assert (plan.text, plan.source, plan.turn) == ("# Plan\n", "file", 1)
    assert plan.exists
    assert plan.image_exists
    assert warnings == []


def test_no_plan_at_all(tmp_path):
    plan, warnings = plan_of(tmp_path, run("print('plan.md is a good idea')"))
    assert (plan.text, plan.source, plan.exists, plan.image_exists) == (None, "none", False, False)
    assert warnings == []


PYTHON = {
    "open and write": 'open("/w/plan.md", "w").write("A\\n")',
    "with": 'with open("plan.md", "w") as f:\n    f.write("A\\n")',
    "with, several writes": 'with open("plan.md", "w") as f:\n    f.write("A")\n    f.write("\\n")',
    "path write_text": 'from pathlib import Path\nPath("plan.md").write_text("A\\n")',
    "path joined": (
        'from pathlib import Path\nout = Path("/o")\n(out / "plan.md").write_text("A\\n")'
    ),
    "f-string path": 'open(f"{ROOT}/plan.md", "w").write("A\\n")',
    "concatenation": 'open("plan.md", "w").write("A" + "\\n")',
    "dedent": (
        'import textwrap\nopen("plan.md", "w").write(textwrap.dedent("""\n    A\n""") + "\\n")'
    ),
    "two writes, the last one counts": (
        'open("plan.md", "w").write("B")\nopen("plan.md", "w").write("A\\n")'
    ),
    "inside a function": (
        'def go():\n    with open("plan.md", "w") as f:\n        f.write("A\\n")\ngo()'
    ),
    "magic": "%%writefile out/plan.md\nA\n",
}
SHELL = {
    "cat heredoc": "cat > plan.md <<'EOF'\nA\nEOF",
    "heredoc with dash": "cat <<-END > plan.md\n\tA\n\tEND",
    "echo": "echo 'A' > plan.md",
    "python heredoc": "python3 - <<'EOF'\nopen('plan.md','w').write('A\\n')\nEOF",
    "unclosed heredoc": "cat > plan.md <<EOF\nA",
}


@pytest.mark.parametrize("name", PYTHON)
def test_recovered_from_python(name, tmp_path):
    plan, warnings = plan_of(tmp_path, run("x = 1"), run(PYTHON[name]))
    assert (plan.text, plan.source, plan.turn) == ("A\n", "recovered", 2)
    assert "recovered from the code of turn 2" in warnings[0]


@pytest.mark.parametrize("name", SHELL)
def test_recovered_from_shell(name, tmp_path):
    plan, _ = plan_of(tmp_path, run(SHELL[name], "bash"))
    assert (plan.text, plan.source) == ("A\n", "recovered")


def test_recovered_without_a_named_language(tmp_path):
    assert plan_of(tmp_path, run(SHELL["cat heredoc"], None))[0].text == "A\n"
    assert plan_of(tmp_path, run(PYTHON["with"], None))[0].text == "A\n"


def test_f_string_values_that_are_unknown_stay_marked(tmp_path):
    code = 'name = "UNet"\nopen("plan.md", "w").write(f"Model {name} on {device}\\n")'
    assert plan_of(tmp_path, run(code))[0].text == "Model UNet on {…}\n"


def test_appends_and_edits_add_up_over_turns(tmp_path):
    plan, _ = plan_of(
        tmp_path,
        run("cat > plan.md <<EOF\n# Plan\nstep one\nEOF", "bash"),
        run("cat >> plan.md <<EOF\nstep two\nEOF", "bash"),
        tool("Edit", file_path="/w/plan.md", old_string="step one", new_string="step 1"),
        tool(
            "MultiEdit",
            file_path="/w/plan.md",
            edits=[
                {"old_string": "two", "new_string": "2"},
                {"old_string": "step", "new_string": "Step", "replace_all": True},
            ],
        ),
        tool("Edit", file_path="/w/plan.md", old_string="not there", new_string="x"),
        tool(
            "str_replace_based_edit_tool",
            command="insert",
            path="plan.md",
            insert_line=1,
            insert_text="intro",
        ),
        run("open('plan.md', 'a').write('end')"),
    )
    assert plan.text == "# Plan\nintro\nStep 1\nStep 2\nend"
    assert plan.turn == 7


WRITES = {
    "Write": tool("Write", file_path="/w/plan.md", content="A"),
    "write_file": tool("write_file", path="plan.md", content="A"),
    "create": tool(
        "str_replace_based_edit_tool", command="create", path="/w/plan.md", file_text="A"
    ),
    "edit of nothing": tool("Edit", file_path="plan.md", old_string="", new_string="A"),
}


@pytest.mark.parametrize("name", WRITES)
def test_write_tools(name, tmp_path):
    assert plan_of(tmp_path, WRITES[name])[0].text == "A"


NOT_WRITTEN = {
    "failed": run(PYTHON["with"], observation=FAILED),
    "timed out": run(PYTHON["with"], observation=Observation(exit_code=-1, kind="timeout")),
    "blocked": run(SHELL["echo"], "bash", Observation(exit_code=-1, kind="blocked")),
    "never answered": run(PYTHON["with"], observation=None),
    "refused by the tool": tool(
        "Write",
        Observation(stdout="Error: File has not been read yet", kind="unknown"),
        file_path="plan.md",
        content="A",
    ),
    "other file": run('open("my-plan.md", "w").write("A")'),
    "other suffix": run('open("plan.mdx", "w").write("A")'),
    "read": run('print(open("plan.md").read())'),
    "text that names it": run('open("notes.txt", "w").write("see plan.md")'),
    "printed": run("cat plan.md", "bash"),
    "heredoc to something else": run("cat > notes.md <<EOF\nplan.md\nEOF", "bash"),
    "no syntax": run('with open("plan.md", "w" as f: f.write("A")'),
    "other tool": tool("Read", file_path="plan.md"),
}


@pytest.mark.parametrize("name", NOT_WRITTEN)
def test_what_writes_no_plan(name, tmp_path):
    assert plan_of(tmp_path, NOT_WRITTEN[name])[0].source == "none"


IMAGES = {
    "savefig": ('fig.savefig("plan.png")', True),
    "savefig by name": ('p = "plan.png"\nplt.savefig(p)', True),
    "pillow": ('img.save("out/plan.png")', True),
    "dot": ("dot -Tpng plan.dot -o plan.png", True),
    "mentioned": ('print("plan.png later")', False),
    "other": ('fig.savefig("pilot.png")', False),
}


@pytest.mark.parametrize("name", IMAGES)
def test_writes_of_plan_png(name, tmp_path):
    code, expected = IMAGES[name]
    assert writes_plan_image(run(code)) is expected
    plan, _ = plan_of(tmp_path, run(code), run(code, observation=FAILED))
    assert plan.image_turn == (1 if expected else None)


def test_a_plan_that_is_not_utf8_is_kept_with_a_warning(tmp_path):
    (tmp_path / "plan.md").write_bytes("Größe".encode("latin-1"))
    plan, warnings = plan_of(tmp_path)
    assert plan.text == "Gr\ufffd\ufffde"
    assert warnings == ["plan: plan.md is not UTF-8; broken characters were replaced"]


def test_a_plan_may_hold_replacement_characters_itself(tmp_path):
    (tmp_path / "plan.md").write_text("\ufeffa \ufffd", encoding="utf-8")
    plan, warnings = plan_of(tmp_path)
    assert (plan.text, warnings) == ("a \ufffd", [])


def test_an_endless_plan_is_cut(tmp_path):
    (tmp_path / "plan.md").write_bytes(b"x" * (MAX_PLAN_BYTES + 5))
    plan, warnings = plan_of(tmp_path)
    assert len(plan.text) == MAX_PLAN_BYTES
    assert "the rest was left out" in warnings[0]


@pytest.mark.parametrize("place", ["plan.md", "plan.png"])
def test_a_link_out_of_the_run_is_not_followed(place, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("key")
    folder = tmp_path / "run"
    (folder / "plan").mkdir(parents=True)
    (folder / "plan" / place).symlink_to(secret)
    plan, _ = plan_of(folder)
    assert not plan.exists
    assert not plan.image_exists


BOMBS = {
    "doubling": "x = 'plan.md' * 2\n" + "x = x + x\n" * 200 + "open('plan.md','w').write(x)",
    "two names": (
        "\n".join(f"a{i} = a{i - 1} + a{i - 1}" for i in range(1, 200))
        + "\nopen('plan.md','w').write(a199)"
    ),
    "circle": "a = b + b\nb = a + a\nopen('plan.md','w').write(a)",
    "brackets": "x = " + "(" * 100_000 + "\nopen('plan.md','w')",
    "minus": "x = " + "-" * 50_000 + "1\nopen('plan.md','w').write('a')",
    "long sum": "open('plan.md','w').write(" + "+".join(["'a'"] * 3000) + ")",
    "nul": "open('plan.md','w').write('a')\0",
}
SHELL_BOMBS = {
    "cats": "cat " * 200_000 + "plan.md",
    "openers": "cat <<A " * 50_000 + "plan.md",
    "echos": "echo 'plan.md" * 20_000,
    "heredocs": "cat > plan.md <<E\n" * 20_000,
    "minus o": "-o" * 500_000 + " plan.png",
}


@pytest.mark.parametrize("name", [*BOMBS, *SHELL_BOMBS])
def test_hostile_code_costs_little_time(name, tmp_path, no_runaway):
    action = run(BOMBS[name]) if name in BOMBS else run(SHELL_BOMBS[name], "bash")
    with no_runaway():
        plan_of(tmp_path, action)


def test_an_edit_cannot_blow_up(tmp_path):
    plan, _ = plan_of(
        tmp_path,
        tool("Write", file_path="plan.md", content="a" * 100_000),
        tool(
            "Edit", file_path="plan.md", old_string="a", new_string="b" * 100_000, replace_all=True
        ),
    )
    assert len(plan.text) == 100_000
