"""From what a tool returned to the clues in it, by the form of the text."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from core.model.incident import EvidenceKind
from core.rca.tool_outputs.clue import Clue, Lines, Role, ToolOutput, cut, spoken
from core.rca.tool_outputs.events import event_clues
from core.rca.tool_outputs.logs import ANSI, log_clues
from core.rca.tool_outputs.resources import resource_clues
from core.rca.tool_outputs.tables import named_in, table_clues

HEAD = 4_000  # characters of an output by which its form is told

_DESCRIBED = re.compile(r"^Name:\s+\S.*\n(?:.*\n){0,3}?(?:Namespace|Labels|Roles|CreationTimestamp):", re.MULTILINE)
_MANIFEST = re.compile(r"^(?:apiVersion|kind|metadata|spec|status):", re.MULTILINE)
_EVENTS = re.compile(
    r"^(?:NAMESPACE\s+)?LAST SEEN\s+TYPE\s+REASON|^\S+\s+(?:Normal|Warning)\s{2,}[A-Z]\w+\s{2,}", re.MULTILINE
)
_TABLE = re.compile(r"^(?:NAMESPACE\s+)?NAME\s+\S|^\S.*\s\d+/\d+\s+(?:Init:)?[A-Z]\w+", re.MULTILINE)
_OBJECT = re.compile(r"\s*(?:\{|\[\s*[\[{\"\]])")
_FIELD = re.compile(r"\s*(?:- )*[\"']?[a-z_][\w./-]*[\"']?:(?:\s|$)|\s+- ")
_COLUMNS = re.compile(r"\S++(?: \S++)*+\s{2,}+\S.*?(?<!\s)\s{2,}+\S")
_HEADER = re.compile(r"(?:GROUP|NAME|CONDITION)\s++\S++\s")
_FAILED = re.compile(r"Command `?[^\n]* failed with return code \d+\s+stdout:\s+stderr:")
_NOTHING = re.compile(
    r"\W*(?:could not|did not|no|nothing)\b[^\n]{0,60}\b(?:found?|changes|data|logs|results)\b[^\n]{0,40}",
    re.IGNORECASE,
)
_CATALOGUE = re.compile(
    r"^[^\S\n]*+\w++[^\S\n]*+\|[^\S\n]*+Description[^\S\n]*+\|", re.MULTILINE
)  # what there is, not what happened
_CHANGES = re.compile(r"change|deployments|commits|releases|rollouts|audit", re.IGNORECASE)
_DESCRIPTION = re.compile(
    r"\s*+(?:- )?[\"']?(?:description|title|message|summary|subject)[\"']?:\s*+[\"']?(?P<text>.+?)(?:(?<![\"',])[\"',]+)?$"
)
_DIFFERS = re.compile(r"=+ (?P<kind>\S*/\w+) (?P<name>\S+) =+\s*$")
_NOT_ASKED_WELL = re.compile(
    r"previous terminated container|Metrics API not available|doesn't have a resource type|unknown (?:flag|command)"
    r"|failed with return code|^Defaulted container"
)
"""What a tool says of itself or of how it was called: no trouble of what it was asked about."""
_NOT_FOUND = re.compile(r"NotFound.{0,1000}not found", re.IGNORECASE)
_WAITS = re.compile(r"container \"[^\"]+\" in pod \"[^\"]+\" is waiting to start: (?P<why>.+)")
_DOCUMENT = re.compile(r"^https?://")

MOST = 0.75  # of the lines of an output, from which their form is that of the output
MIN_SOUGHT = 3  # characters of a part of a name
MANIFEST = 2  # fields of a manifest, from which it is one
RECORD = 4  # lines from which fields are a record and no log
SUMMARISED = 0.75  # how much a record about a finding explains, which says again what was seen elsewhere
CHANGED = 0.5  # strength of a change
NO_SUCH_THING = 0.35  # strength of an answer that there is no such thing


def clues(output: ToolOutput, sought: Collection[str] = ()) -> list[Clue]:
    """Everything in an output that tells of trouble. Documents, which say what could happen, give none.

    `sought` are ids and times that make a line of a log one that is looked for.
    """
    if not output.text.strip() or is_document(output):
        return []
    asked_for_one = is_record(output)
    subject, namespace = subject_of(output.arguments)
    found = [
        replace(
            clue,
            source=output.source,
            namespace=clue.namespace or namespace,
            targeted=_asked_for(clue.subject, subject) or (asked_for_one and not clue.subject) or _sought(clue, output),
            subject=clue.subject or subject,
        )
        for clue in _read(output, subject, sought)
    ]
    return [clue for clue in found if clue.quote.strip()]


def _asked_for(found: str, asked: str) -> bool:
    """Whether something is what was asked about by name, or made from it as a pod is from its workload."""
    return bool(asked) and (found in ("", asked) or found.startswith(f"{asked}-"))


def _sought(clue: Clue, output: ToolOutput) -> bool:
    """Whether a subject was searched for by a part of its name."""
    sought = output.arguments.get("keyword", "").lower()
    return len(sought) >= MIN_SOUGHT and sought in clue.subject.lower()


def is_configuration(output: ToolOutput) -> bool:
    """Whether an output describes how something is set up."""
    head = output.text[:HEAD]
    formed = _DESCRIBED.search(head) is not None or len(_MANIFEST.findall(head)) >= MANIFEST
    return formed and not is_document(output)


def is_record(output: ToolOutput) -> bool:
    """Whether an output is what is known of one thing by its id, such as the alert that is looked into."""
    return any(key.lower() in _IDS for key in output.arguments)


def is_document(output: ToolOutput) -> bool:
    """Whether a page was fetched: that says what could happen, and not what happened."""
    return any(key.lower() in ("url", "uri") or _DOCUMENT.match(value) for key, value in output.arguments.items())


def searched(arguments: Mapping[str, str]) -> list[str]:
    """The words that whoever called a tool searched for in it."""
    return [value for key, value in arguments.items() if key.lower() in _SEARCHES]


def subject_of(arguments: Mapping[str, str]) -> tuple[str, str]:
    """The name and the namespace that a tool was asked about; empty if it was asked about many."""
    named = {key.lower().rpartition("_")[2]: value for key, value in arguments.items() if value}
    name = next((value for key, value in arguments.items() if value and _NAME.fullmatch(key.lower())), "")
    return name, named.get("namespace", "")


_NAME = re.compile(
    r"(?!.*(?:namespace|cluster|container|file|user))(?:\w*name|service|deployment|pod|node|job|host|workload|group_id)"
)
_SEARCHES = ("filter", "search", "pattern", "grep", "text", "term", "keyword")
_IDS = ("id", "finding_id", "issue_id", "alert_id", "incident_id")


def _read(output: ToolOutput, subject: str, sought: Collection[str]) -> Iterable[Clue]:
    lines = Lines(ANSI.sub("", output.text))
    head = output.text[:HEAD]
    if output.failed or _FAILED.match(head) or _NOTHING.fullmatch(output.text.strip()):
        return _refusals(lines, subject)
    refusals = list(_refusals(lines, subject))
    return (
        [*refusals, *_by_form(output, _without(lines, refusals), subject, sought)]
        if refusals
        else _by_form(output, lines, subject, sought)
    )


def _without(lines: Lines, refusals: Sequence[Clue]) -> Lines:
    refused = {clue.quote for clue in refusals}
    return Lines("\n".join(line for line in lines.all if cut(line.strip()) not in refused))


def _by_form(output: ToolOutput, lines: Lines, subject: str, sought: Collection[str]) -> Iterable[Clue]:
    head = lines.text[:HEAD]
    if _CATALOGUE.search(head):
        return []
    if is_configuration(output):
        return [*resource_clues(lines, subject), *_rows_below(lines)]
    if differences := list(_differences(lines)):
        return differences
    if _EVENTS.search(head):
        return event_clues(lines, subject)
    if _CHANGES.search(output.tool):
        return _changes(lines)
    if (_OBJECT.match(head) and not _is_log(head)) or _mostly(_FIELD.match, head, RECORD):
        return [replace(clue, strength=clue.strength * SUMMARISED) for clue in resource_or_text(lines, subject)]
    if _TABLE.search(head) or _mostly(_COLUMNS.match, head):
        return table_clues(lines)
    return [
        clue for clue in log_clues(lines, subject, sought) if not _NOT_ASKED_WELL.search(clue.quote.partition("\n")[0])
    ]


def _changes(lines: Lines) -> Iterator[Clue]:
    """Every change of a list: what was changed is a cause until something speaks against it."""
    for number, line in enumerate(lines.all):
        if told := _DESCRIPTION.match(line):
            said = f"changed before: {spoken(told['text'])}"
            quote = lines.quote(number, wanted=(number - 1, number - 2, number - 3, number + 1))
            yield Clue("", said, quote, CHANGED, Role.CAUSE, EvidenceKind.CHANGE)


def _mostly(form: Callable[[str], re.Match[str] | None], head: str, least: int = 1) -> bool:
    """Whether most of at least so many lines have a form."""
    rows = [line for line in head.splitlines() if line.strip() and not line.startswith(("stdout:", "stderr:"))]
    return len(rows) >= least and sum(form(line) is not None for line in rows) >= MOST * len(rows)


def _differences(lines: Lines) -> Iterator[Clue]:
    """What `argocd app diff` shows: resources that are not as declared, with the first lines of the difference."""
    starts = [number for number, line in enumerate(lines.all) if _DIFFERS.match(line)]
    for start in starts:
        named = _DIFFERS.match(lines.all[start])
        if named is None:
            continue
        absent = start + 1 < len(lines.all) and lines.all[start + 1].startswith("0a")
        said = "is declared but is not there" if absent else "is not as declared"
        what = f"{named['kind']} {named['name']} {said}"
        quote = lines.quote(start, wanted=range(start + 1, len(lines.all)))
        yield Clue(named["name"].rpartition("/")[2], what, quote, 0.7, Role.CAUSE, EvidenceKind.CHANGE)


def _is_log(head: str) -> bool:
    """Whether these are JSON records one per line."""
    records = [line for line in head.splitlines() if line.strip()]
    whole = sum(line.startswith("{") and line.rstrip().endswith("}") for line in records)
    return len(records) > 1 and whole > len(records) / 2


def resource_or_text(lines: Lines, subject: str) -> Iterator[Clue]:
    """A JSON document: what its fields say, then what its lines complain of."""
    yield from resource_clues(lines, subject)
    yield from log_clues(lines, subject)


def _rows_below(lines: Lines) -> Iterator[Clue]:
    """The table of parts that some tools print below the fields, as Argo CD does."""
    start = next((number for number, line in enumerate(lines.all) if _HEADER.match(line)), None)
    if start is not None:
        below = Lines("\n".join(lines.all[start:]))
        yield from table_clues(below)
        yield from log_clues(below, "")


def _refusals(lines: Lines, subject: str) -> Iterator[Clue]:
    """What the answer of a tool that could not do what it was asked says about the thing itself."""
    for line in lines.all:
        if "rror" not in line:
            continue
        if waits := _WAITS.search(line):
            why = waits["why"].strip()
            yield Clue(
                subject,
                f"{subject} waits to start: {spoken(why)}",
                cut(line.strip()),
                0.6 if ":" in why or " " in why else 0.4,
                Role.EFFECT,
                EvidenceKind.TOPOLOGY,
            )
        elif _NOT_FOUND.search(line) and not _NOT_ASKED_WELL.search(line) and "rror from server" in line:
            yield Clue(
                subject or named_in(line)[1],
                spoken(line),
                cut(line.strip()),
                NO_SUCH_THING,
                Role.CAUSE,
                EvidenceKind.TOPOLOGY,
            )
