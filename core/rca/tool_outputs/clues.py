"""The output of a tool's call, or pasted text: untrusted, in blocks of tables, descriptions, manifests and logs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from itertools import zip_longest

from core.model.log_levels import level_in
from core.model.terminal_text import without_control

PASTED = "pasted text"  # in place of a tool's name
MAX_READ = 400_000  # characters of an output

_ADDRESS = re.compile(r"^https?://")
_NAME = re.compile(
    r"(?!.*(?:namespace|cluster|container|file|user))(?:\w*name|service|deployment|pod|node|job|host|workload|group_id)"
)
_IDS = ("id", "finding_id", "issue_id", "alert_id", "incident_id")
_PROMPT = re.compile(
    r"^(?:[\w.@~:/-]{0,60}[$#%>]|PS [^>\n]{0,60}>|❯|➜) (?=(?:sudo )?(?P<command>[a-z][\w.-]{1,30}) (?P<rest>.*))"
)
_HEADING = re.compile(r"^(?:[A-Za-z]+ ){0,6}(?P<name>[A-Za-z][\w.-]{1,62}):\s*$")
_DATED = re.compile(r"^\W?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d")
_FLAGS = re.compile(r"(?:-c|--container|-n|--namespace)[ =](\S+)")
_WORD = re.compile(r"[^\s'\"=]+")
_HEADER = re.compile(r"^(?:NAMESPACE +)?NAME +[A-Z]|^LAST SEEN ")
_FIELD = re.compile(r"^[A-Z][\w /-]{0,40}:(?: |$)")
_MANIFEST = re.compile(r"^(?:apiVersion|kind): |^\{\s*$|^\{ *\"(?:apiVersion|kind|items)\"")
_CHECKS = re.compile(r"connect|ping|curl|probe|reach|telnet|netcat", re.IGNORECASE)
_PLURAL = re.compile(r"(?<=[a-z])s$")


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The answer of a tool to one call. `text` is untrusted; `failed` is True if the call itself failed."""

    tool: str
    arguments: Mapping[str, str]
    text: str
    failed: bool = False

    @property
    def source(self) -> str:
        """Return the call as it is cited: “kubectl_describe(pod, api-0)”."""
        return f"{self.tool}({', '.join(value for value in self.arguments.values() if value)})"

    @property
    def is_record(self) -> bool:
        """Return whether it is about one thing given by its id, such as the investigated alert."""
        return any(key.lower() in _IDS for key in self.arguments)

    @property
    def is_document(self) -> bool:
        """Return whether it is a fetched page, which tells what could happen, not what happened."""
        return any(key.lower() in ("url", "uri") or _ADDRESS.match(value) for key, value in self.arguments.items())

    @property
    def subject(self) -> str:
        """Return the name that the tool was asked about; empty if there is none."""
        return next((value for key, value in self.arguments.items() if value and _NAME.fullmatch(key.lower())), "")


def is_check(output: ToolOutput) -> bool:
    """Return whether an output is that of a check whether something answers."""
    return bool(output.subject) and _CHECKS.search(output.tool) is not None


class OutputForm(Enum):
    TABLE = auto()  # with a header, as of `kubectl get`
    DESCRIPTION = auto()  # as of `kubectl describe`
    MANIFEST = auto()  # YAML or JSON
    LINES = auto()  # anything else


@dataclass(frozen=True, slots=True)
class OutputBlock:
    """Lines of an output of one form."""

    kind: OutputForm
    output: ToolOutput
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def blocks(output: ToolOutput) -> Iterator[OutputBlock]:
    """Yield the blocks of an output; a pasted terminal is first cut into the outputs of its commands."""
    for part in _commands(replace(output, text=without_control(output.text[:MAX_READ]))):
        yield from _blocks(part)


def _commands(output: ToolOutput) -> Iterator[ToolOutput]:
    """Yield the output of each command of a terminal, and the log below each heading, named by what they are about."""
    lines, current = list[str](), output
    for line, following in zip_longest(given := output.text.splitlines(), given[1:], fillvalue=""):
        if match := _PROMPT.match(line) or (_HEADING.match(line) if _DATED.match(following) else None):
            if any(map(str.strip, lines)):
                yield replace(current, text="\n".join(lines))
            named = match.groupdict()
            about = {"service": named["name"]} if "name" in named else _arguments(match["command"], match["rest"])
            lines, current = [], replace(output, arguments=about)
        else:
            lines.append(line)
    if any(map(str.strip, lines)):
        yield replace(current, text="\n".join(lines))


def _arguments(command: str, rest: str) -> Mapping[str, str]:
    """Return what a command is, and the object that `kubectl` or `oc` is asked about."""
    words = [word for word in _WORD.findall(rest) if not word.startswith("-")]
    flags = _FLAGS.findall(rest)
    words = [word for word in words if word not in flags]
    if command not in ("kubectl", "oc", "k") or not words:
        return {"command": f"{command} {rest}"[:80]}
    named = {"command": " ".join([command, *words])[:80]}
    if words[0] in ("logs", "log") and len(words) > 1:
        named["pod"] = words[1].rpartition("/")[2]
    elif words[0] == "describe" and len(words) > 1:
        kind, _, name = words[1].partition("/")
        named[_PLURAL.sub("", kind)] = name or " ".join(words[2:3])
    return named


def _blocks(output: ToolOutput) -> Iterator[OutputBlock]:
    text = output.text
    if text.lstrip()[:1] in ("{", "[") or _MANIFEST.match(text.lstrip()):
        yield OutputBlock(OutputForm.MANIFEST, output, tuple(text.splitlines()))
        return
    kind, part, about = OutputForm.LINES, list[str](), output
    blank = False
    for line in text.splitlines():
        begins = _begins(line, kind, blank=blank)
        if begins is not None:
            if any(map(str.strip, part)):
                yield OutputBlock(kind, about, tuple(part))
            is_log = kind is OutputForm.DESCRIPTION and (_DATED.match(line) or level_in(line)) and not output.arguments
            about = replace(output, arguments={"pod": part[0].partition(":")[2].strip()}) if is_log else output
            kind, part = begins, []
        part.append(line)
        blank = not line.strip()
    if any(map(str.strip, part)):
        yield OutputBlock(kind, about, tuple(part))


def _begins(line: str, kind: OutputForm, *, blank: bool) -> OutputForm | None:
    """Return the kind of the block that a line begins after one of `kind`; None if it goes on."""
    if _HEADER.match(line):
        return OutputForm.TABLE
    if line.startswith("Name: "):
        return OutputForm.DESCRIPTION
    if _MANIFEST.match(line) and kind is not OutputForm.MANIFEST:
        return OutputForm.MANIFEST
    is_over = blank and line.strip()
    if kind is OutputForm.TABLE and is_over:
        return OutputForm.LINES
    is_text = line[:1].strip() and not line.startswith("---") and (bool(level_in(line)) or not _FIELD.match(line))
    if kind in (OutputForm.DESCRIPTION, OutputForm.MANIFEST) and is_over and is_text:
        return OutputForm.LINES
    return None
