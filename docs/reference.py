"""Write the reference from the program itself: commands, settings, documents, error codes, doors,
Python.

    python docs/reference.py FOLDER

FOLDER gets what the site is built from (`make docs`): the pages of docs/, the changelog, and
`reference/`. The repository does not keep the reference, so it cannot be out of date.
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
"""Commands that have an option with the name of a setting but do not read the setting."""


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
    """A text as Markdown in which nothing is taken for a tag or for emphasis."""
    return text.replace("<", "&lt;").replace("*", "\\*")


def options(command: click.Command, name: str, context: click.Context) -> Iterator[list[str]]:
    """A row for each option: its names and values; its help with its default and its setting."""
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            yield [_option_names(option, context), _option_help(option, name, context)]


def _option_names(option: click.Option, context: click.Context) -> str:
    names = code(*option.opts, *option.secondary_opts)
    if not option.is_flag and not option.count:
        names += f" {code(option.make_metavar(context))}"
    return f"{names}, repeatable" if option.multiple else names


def _option_help(option: click.Option, command: str, context: click.Context) -> str:
    # The help texts end with the default in brackets.
    text = re.sub(r"  \[(?:default: )?(.+)\]$", r" Default: \1.", plain(option.help or ""))
    default = option.get_default(context)
    has_value = not (option.is_flag or option.count)
    if "Default" not in text and has_value and isinstance(default, int | float | str):
        text += f" Default: {code(default)}."
    setting = option.opts[0].removeprefix("--").replace("-", "_")
    if setting in config.SETTINGS and not command.startswith(WITHOUT_SETTINGS):
        text += f" Setting: [{code(setting)}](settings.md)."
    return text


def commands() -> list[str]:
    """Every command with its help, options and examples."""
    context = cli.app.make_context("ambjudge", [], resilient_parsing=True)
    lines = ["# Commands", "", plain(inspect.cleandoc(cli.app.help or "")), ""]
    lines += table(["Option", "Does"], options(cli.app, "", context))
    lines += ["", "## Exit codes", "", plain(" ".join(cli.EXIT_CODES.replace("\b", "").split()))]
    for name in COMMANDS:
        command = cli.app.get_command(context, name)
        assert command is not None
        lines += _command_section(command, name, context)
    return lines


def _command_section(command: click.Command, name: str, parent: click.Context) -> list[str]:
    """Usage, help, options and examples of a command, then its subcommands."""
    context = click.Context(command, info_name=name, parent=parent)
    usage = f"{context.command_path} {' '.join(command.collect_usage_pieces(context))}"
    level = "###" if " " in name else "##"
    lines = ["", f"{level} {name}", "", "```text", usage, "```", ""]
    lines += plain(inspect.cleandoc((command.help or "").replace("\b\n", ""))).split("\n")
    rows = list(options(command, name, context))
    if rows:
        lines += ["", *table(["Option", "Does"], rows)]
    if command.epilog:
        examples = command.epilog.replace("\b\n", "").split("\n")[1:]
        lines += ["", "```text", *(line.strip() for line in examples), "```"]
    if isinstance(command, click.Group):
        for subname in command.list_commands(context):
            subcommand = command.get_command(context, subname)
            if subcommand is not None:
                lines += _command_section(subcommand, f"{name} {subname}", context)
    return lines


def settings() -> list[str]:
    """Every setting, its variable and its values; the errors that the program can end with."""
    flags = _flags_of_commands()
    rows = [
        [
            code(name),
            setting.kind.__name__,
            _setting_values(setting),
            code(f"AMBJUDGE_{name.upper()}"),
            code(f"--{name.replace('_', '-')}") if name in flags else "",
        ]
        for name, setting in config.SETTINGS.items()
    ]
    error_rows = [
        [code(name), str(kind.exit_code), plain(inspect.getdoc(kind) or "")]
        for name, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, ambjudge.AmbjudgeError)
    ]
    return [
        "# Settings and errors",
        "",
        plain(inspect.getdoc(config) or ""),
        "",
        plain(inspect.getdoc(config.find_file) or ""),
        "",
        "`score`, `rejudge` and `ask` take most of them as flags; others read the settings.",
        "",
        *table(["Setting", "Type", "Values", "Variable", "Flag"], rows),
        "",
        "## Errors",
        "",
        *table(["Error", "Exit code", "Is"], error_rows),
    ]


def _flags_of_commands() -> set[str]:
    """The options of all commands as the settings spell them."""
    options = [
        param
        for name in COMMANDS
        for param in commands_door().get(name).params
        if isinstance(param, click.Option) and not param.hidden
    ]
    return {option.opts[0].removeprefix("--").replace("-", "_") for option in options}


def _setting_values(setting: config.Setting) -> str:
    if setting.choices:
        return code(*setting.choices)
    if setting.is_bounded:
        return f"{setting.low:g} to {setting.high:g}"
    return "names" if setting.kind is list else ""


def field_docs(module: ModuleType) -> dict[tuple[str, str], str]:
    """(class, field) -> the docstring below the field in the source of a module."""
    docs: dict[tuple[str, str], str] = {}
    for node in ast.parse(inspect.getsource(module)).body:
        if not isinstance(node, ast.ClassDef):
            continue
        bases = {base.id for base in node.bases if isinstance(base, ast.Name)}
        inherited = {field: text for (name, field), text in docs.items() if name in bases}
        docs |= {(node.name, field): text for field, text in inherited.items()}
        for pair in pairwise(node.body):
            match pair:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(
                    value=ast.Constant(value=str(text))
                ):
                    docs[node.name, name] = inspect.cleandoc(text)
    return docs


def describe_type(schema: Mapping[str, Any]) -> str:
    """What a JSON Schema allows, in a few words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    alternatives = schema.get("anyOf", schema.get("oneOf"))
    if alternatives:
        return " or ".join(dict.fromkeys(map(describe_type, alternatives)))
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return code(*(json.dumps(value) for value in values))
    if "prefixItems" in schema:
        return f"[{', '.join(map(describe_type, schema['prefixItems']))}]"
    if schema.get("type") == "array":
        return f"list of {describe_type(schema.get('items', {}))}"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"object of {describe_type(schema['additionalProperties'])}"
    kind = schema.get("type", "any")
    name = kind if isinstance(kind, str) else " or ".join(kind)
    low, high = schema.get("minimum"), schema.get("maximum")
    is_bounded = low is not None and high is not None and high < 1e6
    return f"{name} {low:g} to {high:g}" if is_bounded else name


def schema_tables(
    schema: Mapping[str, Any], docs: Mapping[tuple[str, str], str], title: str
) -> list[str]:
    """A JSON Schema as tables: one of the document, one of each kind of part."""
    lines: list[str] = []
    for name, part in ((title, schema), *schema.get("$defs", {}).items()):
        description = part.get("description", "").partition("\n\n")[0]
        lines += ["", f"## {name}", "", plain(description)]
        fields = part.get("properties", {})
        if not fields:
            own_type = {key: value for key, value in part.items() if key != "$ref"}
            lines += ["", describe_type(own_type)]
            continue
        rows = []
        for key, field in fields.items():
            text = field.get("description") or docs.get((name, key), "")
            needed = ", needed" if key in part.get("required", ()) else ""
            rows.append([code(key), f"{describe_type(field)}{needed}. {plain(text)}"])
        lines += ["", *table(["Field", "Holds"], rows)]
    return lines


def model_tables(model: type[BaseModel], *modules: ModuleType) -> list[str]:
    """A pydantic model and the models in it, with the docstring of each field."""
    docs = {key: text for module in modules for key, text in field_docs(module).items()}
    base_names = {base.__name__ for base in model.__mro__}
    for (name, field), text in list(docs.items()):
        if name in base_names:
            docs[model.__name__, field] = text
    schema = model.model_json_schema(by_alias=True, mode="serialization")
    return schema_tables(schema, docs, model.__name__)


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
    return [top, *model_tables(ScoreCard, *modules)]


def run() -> list[str]:
    """What the files of a run become."""
    from ambjudge.trajectories import models

    top = (
        "# Run\n\nWhat `ambjudge.load_run` makes of a [run folder](../run-folder.md); fields as in"
        " Python."
    )
    return [top, *model_tables(models.Run, models)]


def rubric() -> list[str]:
    """What a rubric file may hold."""
    schema = json.loads((ROOT / "rubrics" / "rubric.schema.json").read_text("utf-8"))
    top = (
        "# Rubric file\n\nYAML of this form; [how to write one](../rubrics.md). [As JSON"
        " Schema](rubric.schema.json)."
    )
    return [top, *schema_tables(schema, {}, "rubric")]


def error_codes() -> list[str]:
    """Both taxonomies, and the detectors that find codes without a model."""
    from ambjudge.error_codes.registry import detectors
    from ambjudge.error_codes.taxonomy import taxonomy

    lines = ["# Error codes", "", "How they are found and read: [error codes](../error-codes.md)."]
    for name in ("paper", "harness"):
        lines += ["", f"## {name}: {taxonomy(name).title}"]
        for entry in taxonomy(name).codes:
            lines += ["", f"### {name} {entry.code}: {entry.name}", "", plain(entry.description)]
            lines += _bullets("Counts:", map(plain, entry.counts))
            lines += _bullets("Does not:", map(plain, entry.does_not))
            nearest = [f"{other}: {plain(text)}" for other, text in entry.nearest.items()]
            lines += _bullets("Or another code:", nearest)
        rows = [
            [code(d.name), d.code, d.stage, d.fact or d.independence, plain(d.doc)]
            for d in detectors(name)
        ]
        heads = ["Detector", "Code", "Stage", "Rests on", "Finds"]
        lines += ["", f"### {name}: found without a model", "", *table(heads, rows)]
    return lines


def _bullets(head: str, texts: Iterable[str]) -> list[str]:
    bullets = [f"- {text}" for text in texts]
    return ["", head, "", *bullets] if bullets else []


def doors() -> list[str]:
    """The built-in names behind each door."""
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
        rows = [
            [code(name), code(plugin.target)]
            for name, plugin in door.entries.items()
            if not plugin.package
        ]
        lines += [
            "",
            f"## ambjudge.{door.group}",
            "",
            f"A {door.noun}.",
            "",
            *table(["Name", "Where"], rows),
        ]
    return lines


def python() -> list[str]:
    """The public names, as `help` shows them."""
    lines = ["# Python names", "", "`import ambjudge`; [in use](../python.md)."]
    for name in ambjudge.__all__:
        value = getattr(ambjudge, name)
        if not callable(value):
            continue
        lines += ["", f"## {name}", "", "```python", _signature(name, value), "```", ""]
        lines += inspect.cleandoc(value.__doc__ or "").split("\n")
    return lines


def _signature(name: str, value: Any) -> str:
    """The call of a function without quotes around annotations; of a class its name."""
    if inspect.isclass(value):
        return name
    text = re.sub(r"(: |-> )'([^']*)'", r"\1\2", f"{name}{inspect.signature(value)}")
    return text.replace(", *, ", ",\n    *, ")


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
    """Write all that the site is built from; an earlier folder is replaced."""
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
