"""The text and buttons of an answer's message, the same for every chat; the adapters only render it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from textwrap import dedent, shorten

from core.knowledge.clean_text import without_dead_links
from core.knowledge.markdown import ITEM, Block, BlockKind, blocks, table_rows, without_links
from core.model.answer import EVIDENCE, RECORDS, Answer, Citation, Excerpt, Sentence
from core.model.badge import PredictionKind
from core.model.message_view import (
    NO_MODEL,
    Control,
    Line,
    Link,
    Listing,
    MessageView,
    Mood,
    Part,
    Sources,
    Statements,
    button,
    verbatim,
)
from core.model.messages import CHOOSING, JUDGEMENTS, ButtonAction

CLOSEST_MATCH = "Closest match"
CLOSEST_MATCHES = "Closest matches"
DONT_KNOW = "I don’t know. Nothing that I can show here answers this."
NEAREST = "I don’t know. The closest that I found:"
CONFLICTING = "Sources disagree. Newest first:"
ALSO = "Also"  # before each further excerpt
ASK = "Ask:"  # before the teams that may know

MISSING = "Not included in the quoted page:"  # before a part that is written elsewhere

MAX_MISSING = 3
MAX_CONTACTS = 3
MAX_FURTHER_LINE = 140  # characters
MOST = 0.5  # share of an excerpt from which a sentence is not marked in it

HEADING_LINE = re.compile(r"\*\*([^*]+)\*\*\Z")  # a statement that is a heading
_LINKED = re.compile(r"\[([^\]]*)\]\((https?://[^)]*)\)")
_BULLET = str.maketrans("*+•", "---")
_FENCE_LINES = re.compile(r"^[ \t]*+(?:`{3,}|~{3,})[^\n]*\n?", re.MULTILINE)


def answer_view(answer: Answer) -> MessageView:
    """Return the text and buttons of an answer's message. An abstention names the nearest documents."""
    further = further_excerpts(answer)
    sentences, heading = shown_sentences(answer), _heading(answer)
    words = (each.text if each.text[:1] != "|" else " · ".join(row_lines(each.text)) for each in sentences)
    badge = None if answer.engine == RECORDS and not answer.tentative else answer.badge  # a record is not an estimate
    judged = JUDGEMENTS[PredictionKind.ANSWER] if answer.prediction_id else ()
    return MessageView(
        "answer abstained" if answer.abstained else "answer",
        " · ".join(filter(None, (answer.lead, heading, *words))),
        (
            *([verbatim(answer.lead)] if answer.lead else []),
            *_stated(answer, sentences, heading),
            *_below(answer, further),
            *([Line(badge=badge, is_small=True)] if badge is not None and badge.text else []),
            *([verbatim(answer.note, is_small=True)] if answer.note else []),
        ),
        buttons=(
            *([button(ButtonAction.STOP, answer.stop_id)] if answer.stop_id else []),
            *(
                _control(answer, verdict)
                for verdict in (*CHOOSING[: len(judged and answer.quotes)], *judged, ButtonAction.ASK_A_PERSON)
            ),
        ),
        more=(_control(answer, ButtonAction.WHY_ANSWER),) if badge is not None else (),
        engine=NO_MODEL if answer.engine in (EVIDENCE, RECORDS) else answer.engine,
        by_model=answer.is_composed,
    )


def further_excerpts(answer: Answer) -> tuple[tuple[str, Citation], ...]:
    """Return the excerpts below a certain answer: the first or best words of each on one line (Markdown), and its source."""
    return tuple(
        (_cut(first_line(each)), source)
        for each in answer.further
        for source in answer.citations
        if source.number == each.citation and not answer.quotes
    )


def _stated(answer: Answer, sentences: tuple[Sentence, ...], heading: str) -> Iterator[Part]:
    """Yield the text with the sources that contradict it, or the nearest documents."""
    if answer.abstained:
        yield Sources(
            tuple(replace(each, quote=ITEM.sub("", each.quote)) for each in answer.citations),
            heading,
            "documents",
            is_numbered=False,
        )
    else:
        marked = tuple(
            each.marked for each in answer.quotes or answer.excerpts if len(each.marked) < MOST * len(each.text)
        )
        yield Statements(sentences, answer.citations, heading, marked)
    if conflicting := tuple(source for conflict in answer.conflicts for source in conflict.sources):
        yield Sources(conflicting, CONFLICTING, mood=Mood.ATTENTION)


def _below(answer: Answer, further: tuple[tuple[str, Citation], ...]) -> Iterator[Part]:
    """Yield the sources unless each heads its quote, the other excerpts and the teams to ask."""
    sources = tuple(each for each in answer.citations if each.number not in {source.number for _, source in further})
    if sources and not answer.abstained and len(answer.quotes or answer.excerpts) < 2:
        yield Sources(sources, is_quoted=answer.engine != EVIDENCE, is_small=True)
    if lacking := [] if answer.abstained else list(dict.fromkeys(part for each in sources for part in each.missing)):
        shown, more = tuple(map(_missing, lacking[:MAX_MISSING])), len(lacking[MAX_MISSING:])
        yield Listing("", shown, "parts", is_bulleted=False, is_small=True, left_out=more)
    if further:
        lines = tuple(Line(f"{ALSO}: {text}", links=(source,)) for text, source in further)
        yield Listing("", lines, is_bulleted=False, is_small=True)
    if answer.contacts:
        contacts = " · ".join(contact.text for contact in answer.contacts[:MAX_CONTACTS])
        yield verbatim(f"{ASK} {contacts}", is_small=True)


def _missing(part: str) -> Line:
    """Return the line about a part that a cited page lacks."""
    linked = _LINKED.fullmatch(part)
    return (
        Line(MISSING, links=(Link(linked[1], linked[2]),)) if linked else verbatim(f"{MISSING} {without_links(part)}")
    )


def _heading(answer: Answer) -> str:
    if answer.abstained:
        return NEAREST if answer.citations else DONT_KNOW
    return CLOSEST_MATCHES if answer.quotes else CLOSEST_MATCH if answer.tentative else ""


def _cut(line: str) -> str:
    """Return the line, cut at a word if it is too long. A code span that is cut is closed."""
    cut = shorten(line, MAX_FURTHER_LINE, placeholder=" …")
    return f"{cut}`" if cut.count("`") % 2 else cut


def _control(answer: Answer, verdict: ButtonAction) -> Control:
    """Return the button. Without a prediction to judge, it refers to the question, to ask a person about."""
    return button(verdict, answer.prediction_id or answer.question_id)


def shown_sentences(answer: Answer) -> tuple[Sentence, ...]:
    """Return the shown text, piece by piece: the sentences, or the blocks of the excerpts, each with its source at its end.

    Each of several excerpts is headed by its source instead, with the number and the date.
    """
    shown, quoted = list(answer.sentences), answer.quotes or answer.excerpts
    heads = {
        each.number: " · ".join(filter(None, (each.name, each.updated, each.staleness))) for each in answer.citations
    }
    for excerpt in quoted:
        lines = [line for block in _counted(blocks(excerpt.text)) for line in _lines_of(block)] or [""]
        if head := len(quoted) > 1 and heads.get(excerpt.citation, ""):
            below = lines[lines[0].strip("*") in head :]  # the heading of the section is named once
            shown += [
                Sentence(f"**{head.replace('*', '')}**", (excerpt.citation,)),
                *(Sentence(each, ()) for each in below),
            ]
        else:
            shown += [*(Sentence(each, ()) for each in lines[:-1]), Sentence(lines[-1], (excerpt.citation,))]
    return tuple(shown)


def first_line(excerpt: Excerpt) -> str:
    """Return the marked sentence, or else the first text below a heading, on one line and without links."""
    lines = [
        row_lines(block.text)[-1] if block.kind is BlockKind.TABLE else _lines_of(block)[0]
        for block in blocks(excerpt.marked or excerpt.text)
    ]
    below = [each for each in lines if not HEADING_LINE.match(each)]
    first = (below or lines or [""])[0]
    code = _FENCE_LINES.sub("", first)
    line = " ".join(without_links(ITEM.sub("", code, count=1)).split())
    return f"`{line}`" if code != first and "`" not in line else line


def row_lines(table: str) -> list[str]:
    """Return the rows of a table (at least one) as text, their cells separated by dots."""
    return [" · ".join(filter(None, row)) for row in table_rows(table) if row] or [""]


def _counted(text_blocks: Sequence[Block]) -> Iterator[Block]:
    """Yield the blocks with the items of a list numbered upwards, even if all have the same number, as Markdown allows."""
    lists: dict[int, tuple[str, int]] = {}  # the mark of the last item as written, and its number, by indentation
    for block in text_blocks:
        item = ITEM.match(block.text) if block.kind is BlockKind.LIST_ITEM else None
        if item is None:
            lists = lists if block.kind is BlockKind.CODE else {}
            yield block
            continue
        indent, mark, text = item.start("mark"), item["mark"], block.text
        lists = {each: last for each, last in lists.items() if each <= indent}
        written, number = lists.get(indent, ("", 0))
        if mark[:-1]:
            number = number + 1 if mark == written else int(mark[:-1])
            text = f"{text[:indent]}{number}{mark[-1]}{text[item.end('mark') :]}"
        lists[indent] = mark, number
        yield replace(block, text=text)


def _lines_of(block: Block) -> list[str]:
    """Return a block as a chat shows it: a heading in bold, a table as Markdown, its links as those of any text."""
    if block.kind is BlockKind.HEADING:
        return [f"**{block.heading}**"]
    if block.kind is BlockKind.CODE:
        return [block.text]
    if item := ITEM.match(block.text):
        first, _, rest = block.text[item.end() :].partition("\n")
        inner = blocks(f"{first}\n{dedent(rest)}")
        begin, *further = [line for each in _counted(inner) for line in _lines_of(each)] or [""]
        return [f"{item['mark'].translate(_BULLET)} {begin}", *further]
    return [without_dead_links(block.text)]
