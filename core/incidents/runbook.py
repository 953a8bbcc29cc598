"""Find in a runbook what to do next: the section that fits the cause, its instruction and its command, all quoted.

The placeholders of the command are filled from the labels of the incident's alerts when it is shown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import log
from urllib.parse import unquote, urlsplit

from core.knowledge.markdown import ITEM, Block, BlockKind, anchor, blocks, framed, plain
from core.knowledge.terms import holds_run, terms, word_parts
from core.model.answer import Citation
from core.model.document import Passage
from core.model.findings import Runbook
from core.model.incident import Incident

MAX_ACTION = 400  # characters of an instruction
MAX_COMMAND = 600  # characters of a command
MIN_NAME = 4  # characters of a page's name in an address, or of an alert's name, that tells it from others
TELLING_TITLE = 3  # words of a title that names an alert by being a part of the alert's name
REMEDY_WEIGHT = 1.5  # of a section whose heading announces a remedy

_EXTENSIONS = frozenset({"md", "markdown", "htm", "html", "txt", "rst", "adoc", "pdf"})
_UNTELLING_NAMES = frozenset({"index", "readme", "runbook", "runbooks", "home", "view", "edit"})
_NO_REMEDY = re.compile(
    r"\b(?:not|don'?t|never|why|meaning|impact|background|overview|about|references?|links?|see also|contacts?|"
    r"escalation|history|tell people|communicat\w+|post-?mortem|related|owners?)\b",
    re.IGNORECASE,
)
_REMEDY = re.compile(
    r"\b(?:fix\w*|mitigat\w+|remed\w+|resol\w+|recover\w*|repair\w*|restor\w+|right|what to do|steps?|procedure|actions?|"
    r"roll(?:ing)? ?back|respon\w+|immediate)\b",
    re.IGNORECASE,
)
_VERBS = (
    "add apply ask bounce call check clear compare confirm cordon create cut debug delete deploy determine disable drain "
    "edit empty enable enlarge ensure escalate evict execute extend find flip flush follow force free get go identify "
    "increase inspect invalidate investigate issue kill look lower make mark move mute open page pause promote publish "
    "purge put query raise reapply reboot rebuild recreate redeploy reduce re-?index release reload remove renew reopen "
    "replace replay reroute reset resize restart restore resume retry revert re-?run roll rotate run scale send set shift "
    "silence start stop submit switch take terminate test throttle try turn unblock undo unlock update upgrade use verify "
    "wait widen"
).replace(" ", "|")
_INSTRUCTION = re.compile(rf"(?:^|[:;,.)] |\b(?:then|and|please|or) )\W{{0,3}}(?:{_VERBS})(?![\w-])", re.IGNORECASE)
_FORBIDDEN = re.compile(r"\b(?:do not|don'?t|never|must not)\b", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*\[“\"])")
_INLINE_CODE = re.compile(
    r"(?:\b(?P<by>run|with|using|use|via|execute|by|do)\s)?`(?P<code>[^`\n]{1,600})`", re.IGNORECASE
)
_OPTION = re.compile(r"\s--?[A-Za-z]")
_LINK = re.compile(r"\]\(([^)\s]{1,500})")


@dataclass(frozen=True, slots=True)
class RunbookSection:
    """The text below one heading of a page, and the passage that it begins in."""

    heading: str
    repeat: int
    blocks: tuple[Block, ...]
    passage: Passage

    @property
    def text(self) -> str:
        return "\n\n".join(block.text for block in self.blocks)


@dataclass(frozen=True, slots=True)
class _Step:
    """An instruction as it is written, and the command that belongs to it, empty if there is none."""

    text: str
    command: str


@dataclass(frozen=True, slots=True)
class RunbookSearch:
    """The search terms for a runbook: the names of alerts, the address that one of them gives, and the cause's terms.

    `url` is empty if no alert gives an address, and `cause` if no cause is known.
    """

    alerts: tuple[str, ...]
    url: str = ""
    title: str = ""
    cause: frozenset[str] = frozenset()

    @property
    def query(self) -> str:
        """Return the query for the page that the alerts name."""
        return " ".join([*self.alerts, *_segments(self.url)[-2:], self.title])

    def names(self, passage: Passage) -> bool:
        """Return whether the alerts name the page of a passage: by its address, or by an alert's name in the page's title or
        file name, in whatever case and with whatever between its words.
        """
        names = (passage.title, _segments(passage.document_id)[-1])
        return is_at(self.url, passage) or any(_is_titled(name, alert) for alert in self.alerts for name in names)


def runbook_search(incident: Incident) -> RunbookSearch:
    """Return the search terms for the runbook of an incident."""
    names = tuple(dict.fromkeys(alert.name for alert in incident.alerts))
    url = next((alert.runbook_url for alert in incident.alerts if alert.runbook_url), "")
    return RunbookSearch(names, url, incident.title, _cause_terms(incident))


def is_at(address: str, passage: Passage) -> bool:
    """Return whether an address leads to the page of a passage.

    The address is the page's own or ends in its document's name, because a page may be published in several places.
    """
    segments = _segments(address)
    if not segments:
        return False
    if _segments(passage.url) == segments and urlsplit(address).netloc in ("", urlsplit(passage.url).netloc):
        return True
    name = _segments(passage.document_id)[-1]
    if name.isdigit():  # a wiki page, whose address contains its number
        return name in segments
    return len(name) >= MIN_NAME and name not in _UNTELLING_NAMES and segments[-1] == name


def sections_of(passages: Sequence[Passage]) -> list[RunbookSection]:
    """Return the sections of a page in order, without text that a passage repeats from the one before it."""
    sections: list[RunbookSection] = []
    before: set[str] = set()
    for passage in passages:
        own = blocks(passage.text)
        for block in own:
            if block.text in before and block.kind is not BlockKind.HEADING:
                continue
            heading = block.heading or passage.heading
            if not sections or (sections[-1].heading, sections[-1].repeat) != (heading, block.repeat):
                sections.append(RunbookSection(heading, block.repeat, (), passage))
            if block.kind is not BlockKind.HEADING:
                sections[-1] = replace(sections[-1], blocks=(*sections[-1].blocks, block))
        before = {block.text for block in own}
    return sections


def best_section(sections: Sequence[RunbookSection], cause: frozenset[str]) -> RunbookSection | None:
    """Return the section whose instructions fit the cause best; if no cause is known, the first with instructions."""
    useful = [each for each in sections if not _NO_REMEDY.search(each.heading) and any(_steps(each))]
    if not useful or not cause:
        return useful[0] if useful else None
    counts = Counter(term for each in sections for term in _terms_of(each))

    def score(section: RunbookSection) -> float:
        """Return the weight of the cause's terms in the section. The fewer sections have a term, the more it weighs."""
        shared = sum(log((1 + len(sections)) / counts[term]) for term in _terms_of(section) & cause)
        return shared * (REMEDY_WEIGHT if _REMEDY.search(section.heading) else 1.0)

    return max(useful, key=score)


def fit(section: RunbookSection, cause: frozenset[str]) -> int:
    """Return the number of terms of the most probable cause and its evidence in a section; 0 if no cause is known."""
    return len(cause & _terms_of(section))


def linked_addresses(section: RunbookSection) -> list[str]:
    """Return the addresses of the pages that a section links to, in order."""
    return [address for address in _LINK.findall(section.text) if not address.startswith(("#", "mailto:"))]


def has_command(section: RunbookSection) -> bool:
    return any(step.command for step in _steps(section))


def read_section(section: RunbookSection, cause: frozenset[str], url: str) -> Runbook:
    """Return the next action of a section: the instruction nearest to the cause, otherwise the first one."""
    step = max(_steps(section), key=lambda each: len(cause.intersection(terms(each.text))), default=_Step("", ""))
    passage = section.passage
    citation = Citation(
        number=1,
        document_id=passage.document_id,
        passage_id=passage.id,
        title=passage.title,
        heading=section.heading,
        anchor=anchor(passage.anchors, passage.title, section.heading, section.repeat) if section.heading else "",
        url=passage.url or (url if is_at(url, passage) else ""),
        quote=step.text,
        updated_at=passage.updated_at,
        missing=passage.missing,
    )
    readers = tuple(sorted(passage.readers))
    return Runbook(url, citation, plain(step.text)[:MAX_ACTION], step.command[:MAX_COMMAND], readers)


def _terms_of(section: RunbookSection) -> frozenset[str]:
    return frozenset(terms(f"{section.heading}\n{section.text}"))


def _cause_terms(incident: Incident) -> frozenset[str]:
    """Return the terms of the most probable cause and of its evidence; empty if no cause is known."""
    cause = incident.findings.cause
    if cause is None:
        return frozenset()
    return frozenset(terms("\n".join([cause.cause, *(evidence.quote for evidence in cause.evidence)])))


def _steps(section: RunbookSection) -> Iterator[_Step]:
    """Yield the instructions of a section in order, each with its command. Prohibitions are left out.

    If the section begins with a command, its heading is the instruction.
    """
    for index, block in enumerate(section.blocks):
        if block.kind is BlockKind.CODE and not index:
            yield _Step(section.heading, _code(block))
        if block.kind not in (BlockKind.PARAGRAPH, BlockKind.LIST_ITEM):
            continue
        sentences = _SENTENCE_END.split(ITEM.sub("", " ".join(block.text.split())))
        instructions = [each for each in sentences if _INSTRUCTION.search(plain(each)) and not _FORBIDDEN.search(each)]
        for sentence in instructions:
            yield _Step(sentence, _inline_command(sentence) or _command_beside(section.blocks, index, sentence))


def _inline_command(sentence: str) -> str:
    """Return the code within a sentence that is to be run: it follows “run” or “with”, or has an option."""
    for match in _INLINE_CODE.finditer(sentence):
        code = match["code"].strip()
        if " " in code and (match["by"] or _OPTION.search(code)):
            return code
    return ""


def _command_beside(section_blocks: Sequence[Block], index: int, sentence: str) -> str:
    """Return the code block that belongs to an instruction in a block: the next block, otherwise the previous one."""
    after = section_blocks[index + 1] if index + 1 < len(section_blocks) else None
    if after is not None and after.kind is BlockKind.CODE:
        return _code(after)
    before = section_blocks[index - 1] if index else None
    return _code(before) if before is not None and before.kind is BlockKind.CODE and not sentence.endswith(":") else ""


def _code(block: Block) -> str:
    return "\n".join(line.strip() for line in framed(block)[1] if line.strip())


def _segments(address: str) -> list[str]:
    """Return the parts of the path of an address, in lower case and without the extension of the last one."""
    parts = [part for part in unquote(urlsplit(address).path).lower().split("/") if part and part != ".."]
    name, _, extension = parts[-1].rpartition(".") if parts else ("", "", "")
    return [*parts[:-1], name if extension in _EXTENSIONS else parts[-1]] if parts else []


def _is_titled(title: str, name: str) -> bool:
    """Return whether a title contains the name of an alert as whole words, or the name contains a long title."""
    if len(name) < MIN_NAME or name.casefold() in _UNTELLING_NAMES:
        return False
    titled, named = word_parts(title), word_parts(name)
    if len(named) > 1 and holds_run(titled, named):
        return True
    if len(titled) >= TELLING_TITLE and holds_run(named, titled):
        return True
    is_telling = " " in name or any(c.isupper() or c in "_-" or c.isdigit() for c in name[1:])
    return is_telling and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", title, re.IGNORECASE) is not None


_PLACEHOLDER = re.compile(
    r"<([A-Za-z][\w .-]*)>|\{\{\s*(?:\$?labels\.|\$)?([A-Za-z_]\w*)\s*\}\}|\$\{?([A-Za-z_]\w*)\}?|(?<!\S)(?:\.{3}|…)(?!\S)"
)
_FILLERS = frozenset({"your", "the", "name"})  # words of a placeholder that say nothing: <your pod name>


def filled_command(command: str, incident: Incident) -> str:
    """Return a runbook's command with each placeholder filled; empty if one cannot be.

    A value is filled in if all alerts that state it agree on it, and if a shell takes it as one plain word. Variables that
    the command itself sets are no placeholders.
    """
    try:
        return _PLACEHOLDER.sub(partial(_filled, incident), command)
    except LookupError:
        return ""


def _filled(incident: Incident, match: re.Match[str]) -> str:
    words = match.string.replace(";", " ").split()
    is_literal = match.string[: match.start()].count("'") % 2 == 1  # a shell expands nothing in single quotes
    is_set = match[3] in words or any(word.startswith(f"{match[3]}=") for word in words)  # `for pod in`, `pod=$(…)`
    if match[3] and (is_literal or is_set):
        return match[0]
    key = _key(match[1] or match[2] or match[3] or "")
    stated = [{"service": incident.service}, *(alert.labels for alert in incident.alerts)]
    values = {value for labels in stated for name, value in labels.items() if key and value and _key(name) == key}
    value = values.pop() if len(values) == 1 else ""
    is_plain = value.isascii() and all(character.isalnum() or character in "._:/@-" for character in value)
    if not value or not is_plain or value.startswith("-"):
        raise LookupError(match[0])
    return value


def _key(name: str) -> str:
    words = name.lower().replace("-", " ").replace("_", " ").replace(".", " ").split()
    return "".join(word for word in words if word not in _FILLERS)
