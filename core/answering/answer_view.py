"""The text and buttons of an answer's message, the same for every chat; the adapters only render it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from textwrap import dedent, shorten

from core.knowledge.clean_text import without_dead_links
from core.knowledge.markdown import Block, BlockKind, blocks, has_header, without_links
from core.model.answer import RECORDS, Answer, Citation, Excerpt, Sentence
from core.model.badge import Badge
from core.model.messages import BUTTON_LABELS, ButtonAction, Control

CLOSEST_MATCH = "Closest match"
DONT_KNOW = "I don’t know. Nothing that I can show here answers this."
NEAREST = "I don’t know. The closest that I found:"
CONFLICTING = "Sources disagree. Newest first:"
ALSO = "Also"  # before each further excerpt
ASK = "Ask:"  # before the teams that may know

MAX_CONTACTS = 3
MAX_FURTHER = 2
MAX_FURTHER_LINE = 140  # characters
MOST = 0.5  # share of an excerpt from which a sentence is not marked in it

HEADING_LINE = re.compile(r"\*\*([^*]+)\*\*\Z")  # a statement that is a heading
_ITEM = re.compile(r"^\s*+([-*+•]|\d{1,3}[.)])[ \t]+")
_BULLET = str.maketrans("*+•", "---")
_FENCE_LINES = re.compile(r"^[ \t]*+(?:`{3,}|~{3,})[^\n]*\n?", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Further:
    """Another excerpt that may answer: its first or best words on one line (Markdown, untrusted), and its source."""

    text: str
    source: Citation


@dataclass(frozen=True, slots=True)
class AnswerView:
    """The message of an answer.

    `lead` comes first, and `heading` is empty if the answer is certain. `said` is the text: pieces of Markdown (untrusted),
    each with the numbers of its sources; `marked` are the sentences of it that answer, verbatim, if there is more text. An
    abstention has no text, and names the `nearest` documents. `buttons` are visible, `more` is behind a menu.
    """

    lead: str
    heading: str
    said: tuple[Sentence, ...]
    marked: tuple[str, ...]
    conflicting: tuple[Citation, ...]
    sources: tuple[Citation, ...]
    further: tuple[Further, ...]
    nearest: tuple[Citation, ...]
    contacts: str
    badge: Badge | None
    note: str
    buttons: tuple[Control, ...]
    more: tuple[Control, ...]

    @property
    def summary(self) -> str:
        """Return the line that stands in for the message in a notification or a screen reader."""
        return " · ".join(filter(None, (self.lead, self.heading, *(each.text for each in self.said))))

    @property
    def subjects(self) -> dict[ButtonAction, str]:
        """Return the available actions, each with the id that it refers to."""
        offered = (*self.buttons, *self.more)
        return {control.verdict: control.subject for control in offered if control.verdict is not None}


def answer_view(answer: Answer) -> AnswerView:
    """Return the text and buttons of an answer's message."""
    further = tuple(
        Further(_cut(first_line(each)), source)
        for each in answer.further[:MAX_FURTHER]
        for source in answer.citations
        if source.number == each.citation
    )
    offered_below = {each.source.number for each in further}
    badge = None if answer.engine == RECORDS and not answer.tentative else answer.badge  # a record is not an estimate
    judged = (ButtonAction.HELPFUL, ButtonAction.WRONG) if answer.prediction_id else ()
    return AnswerView(
        lead=answer.lead,
        heading=_heading(answer),
        said=shown_sentences(answer),
        marked=tuple(each.marked for each in answer.excerpts if len(each.marked) < MOST * len(each.text)),
        conflicting=tuple(source for conflict in answer.conflicts for source in conflict.sources),
        sources=()
        if answer.abstained
        else tuple(each for each in answer.citations if each.number not in offered_below),
        further=further,
        nearest=answer.citations if answer.abstained else (),
        contacts=" · ".join(contact.text for contact in answer.contacts[:MAX_CONTACTS]),
        badge=badge,
        note=answer.note,
        buttons=(*_stop(answer), *(_control(answer, verdict) for verdict in (*judged, ButtonAction.ASK_A_PERSON))),
        more=(_control(answer, ButtonAction.WHY_ANSWER),) if badge is not None else (),
    )


def _heading(answer: Answer) -> str:
    if answer.abstained:
        return NEAREST if answer.citations else DONT_KNOW
    return CLOSEST_MATCH if answer.tentative else ""


def _cut(line: str) -> str:
    """Return the line, cut at a word if it is too long. A code span that is cut is closed."""
    cut = shorten(line, MAX_FURTHER_LINE, placeholder=" …")
    return f"{cut}`" if cut.count("`") % 2 else cut


def _stop(answer: Answer) -> Iterator[Control]:
    if answer.stop_id:
        yield Control(BUTTON_LABELS[ButtonAction.STOP], ButtonAction.STOP, answer.stop_id)


def _control(answer: Answer, verdict: ButtonAction) -> Control:
    """Return the button. Without a prediction to judge, it refers to the question, to ask a person about."""
    return Control(BUTTON_LABELS[verdict], verdict, answer.prediction_id or answer.question_id)


def shown_sentences(answer: Answer) -> tuple[Sentence, ...]:
    """Return the shown text, piece by piece: the sentences, or the blocks of the excerpts, the last one of each cited.

    If there are several excerpts, one that begins without a heading is headed by the name of its source.
    """
    shown: list[Sentence] = list(answer.sentences)
    names = {citation.number: citation.name for citation in answer.citations}
    for excerpt in answer.excerpts:
        *others, last = [line for block in _counted(blocks(excerpt.text)) for line in _lines_of(block)] or [""]
        if len(answer.excerpts) > 1 and not HEADING_LINE.match((*others, last)[0]):
            shown.append(Sentence(f"**{names.get(excerpt.citation, '')}**", ()))
        shown += [*(Sentence(each, ()) for each in others), Sentence(last, (excerpt.citation,))]
    return tuple(shown)


def first_line(excerpt: Excerpt) -> str:
    """Return the marked sentence, or else the first text below a heading, on one line and without links."""
    lines = [
        _lines_of(block)[-1 if block.kind is BlockKind.TABLE else 0] for block in blocks(excerpt.marked or excerpt.text)
    ]
    below = [each for each in lines if not HEADING_LINE.match(each)]
    first = (below or lines or [""])[0]
    code = _FENCE_LINES.sub("", first)
    line = " ".join(without_links(_ITEM.sub("", code, count=1)).split())
    return f"`{line}`" if code != first and "`" not in line else line


def _counted(text_blocks: Sequence[Block]) -> Iterator[Block]:
    """Yield the blocks with the items of a list numbered upwards, even if all have the same number, as Markdown allows."""
    lists: dict[int, tuple[str, int]] = {}  # the mark of the last item as written, and its number, by indentation
    for block in text_blocks:
        item = _ITEM.match(block.text) if block.kind is BlockKind.LIST_ITEM else None
        if item is None:
            lists = lists if block.kind is BlockKind.CODE else {}
            yield block
            continue
        indent, mark, text = item.start(1), item[1], block.text
        lists = {each: last for each, last in lists.items() if each <= indent}
        written, number = lists.get(indent, ("", 0))
        if mark[:-1]:
            number = number + 1 if mark == written else int(mark[:-1])
            text = f"{text[:indent]}{number}{mark[-1]}{text[item.end(1) :]}"
        lists[indent] = mark, number
        yield replace(block, text=text)


def _lines_of(block: Block) -> list[str]:
    """Return a block as a chat shows it: a heading in bold, the cells of a table row separated by dots."""
    if block.kind is BlockKind.HEADING:
        return [f"**{block.heading}**"]
    if block.kind is BlockKind.TABLE:
        lines = block.text.splitlines()
        rows = [lines[0], *lines[2:]] if has_header(lines) else lines
        shown = [" · ".join(cell.strip() for cell in row.strip().strip("|").split("|")).rstrip(" ·") for row in rows]
        return [without_dead_links(row) for row in shown]
    if block.kind is BlockKind.CODE:
        return [block.text]
    if item := _ITEM.match(block.text):
        first, _, rest = block.text[item.end() :].partition("\n")
        inner = blocks(f"{first}\n{dedent(rest)}")
        begin, *further = [line for each in _counted(inner) for line in _lines_of(each)] or [""]
        return [f"{item[1].translate(_BULLET)} {begin}", *further]
    return [without_dead_links(block.text)]
