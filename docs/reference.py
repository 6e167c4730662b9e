"""The pages of the reference, written from the program itself: commands, settings, documents, error
codes, doors, Python.

    python docs/reference.py FOLDER

FOLDER gets what the site is built from (`make docs`): the pages of docs/ as they are, the changes,
and `reference/`. Nothing of the reference is kept in the repository, so that none of it can be out
of date.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import ambjudge
import click
from ambjudge import cli, config, errors
from ambjudge.commands.registry import COMMANDS
from ambjudge.commands.registry import commands as commands_door
from pydantic import BaseModel

ROOT = Path(__file__).parents[1]
WITHOUT_SETTINGS = ("import", "label", "rubric show", "verify")
"""Commands of whose options some have the name of a setting that they do not read."""


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table in Markdown; nothing in a cell can end it."""
    lines = [heads, ["---"] * len(heads), *rows]
    return [
        "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in row) + " |"
        for row in lines
    ]


def code(*texts: object) -> str:
    """Texts as code, one after the other."""
    return ", ".join(f"`{text}`" for text in texts)


def plain(text: str) -> str:
    """Words of ours as Markdown: what looks like a tag is none."""
    return text.replace("<", "&lt;").replace("*", "\\*")


def options(command: click.Command, name: str, context: click.Context) -> Iterator[list[str]]:
    """A row an option: its names and values; its help with its default and its setting."""
    for option in command.params:
        if not isinstance(option, click.Option) or option.hidden:
            continue
        names = [*option.opts, *option.secondary_opts]
        value = option.make_metavar(context) if not option.is_flag and not option.count else ""
        shown = (
            code(*names)
            + (f" {code(value)}" if value else "")
            + (", repeatable" if option.multiple else "")
        )
        said = re.sub(r"  \[(?:default: )?(.+)\]$", r" Default: \1.", plain(option.help or ""))
        given = option.get_default(context)
        if (
            "Default" not in said
            and isinstance(given, int | float | str)
            and not (option.is_flag or option.count)
        ):
            said += f" Default: {code(given)}."
        setting = names[0].removeprefix("--").replace("-", "_")
        if setting in config.SETTINGS and not name.startswith(WITHOUT_SETTINGS):
            said += f" Setting: [{code(setting)}](settings.md)."
        yield [shown, said]


def commands() -> list[str]:
    """Every command with its help, options and examples."""
    context = cli.app.make_context("ambjudge", [], resilient_parsing=True)
    lines = ["# Commands", "", plain(inspect.cleandoc(cli.app.help or "")), ""]
    heads = ["Option", "Does"]
    lines += [*table(heads, options(cli.app, "", context)), "", "## Exit codes", ""]
    lines += [plain(" ".join(cli._EPILOG.partition("\b\nExample")[0].replace("\b", "").split()))]

    def each(command: click.Command, name: str, parent: click.Context) -> None:
        here = click.Context(command, info_name=name, parent=parent)
        usage = f"{here.command_path} {' '.join(command.collect_usage_pieces(here))}"
        lines.extend(
            ["", f"{'###' if ' ' in name else '##'} {name}", "", "```text", usage, "```", ""]
        )
        text = (command.help or "").replace("\b\n", "")
        lines.extend(plain(inspect.cleandoc(text)).split("\n"))
        if rows := list(options(command, name, here)):
            lines.extend(["", *table(heads, rows)])
        if command.epilog:
            shown = command.epilog.replace("\b\n", "").split("\n")[1:]
            lines.extend(["", "```text", *(line.strip() for line in shown), "```"])
        if isinstance(command, click.Group):
            for below in command.list_commands(here):
                if (found := command.get_command(here, below)) is not None:
                    each(found, f"{name} {below}", here)

    for name in COMMANDS:
        found = cli.app.get_command(context, name)
        assert found is not None
        each(found, name, context)
    return lines


def settings() -> list[str]:
    """Every setting, its variable and its values; the errors that the program can end with."""
    lines = [
        "# Settings and errors",
        "",
        plain(inspect.getdoc(config) or ""),
        "",
        plain(inspect.getdoc(config.find_file) or ""),
    ]
    rows = []
    for name, (kind, allowed) in config.SETTINGS.items():
        low, high = config._RANGES.get(name, (0, 0))
        values = (
            code(*allowed)
            if allowed
            else f"{low:g} to {high:g}"
            if high
            else {"list": "names"}.get(kind.__name__, "")
        )
        rows.append(
            [
                code(name),
                kind.__name__,
                values,
                code(f"AMBJUDGE_{name.upper()}"),
                code(f"--{name.replace('_', '-')}"),
            ]
        )
    lines += [
        "",
        *table(["Setting", "Type", "Values", "Variable", "Option"], rows),
        "",
        "## Errors",
        "",
    ]
    kinds = [
        e
        for _, e in inspect.getmembers(errors, inspect.isclass)
        if issubclass(e, ambjudge.AmbjudgeError)
    ]
    rows = [
        [code(kind.__name__), str(kind.exit_code), plain(inspect.getdoc(kind) or "")]
        for kind in kinds
    ]
    return [*lines, *table(["Error", "Exit code", "Is"], rows)]


def said_of_fields(module: ModuleType) -> dict[tuple[str, str], str]:
    """(class, field) -> the text below the field in the source of a module."""
    found: dict[tuple[str, str], str] = {}
    for kind in ast.parse(inspect.getsource(module)).body:
        if isinstance(kind, ast.ClassDef):
            bases = {base.id for base in kind.bases if isinstance(base, ast.Name)}
            inherited = {field: text for (name, field), text in found.items() if name in bases}
            found |= {(kind.name, field): text for field, text in inherited.items()}
            for pair in pairwise(kind.body):
                match pair:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(
                        value=ast.Constant(value=str(text))
                    ):
                        found[kind.name, name] = inspect.cleandoc(text)
    return found


def values_of(schema: Mapping[str, Any]) -> str:
    """What a JSON Schema allows, in a few words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if kinds := schema.get("anyOf", schema.get("oneOf")):
        return " or ".join(dict.fromkeys(values_of(kind) for kind in kinds))
    if "enum" in schema or "const" in schema:
        return code(*(json.dumps(value) for value in schema.get("enum", [schema.get("const")])))
    if "prefixItems" in schema:
        return f"[{', '.join(values_of(item) for item in schema['prefixItems'])}]"
    if schema.get("type") == "array":
        return f"list of {values_of(schema.get('items', {}))}"
    if isinstance(more := schema.get("additionalProperties"), dict):
        return f"object of {values_of(more)}"
    low, high = schema.get("minimum"), schema.get("maximum")
    bounded = low is not None and high is not None and high < 1e6
    kind = schema.get("type", "any")
    name = kind if isinstance(kind, str) else " or ".join(kind)
    return f"{name} {low:g} to {high:g}" if bounded else name


def documents(
    schema: Mapping[str, Any], said: Mapping[tuple[str, str], str], title: str
) -> list[str]:
    """A JSON Schema as tables: one of the document, one of each kind of part."""
    lines: list[str] = []
    for name, part in ((title, schema), *schema.get("$defs", {}).items()):
        fields = part.get("properties", {})
        lines += ["", f"## {name}", "", plain(part.get("description", "").partition("\n\n")[0])]
        if not fields:
            lines += ["", values_of({key: value for key, value in part.items() if key != "$ref"})]
        needed = part.get("required", ())
        rows = []
        for key, field in fields.items():
            text = field.get("description") or said.get((name, key), "")
            needs = ", needed" if key in needed else ""
            rows.append([code(key), f"{values_of(field)}{needs}. {plain(text)}"])
        lines += ["", *table(["Field", "Holds"], rows)] if rows else []
    return lines


def of_model(model: type[BaseModel], *modules: ModuleType) -> list[str]:
    """A pydantic model and the models in it, with what the source says of each field."""
    said = {key: text for module in modules for key, text in said_of_fields(module).items()}
    inherited_from = {base.__name__ for base in model.__mro__}
    for (name, field), text in list(said.items()):
        if name in inherited_from:
            said[model.__name__, field] = text
    return documents(
        model.model_json_schema(by_alias=True, mode="serialization"), said, model.__name__
    )


def scorecard() -> list[str]:
    """The document that `score` writes."""
    from ambjudge.error_codes import models as code_models
    from ambjudge.error_codes import output_facts
    from ambjudge.judge.card import fields, stage_results
    from ambjudge.judge.card.scorecard import ScoreCard
    from ambjudge.trajectories import models, summary
    from ambjudge.trajectories.record import facts, quotes

    top = (
        "# Scorecard\n\nOne JSON object a run, as `ambjudge score --json` writes it. [As JSON"
        " Schema](scorecard.schema.json)."
    )
    modules = (
        fields,
        stage_results,
        code_models,
        output_facts,
        models,
        summary,
        facts,
        quotes,
    )
    return [top, *of_model(ScoreCard, *modules)]


def run() -> list[str]:
    """What the files of a run become."""
    from ambjudge.trajectories import models

    top = (
        "# Run\n\nWhat `ambjudge.load_run` makes of a [run folder](../run-folder.md); fields as in"
        " Python."
    )
    return [top, *of_model(models.Run, models)]


def rubric() -> list[str]:
    """What a rubric file may hold."""
    schema = json.loads((ROOT / "rubrics" / "rubric.schema.json").read_text("utf-8"))
    top = (
        "# Rubric file\n\nYAML of this form; [how to write one](../rubrics.md). [As JSON"
        " Schema](rubric.schema.json)."
    )
    return [top, *documents(schema, {}, "rubric")]


def error_codes() -> list[str]:
    """Both taxonomies, and what shows a code without a model."""
    from ambjudge.error_codes.registry import detectors
    from ambjudge.error_codes.taxonomy import taxonomy

    lines = ["# Error codes", "", "How they are found and read: [error codes](../error-codes.md)."]
    for name in ("paper", "harness"):
        lines += ["", f"## {name}: {taxonomy(name).title}"]
        for one in taxonomy(name).codes:
            lines += ["", f"### {name} {one.code}: {one.name}", "", plain(one.description)]
            for head, texts in (("Counts", one.counts), ("Does not", one.does_not)):
                lines += (
                    ["", f"{head}:", "", *(f"- {plain(text)}" for text in texts)] if texts else []
                )
            near = [f"- {other}: {plain(text)}" for other, text in one.nearest.items()]
            lines += ["", "Or another code:", "", *near] if near else []
        rows = [
            [code(d.name), d.code, d.stage, d.fact or d.independence, plain(d.doc)]
            for d in detectors(name)
        ]
        heads = ["Detector", "Code", "Stage", "Rests on", "Finds"]
        lines += ["", f"### {name}: shown without a model", "", *table(heads, rows)]
    return lines


def doors() -> list[str]:
    """What stands behind each door by itself."""
    from ambjudge.analysis.report.report_tables import TABLES
    from ambjudge.error_codes.registry import DETECTORS
    from ambjudge.judge.select import JUDGES
    from ambjudge.tracks import TRACKS
    from ambjudge.trajectories.importers import IMPORTERS
    from ambjudge.trajectories.importers.exporters import EXPORTERS

    lines = [
        "# Doors",
        "",
        "Entry-point groups by which packages add to ambjudge; [how](../extending.md).",
    ]
    for door in (TRACKS, DETECTORS, JUDGES, IMPORTERS, EXPORTERS, TABLES, commands_door()):
        own = [(name, plugin.target) for name, plugin in door.entries.items() if not plugin.package]
        rows = [[code(name), code(target)] for name, target in own]
        lines += [
            "",
            f"## ambjudge.{door.group}",
            "",
            f"A {door.what}.",
            "",
            *table(["Name", "Where"], rows),
        ]
    return lines


def python() -> list[str]:
    """The public names, as `help` shows them."""
    lines = ["# Python names", "", "`import ambjudge`; [in use](../python.md)."]
    for name in ambjudge.__all__:
        found = getattr(ambjudge, name)
        if not callable(found):
            continue
        shown = name if inspect.isclass(found) else f"{name}{inspect.signature(found)}"
        shown = re.sub(r"(: |-> )'([^']*)'", r"\1\2", shown).replace(", *, ", ",\n    *, ")
        lines += ["", f"## {name}", "", "```python", shown, "```", ""]
        lines += inspect.cleandoc(found.__doc__ or "").split("\n")
    return lines


PAGES = {
    "commands": commands,
    "settings": settings,
    "scorecard": scorecard,
    "run": run,
    "rubric": rubric,
    "error-codes": error_codes,
    "doors": doors,
    "python": python,
}


def write(folder: Path) -> None:
    """All that the site is built from, in a folder that was empty or is an earlier one."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(
        ROOT / "docs", folder, ignore=shutil.ignore_patterns("*.py", "*.yml", "__pycache__")
    )
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8").replace("](docs/", "](")
    (folder / "changes.md").write_text(changes, encoding="utf-8")
    (folder / "reference").mkdir()
    for name, page in PAGES.items():
        (folder / "reference" / f"{name}.md").write_text("\n".join(page()) + "\n", encoding="utf-8")
    for schema in ("judge/card/scorecard.schema.json", "rubrics/rubric.schema.json"):
        shutil.copy(ROOT / schema, folder / "reference")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
