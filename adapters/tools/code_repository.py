"""Source code in local checkouts, parsed with tree-sitter: Python, Java, Go, TypeScript.

Commits with their diffs are changes of the services that are built from them.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from tree_sitter import Language, Node, Parser

from adapters.git_command import PLAIN_COMMITS, git_output
from adapters.section import Host
from adapters.tools.section import Tools, ToolSection, answers, clipped, kept
from core.model.errors import ToolUnavailable
from core.model.findings import Gap, GapReason
from core.ports import Change, CodeDefinition, Partial, TimeWindow

MAX_FILES = 20_000  # source files read per repository
MAX_FILE = 512 * 1024  # bytes; longer files are generated
MAX_BYTES = 256 * 1024 * 1024  # per repository
MAX_DEFINITIONS = 200  # per response
SKIPPED = frozenset("node_modules vendor build dist target out venv __pycache__ site-packages".split())

_IDENTIFIER = re.compile(rb"[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class _Grammar:
    """A language: its grammar module and function, and the nodes that define something."""

    module: str
    function: str
    definitions: frozenset[str]


_PYTHON = _Grammar("tree_sitter_python", "language", frozenset({"function_definition", "class_definition"}))
_JAVA_DEFINITIONS = (
    "class_declaration interface_declaration enum_declaration record_declaration method_declaration "
    "constructor_declaration"
)
_JAVA = _Grammar("tree_sitter_java", "language", frozenset(_JAVA_DEFINITIONS.split()))
_GO = _Grammar(
    "tree_sitter_go",
    "language",
    frozenset({"function_declaration", "method_declaration", "type_spec"}),
)
_TYPESCRIPT_DEFINITIONS = frozenset(
    "function_declaration generator_function_declaration class_declaration abstract_class_declaration "
    "interface_declaration type_alias_declaration enum_declaration method_definition variable_declarator".split()
)
_TYPESCRIPT = _Grammar("tree_sitter_typescript", "language_typescript", _TYPESCRIPT_DEFINITIONS)
_TSX = _Grammar("tree_sitter_typescript", "language_tsx", _TYPESCRIPT_DEFINITIONS)

GRAMMARS: Mapping[str, _Grammar] = {
    ".py": _PYTHON,
    ".java": _JAVA,
    ".go": _GO,
    ".ts": _TYPESCRIPT,
    ".mts": _TYPESCRIPT,
    ".tsx": _TSX,
    ".js": _TSX,  # the TypeScript grammar also parses JavaScript, including JSX
    ".jsx": _TSX,
    ".mjs": _TSX,
}
_FUNCTION_VALUES = frozenset({"arrow_function", "function_expression"})


class CodeRepositories:
    """CodeReader over checkouts: service → folder. Links are not followed, so nothing outside a folder is read."""

    def __init__(self, name: str, folders: Mapping[str, Path]) -> None:
        self.name = name
        self._folders = dict(folders)

    async def definitions(self, names: Sequence[str]) -> list[CodeDefinition]:
        return await asyncio.to_thread(self._definitions, frozenset(names))

    async def check(self) -> None:
        """Raise ToolUnavailable if a checkout is missing."""
        await self.definitions(())

    def _definitions(self, names: frozenset[str]) -> list[CodeDefinition]:
        wanted = frozenset(name.encode() for name in names)
        definitions: list[CodeDefinition] = []
        for service, folder in sorted(self._folders.items()):
            if not folder.is_dir():
                raise ToolUnavailable(
                    f"The checkout {folder} of {service} does not exist: correct it in plumbline.yaml."
                )
            for path, text in _files(folder) if names else ():
                if wanted.intersection(_IDENTIFIER.findall(text)):
                    definitions += _read(
                        service, path.relative_to(folder).as_posix(), text, GRAMMARS[path.suffix], names
                    )
                if len(definitions) >= MAX_DEFINITIONS:
                    return definitions[:MAX_DEFINITIONS]
        return definitions


def _files(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """Yield the source files of a checkout sorted by path, within the limits."""
    files = size = 0
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in SKIPPED and not name.startswith("."))
        for name in sorted(names):
            path = Path(root, name)
            if path.suffix not in GRAMMARS or path.is_symlink():
                continue
            try:
                if not path.is_file() or path.stat().st_size > MAX_FILE:
                    continue
                text = path.read_bytes()
            except OSError:  # deleted meanwhile, or not readable
                continue
            files, size = files + 1, size + len(text)
            if files > MAX_FILES or size > MAX_BYTES:
                return
            yield path, text


def _read(service: str, path: str, text: bytes, grammar: _Grammar, names: frozenset[str]) -> Iterator[CodeDefinition]:
    """Yield the definitions of the names in one file."""
    waiting = [(_parser(grammar.module, grammar.function).parse(text).root_node, "")]
    while waiting:
        node, container = waiting.pop()
        name = _defined(node, grammar)
        if name in names:
            start, code = node.start_point.row + 1, _text(node)
            yield CodeDefinition(name, _receiver(node) or container, service, path, start, code)
        inner = name if (name and "class" in node.type) or node.type in _TYPES else container
        waiting += [(child, inner) for child in reversed(node.named_children)]


_TYPES = frozenset({"interface_declaration", "enum_declaration", "record_declaration"})


@cache
def _parser(module: str, function: str) -> Parser:
    return Parser(Language(getattr(import_module(module), function)()))


def _defined(node: Node, grammar: _Grammar) -> str:
    """Return the name that a node defines; empty if it defines nothing callable."""
    if node.type not in grammar.definitions:
        return ""
    if node.type == "variable_declarator":
        value = node.child_by_field_name("value")
        if value is None or value.type not in _FUNCTION_VALUES:
            return ""
    name = node.child_by_field_name("name")
    return _text(name) if name is not None else ""


def _receiver(node: Node) -> str:
    """Return the receiver type of a Go method."""
    receiver = node.child_by_field_name("receiver")
    return next((_text(each) for each in _within(receiver) if each.type == "type_identifier"), "") if receiver else ""


def _within(node: Node | None) -> Iterator[Node]:
    """Yield the node and its descendants, in text order."""
    waiting = [node] if node is not None else []
    while waiting:
        each = waiting.pop()
        yield each
        waiting += reversed(each.named_children)


def _text(node: Node) -> str:
    return node.text.decode("utf-8", "replace") if node.text is not None else ""


class CodeTool(ToolSection):
    """Source code. `services` maps a service to a checkout, kept up to date externally. Code and commits are read."""

    kind: Literal["code"]
    name: str = "code"
    services: Annotated[dict[str, Path], Field(min_length=1)]

    def open(self, host: Host) -> Tools:
        history = GitHistory(f"{self.name} history", self.services)
        return Tools(changes=(history,), code=(CodeRepositories(self.name, self.services),))


TIMEOUT = 6.0  # seconds per repository
MAX_COMMITS = 500  # per repository within a window
MAX_OUTPUT = 8 * 1024 * 1024  # bytes of Git's output
MAX_DIFFS = 60  # latest commits of a repository whose diffs are read

_GENERATED = (":(exclude)*.lock", ":(exclude)*lock.json", ":(exclude)*.min.*", ":(exclude)*.svg", ":(exclude)vendor/*")
"""Paths whose diffs explain nothing."""

_FORMAT = "%x1e%H%x1f%cI%x1f%an%x1f%s%x1f%b%x1f"


class GitHistory:
    """ChangeReader over checkouts: service → folder. A commit's date is its commit date.

    A folder may be part of a checkout that several services share: a commit then affects the services whose folders
    contain its files, and no service if it changes common files.
    """

    def __init__(self, name: str, folders: Mapping[str, Path]) -> None:
        self.name = name
        self._folders: dict[Path, dict[str, str]] = {}
        for service, folder in folders.items():
            root = next((each for each in (folder, *folder.parents) if (each / ".git").exists()), folder)
            self._folders.setdefault(root, {})[service] = folder.relative_to(root).as_posix()

    async def changes(self, window: TimeWindow) -> list[Change]:
        logs = await kept(self.name, [(f"{folder}", self._log(folder, window)) for folder in self._folders])
        inside = (change for change in logs if window.start <= change.at < window.end)
        return Partial(sorted(inside, key=lambda change: change.at), logs.gaps)

    async def _log(self, folder: Path, window: TimeWindow) -> list[Change]:
        """Return the commits with their diffs; without any if these are too large or too slow: commits matter more."""
        named = self._git(folder, window, f"--format={_FORMAT}", "--name-only", f"--max-count={MAX_COMMITS}", "HEAD")
        log, patches = await answers([("commits", named), ("diffs", self._patches(folder, window))])
        if isinstance(log, ToolUnavailable):
            raise log
        changes: Partial[Change] = Partial()
        if isinstance(patches, ToolUnavailable):
            changes.gaps += (Gap(f"{self.name}: diffs of {folder}", GapReason.LEFT_OUT, str(patches).rstrip(".")),)
            patches = ""
        records = (record.partition("\n") for record in patches.split("\x1e")[1:])
        diffs = {commit.strip(): diff.strip() for commit, _, diff in records}
        for change in _commits(log):
            services = self._services(folder, change.files)
            only, several = (services[0], ()) if len(services) == 1 else ("", services)
            changes.append(
                clipped(replace(change, service=only, services=several, diff=diffs.get(change.revision, "")))
            )
        return changes

    def _services(self, folder: Path, files: Sequence[str]) -> tuple[str, ...]:
        return tuple(
            service
            for service, inside in self._folders[folder].items()
            if (inside == "." and len(self._folders[folder]) == 1)
            or any(file.startswith(f"{inside}/") for file in files)
        )

    async def _patches(self, folder: Path, window: TimeWindow) -> str:
        limit = f"--max-count={MAX_DIFFS}"
        shown = ("--format=%x1e%H", "--patch", "--unified=0", limit, "HEAD", "--", ".", *_GENERATED)
        return await self._git(folder, window, *shown)

    async def _git(self, folder: Path, window: TimeWindow, *arguments: str) -> str:
        output = await git_output(
            folder,
            *("log", "--no-color", *PLAIN_COMMITS),
            *(f"--since={window.start.isoformat()}", f"--until={window.end.isoformat()}"),
            *arguments,
            label=f"git log of {folder}",
            seconds=TIMEOUT,
            max_bytes=MAX_OUTPUT,
            failure=ToolUnavailable,
        )
        return output.decode("utf-8", "replace")


def _commits(log: str) -> Iterator[Change]:
    for record in log.split("\x1e")[1:]:
        fields = record.split("\x1f")
        if len(fields) != 6:  # a message contains the separator
            continue
        commit, at, author, title, body, files = fields
        yield Change(
            id=commit[:12],
            at=datetime.fromisoformat(at).astimezone(UTC),
            kind="commit",
            service="",
            author=author,
            title=title,
            detail=body.strip(),
            files=tuple(name for name in files.splitlines() if name),
            revision=commit,
        )
