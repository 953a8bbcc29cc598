"""README.md and docs/ say what is there: their links, examples, commands, settings and figures."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from jsonschema import Draft202012Validator
from packaging.requirements import Requirement

from adapters.chat import CHATS
from bot.cli import app
from bot.config.section import FORMATS
from bot.config.settings import Settings
from bot.config.workspace import json_schema, load_workspace
from core import VERSION
from tests.benchmarks import __main__ as benchmarks
from tests.benchmarks import report
from tests.cases import every_case
from tests.documentation import messages

ROOT = Path(__file__).parents[2]
DOCS = sorted((ROOT / "docs").glob("*.md"))
EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.yaml"))
OURS = [ROOT / "README.md", ROOT / "BENCHMARKS.md", *DOCS]
PAGES = [*OURS, *(ROOT / f"{name}.md" for name in ("CONTRIBUTING", "SECURITY", "CHANGELOG"))]

WIDTH = 120  # characters of a line
README_LINES = 140
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"""(?:\]\(|(?:src|srcset|href)=")([^)"\s]+)""")

# The tests that run the commands of README and docs, by how these begin.
RUN_BY = {
    "make demo": "test_the_demonstration_of_an_installed_wheel_answers_at_the_address_that_it_prints",
    "make test": "",  # this very run
    "python -m pip install": "test_signed_webhook_of_an_installed_package_opens_an_incident_and_its_source_is_ingested",
    "python -m pytest": "test_contract_suites_run_an_installed_package",
    "plumbline init": "test_the_commands_of_the_readme_lead_from_nothing_to_an_answer",
    "plumbline ingest": "test_the_commands_of_the_readme_lead_from_nothing_to_an_answer",
    "plumbline ask": "test_the_commands_of_the_readme_lead_from_nothing_to_an_answer",
    "plumbline serve": "test_the_commands_of_the_readme_lead_from_nothing_to_an_answer",
    "plumbline mcp": "test_an_editor_asks_over_standard_input_and_output",
    "plumbline doctor": "test_the_commands_of_the_readme_lead_from_nothing_to_an_answer",
    "plumbline backtest": "test_incidents_are_replayed_as_of_their_times_and_written_as_a_page",
    "plumbline backup": "test_what_is_restored_is_what_was_backed_up",
    "plumbline restore": "test_what_is_restored_is_what_was_backed_up",
    "plumbline webhook-check": "test_a_webhook_check_says_what_would_be_understood_and_where_it_would_be_posted",
    "plumbline llm check": "test_a_server_that_can_do_everything_is_found_to",
    "plumbline eval": "test_every_measure_of_the_benchmarks_is_a_command_with_these_options",
    "python -m tests.benchmarks": "test_every_measure_of_the_benchmarks_is_a_command_with_these_options",
    "plumbline teams-package": "test_the_package_holds_the_manifest_and_both_icons",
    "sh deploy/pin.sh": "test_no_image_is_run_or_built_upon_by_its_tag_alone",
    "helm install": "test_what_the_chart_makes_is_what_kubernetes_takes",
}
# What no test runs, and what it needs.
NEEDS = {
    "docker": "a Docker daemon and a registry",
    "llama-server": "the model hub",
    "python -m llama_cpp.server": "a model",
    "kubectl": "a cluster",
    "git clone": "an address of this repository",
    "npm install -g @microsoft/teams.cli": "an organisation at Microsoft",
    "teams": "an organisation at Microsoft",
    "useradd": "root",
    "install": "root",
    "cp deploy/plumbline.service": "root",
    "mkdir": "nothing: it is the shell's",
    "echo": "nothing: it is the shell's",
    "export": "nothing: it is the shell's",
}


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def blocks(language: str) -> Iterator[tuple[str, str]]:
    """Yield the code blocks of a language in README and docs, each with its page."""
    for page in OURS:
        for named, text in FENCE.findall(page.read_text(encoding="utf-8")):
            if named == language:
                yield relative(page), text


def commands() -> Iterator[tuple[str, str]]:
    """Yield the shell commands of README and docs as `plumbline …`, each with its page."""
    for page, text in blocks("sh"):
        for line in text.replace("\\\n", " ").splitlines():
            command = " ".join(line.split(" #")[0].split())
            command = command.removeprefix(".venv/bin/").replace("python -m bot", "plumbline", 1)
            if command:
                yield page, command


def test_the_readme_is_short_and_begins_with_the_two_commands() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= README_LINES
    assert [command for page, command in commands() if page == "README.md"][:2] == ["make demo", "make test"]


def test_no_line_is_too_long() -> None:
    long = [
        f"{relative(page)}:{number}"
        for page in [*OURS, *EXAMPLES]
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > WIDTH
    ]
    assert long == []


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_link_to_a_file_leads_somewhere() -> None:
    broken: list[str] = []
    for page in PAGES:
        for link in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
            path, _, anchor = link.partition("#")
            target = page.parent / path if path else page
            if re.match(r"https?://|mailto:", link):
                continue
            if not target.exists() or (anchor and anchor not in anchors(target)):
                broken.append(f"{relative(page)}: {link}")
    assert broken == []


def test_every_module_that_is_named_for_contributors_is_there() -> None:
    pages = [ROOT / "CONTRIBUTING.md", ROOT / "docs" / "architecture.md"]
    named = re.findall(r"`(\w+/[\w/]+\.py)`", "".join(page.read_text() for page in pages))
    assert [path for path in named if not (ROOT / path).is_file()] == []


def test_every_page_is_linked_from_the_contents() -> None:
    contents = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert [page.name for page in DOCS if page.name != "index.md" and f"({page.name})" not in contents] == []


def test_the_list_of_messages_is_that_of_the_code() -> None:
    assert messages.PAGE.read_text(encoding="utf-8") == messages.page(), "run `python -m tests.documentation.messages`"


def test_the_published_schema_is_that_of_the_code() -> None:
    published = (ROOT / "docs" / "plumbline.schema.json").read_text(encoding="utf-8")
    assert json.loads(published) == schema_of_the_code(), "run `plumbline schema >docs/plumbline.schema.json`"


@pytest.mark.parametrize("example", [*EXAMPLES, ROOT / "bot" / "sample_company" / "plumbline.yaml"], ids=relative)
def test_every_example_of_a_configuration_is_taken(example: Path, tmp_path: Path) -> None:
    text = example.read_text(encoding="utf-8")
    Draft202012Validator(schema_of_the_code()).validate(json.loads(json.dumps(yaml.safe_load(text), default=str)))
    for document in re.findall(r"document: (\S+)", text):
        (tmp_path / document).parent.mkdir(exist_ok=True)
        (tmp_path / document).write_text("# A team", encoding="utf-8")
    file = tmp_path / "plumbline.yaml"
    file.write_text(text, encoding="utf-8")
    assert load_workspace(file).sources


def kinds(value: Any) -> set[str]:
    """Return every `kind` that stands in a configuration."""
    if isinstance(value, dict):
        own = {value["kind"]} if "kind" in value else set[str]()
        return own.union(*(kinds(each) for each in value.values()))
    return set[str]().union(*(kinds(each) for each in value)) if isinstance(value, list) else set()


def test_the_full_example_has_every_section_and_every_kind() -> None:
    full = yaml.safe_load((ROOT / "docs" / "examples" / "full.yaml").read_text(encoding="utf-8"))
    schema = schema_of_the_code()
    assert set(schema["properties"]) == set(full)
    properties = (each.get("properties", {}).get("kind", {}) for each in schema["$defs"].values())
    known = {kind for each in properties for kind in each.get("enum", [each.get("const")]) if kind}
    assert known == kinds(full)


def test_every_sender_of_webhooks_is_named() -> None:
    page = (ROOT / "docs" / "webhooks.md").read_text(encoding="utf-8")
    missing = [name for name in FORMATS.all() if f"`{name}`" not in page]
    assert not missing, f"Add {missing} to the table in docs/webhooks.md."


def test_the_minimal_example_is_shown_as_it_is() -> None:
    minimal = (ROOT / "docs" / "examples" / "minimal.yaml").read_text(encoding="utf-8")
    assert ("docs/configuration.md", minimal) in list(blocks("yaml"))


def test_the_entry_points_of_a_plugin_are_shown_as_they_are() -> None:
    project = (ROOT / "docs" / "examples" / "plumbline-example" / "pyproject.toml").read_text(encoding="utf-8")
    (shown,) = (text for page, text in blocks("toml") if page == "docs/plugins.md")
    assert shown in project


def test_the_example_of_a_plugin_requires_this_distribution_and_not_another_project() -> None:
    ours, example = (
        tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        for folder in (".", "docs/examples/plumbline-example")
    )
    (required,) = map(Requirement, example["dependencies"])
    assert required.name == ours["name"]
    assert VERSION in required.specifier


def test_the_yaml_of_the_other_pages_is_taken_too(tmp_path: Path) -> None:
    parts = [yaml.safe_load(text) for page, text in blocks("yaml") if page != "docs/configuration.md"]
    ours = [part for part in parts if part and "receivers" not in part and "channels" not in part]
    assert len(ours) >= 4
    channels = [{"name": name, "console": name} for name in ("incidents", "payments", "ops")]
    merged = {"channels": channels} | {key: value for part in ours for key, value in part.items()}
    file = tmp_path / "plumbline.yaml"
    file.write_text(yaml.safe_dump(merged), encoding="utf-8")
    (tmp_path / "teams").mkdir()
    (tmp_path / "teams" / "payments.md").write_text("# Payments", encoding="utf-8")
    assert load_workspace(file).teams


def test_every_setting_of_the_environment_is_described_and_no_other() -> None:
    kinds = (Settings, *CHATS.all().values())
    read = {str(field.validation_alias) for kind in kinds for field in kind.model_fields.values()}
    table = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8").split("| variable |")[1]
    named = {
        name
        for row in table.splitlines()
        for name in re.findall(r"`([A-Z][A-Z_]+)`", row.split("|")[1] if "|" in row else "")
    }
    assert named == read


@cache
def schema_of_the_code() -> dict[str, Any]:
    return json_schema()


# Typer takes 20 ms to make all commands.
made_commands = cache(typer.main.get_command)


def click_command(words: list[str], of: typer.Typer = app) -> Any:
    """Return the command that the words begin with, as Typer makes it. Fails if there is none."""
    found: Any = made_commands(of)
    for word in words:
        if not hasattr(found, "commands"):
            break
        assert word in found.commands, f"there is no command {word}"
        found = found.commands[word]
    return found


def assert_options_exist(words: list[str], of: typer.Typer = app) -> None:
    """Fail unless the command is one, and takes the options that are given to it."""
    command = click_command(words, of)
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= known | {"--help"}, words


def test_every_command_of_the_command_line_is_described_and_no_other() -> None:
    def leaves(command: Any, name: str) -> set[str]:
        if not hasattr(command, "commands"):
            return {name}
        return {leaf for sub, each in command.commands.items() for leaf in leaves(each, f"{name} {sub}")}

    text = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8").replace("list\\|retry\\|drop", "list")
    described = {each for each in re.findall(r"`(plumbline [a-z-]+(?: [a-z]+)?)", text) if not each.endswith(" eval")}
    known = leaves(click_command([]), "plumbline") - {"plumbline dead-letters retry", "plumbline dead-letters drop"}
    assert {re.sub(r" (slack|teams)$", "", each) for each in described} == known


def test_every_command_that_is_shown_is_one(subtests: pytest.Subtests) -> None:
    for command in sorted({command for _, command in commands()}):
        with subtests.test(command=command):
            match shlex.split(command.split(" >>", maxsplit=1)[0]):
                case ["plumbline", *rest]:
                    assert_options_exist(rest)
                case ["python", "-m", "tests.benchmarks", *rest]:
                    assert_options_exist(rest, benchmarks.app)
                case ["make", target]:
                    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
                case ["sh" | "python3", script, *_]:
                    assert (ROOT / script).is_file()
                case _:
                    pass
            assert any(command.startswith(known) for known in (*RUN_BY, *NEEDS)), "name its test, or what it needs"


def test_the_tests_that_run_the_commands_exist() -> None:
    tests = "".join(
        path.read_text(encoding="utf-8")
        for folder in ("unit", "contract", "scenario", "external", "evaluation")
        for path in (ROOT / "tests" / folder).rglob("test_*.py")
        if "node_modules" not in path.parts
    )
    named = {name for name in RUN_BY.values() if name}
    named |= set(
        re.findall(r"^ +- .*: `(test_\w+)`$", (ROOT / "docs" / "features.md").read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert len(named) > 60
    assert {name for name in named if f"def {name}(" not in tests} == set()


@every_case("measure", report.MEASURES)
def test_every_measure_of_the_benchmarks_is_a_command_with_these_options(measure: report.Measure) -> None:
    words = shlex.split(measure.command)
    if words[2] == "bot":
        assert_options_exist(words[3:])
    else:
        assert_options_exist(words[3:], benchmarks.app)


def test_the_figures_are_those_that_were_measured() -> None:
    kept = report.results()
    assert set(kept) <= {measure.name for measure in report.MEASURES}
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert (ROOT / "BENCHMARKS.md").read_text(encoding="utf-8") == report.page(kept), "run `make benchmarks`"
    assert report.with_summary(readme, kept) == readme, "run `make benchmarks`"


def test_the_memory_of_a_model_is_what_the_arithmetic_says() -> None:
    page = (ROOT / "docs" / "language-models.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| [^|]+ \| ([\d.]+) \| (\d+) × (\d+) × (\d+) \| (.+) \|$", page, re.MULTILINE)
    assert rows
    for parameters, layers, heads, size, told in rows:
        weights = float(parameters) * 4.85 / 8
        token = 2 * int(layers) * int(heads) * int(size) * 2
        whole = weights + 4 * 8_192 * token / 1e9
        assert told == f"{weights:.1f} GB | {token / 1_000:.0f} MB | {whole:.1f} GB"
