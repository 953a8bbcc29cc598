"""The evidence engine from end to end: answer a question and evaluate the answer.

In a pasted log or stack trace, the lines that say what failed are searched for, and not the rest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from core.answering.answer_view import first_line
from core.answering.caveats import contradictions
from core.answering.certainty import (
    answerable,
    evaluation_of,
    is_certain,
    may_be_certain,
)
from core.answering.excerpts import Candidate, candidates, choices, citation_of, distinct, excerpt_of, filled
from core.answering.fact_kinds import refuses
from core.answering.questions import CHANGES_NOTHING, Order, compares, parts, standalone
from core.answering.statements import statements
from core.knowledge.retriever import Retrieval, Retriever
from core.knowledge.terms import Spelling, distinct_terms, terms_of
from core.model.answer import EVIDENCE, Answer, Sentence
from core.model.badge import Evaluation
from core.model.conversation import Audience, Question
from core.model.document import DocumentKind
from core.model.errors import ModelUnavailable
from core.model.log_levels import level_named
from core.model.running import run_in_compute_thread
from core.ports import FailedBuild, Reranker
from core.rca.build_log import plain
from core.rca.failing_lines import NO_HISTORY, build_cause, is_build_log
from core.rca.failures import decisiveness
from core.rca.log_lines import frames
from core.rca.signals import TROUBLE
from core.rca.tool_outputs import PASTED, ToolOutput, is_record, records_of

ENGINE = EVIDENCE
RETRIEVED = 16  # passages that the excerpts are chosen from
FOREIGN = "Without a language model, I understand only the language of the documents."
FAILED = "What failed: {lines}."
MAX_FURTHER = 2  # excerpts that are offered below the first


async def find_answer(
    question: Question, retriever: Retriever, order: Order | None = None
) -> tuple[Answer, Evaluation]:
    """Answer from what the question's audience may read, or abstain and name the nearest documents.

    The answer to an `order` is how a person does that, with what is named or with anything. If nothing explains what is
    ordered, only the nearest documents are named. Raises IndexUnavailable.
    """
    if order is None:
        return await _answer_as_read(question, retriever)
    judged = [await _answer_as_read(replace(question, text=each), retriever) for each in order.questions]
    answer, evaluation = max(judged, key=lambda each: order.explained_by(each[0]))
    answer = replace(answer, question=question.text)
    if order.is_question:
        return answer, evaluation
    if not order.explained_by(answer):
        answer = replace(answer, excerpts=(), further=())
    return replace(answer, lead=CHANGES_NOTHING), evaluation


async def _answer_as_read(question: Question, retriever: Retriever) -> tuple[Answer, Evaluation]:
    """Return the answer to a question as it is understood: alone, after the conversation, respelt, or in parts.

    Of a pasted log or stack trace, what failed is searched for, and the answer leads with it: first the most decisive line
    alone, because others may only repeat it.
    """
    if (paste := read_paste(question.text)) is not None:
        judged = await _answer_to(question, paste.queries[0], retriever)
        if judged[0].abstained:
            judged = await _answer_to(question, paste.queries[1], retriever)
        return replace(judged[0], lead=FAILED.format(lines="; ".join(f"“{line}”" for line in paste.failed))), judged[1]
    query = standalone(question.text, question.history)
    is_follow_up = query != question.text.strip()
    # It may be misunderstood, or half an answer.
    whole = await _answer_to(question, query, retriever, is_doubtful=is_follow_up or compares(query))
    if whole[0].abstained or whole[0].tentative:
        spelling = await retriever.spelt(query)
        if spelling.foreign or (whole[0].abstained and spelling.query != query):
            retrieval = await search(spelling.query, question.audience, retriever)
            read = await run_in_compute_thread(
                partial(answer, is_foreign=spelling.foreign, is_doubtful=True), question, spelling.query, retrieval
            )
            return _doubted(read, spelling)
    questions = () if is_follow_up else parts(query)
    if len(questions) < 2:
        return whole
    answers = [await _answer_to(question, part, retriever) for part in questions]
    if len({part.text for part, _ in answers}) < len(answers) or any(part.abstained for part, _ in answers):
        return await _answer_to(question, query, retriever, is_doubtful=True)  # it may be half an answer
    return _joined(answers, whole)


async def _answer_to(
    question: Question, query: str, retriever: Retriever, *, is_doubtful: bool = False
) -> tuple[Answer, Evaluation]:
    """Return the answer to a question that is read as this query."""
    return await run_in_compute_thread(
        partial(answer, is_doubtful=is_doubtful), question, query, await search(query, question.audience, retriever)
    )


async def search(query: str, audience: Audience, retriever: Retriever, limit: int = RETRIEVED) -> Retrieval:
    """Return the passages that may answer, without threads that nobody answered, which could displace pages that do.

    If there is a reranker, they stand in its order.
    """
    retrieval = await retriever.search(query, audience, limit)
    retrieval = replace(
        retrieval,
        passages=[
            each
            for each in retrieval.passages
            if each.passage.kind is not DocumentKind.THREAD or statements(each.passage)
        ],
    )
    return retrieval if retriever.reranker is None else await _reranked(query, retrieval, retriever.reranker)


async def _reranked(query: str, retrieval: Retrieval, reranker: Reranker) -> Retrieval:
    """Return the passages in the order of a model that reads a question together with each; as they are if it fails.

    What it puts first is quoted first, and a language model reads the passages in its order. Nothing else follows from it:
    the scores and the measures of certainty are those of the evidence, so that no answer is shown, or is certain, because a
    reranker prefers it. An answer is not certain either if the reranker prefers another passage.

    It is not asked where there is nothing to choose, because people confirmed the answer, or there is a single passage. The
    passages keep their scores, so that both orders can be compared.
    """
    passages = retrieval.passages
    if len(passages) > 1 and not passages[0].confirmed:
        with suppress(ModelUnavailable):
            order = await reranker(query, [f"{each.passage.title}\n{each.passage.text}" for each in passages])
            return replace(retrieval, passages=[passages[place] for place in order], is_reranked=True)
    return retrieval


def answer(
    question: Question, query: str, retrieval: Retrieval, *, is_foreign: bool = False, is_doubtful: bool = False
) -> tuple[Answer, Evaluation]:
    """Return the answer that the retrieved passages give, without a badge, and the evaluation for its badge.

    `query` is the question rewritten to stand alone. A certain answer is one excerpt, and so of one family (Evidence-Chain
    RAG: evidence of two families is not mixed in one answer); the others are offered beside it. One that is not certain,
    or `is_doubtful` because the question may be misread, is the first of several short quotes. If `is_foreign`, `query`
    holds only the words that are understood. A page whose title is the question itself, as the name of an alert, answers
    for certain. A later page that replaces or forbids a command of what is quoted comes first, and nothing is certain then.
    So does the passage that a reranker prefers, and what refuses, on the page that is quoted first, what the question asks
    leave for: a reader may act on the first quote.
    """
    ranked = candidates(query, retrieval)
    named = [each for each in ranked if each.read.is_named]
    ranked = named + [each for each in ranked if not each.read.is_named]
    chosen_first = _preferred_first(ranked, retrieval) if retrieval.is_reranked and not named else ranked
    evaluation, offered = evaluation_of(retrieval, ranked), choices(question, query, chosen_first, 1 + MAX_FURTHER)
    if not (named or answerable(evaluation) or any(_is_known(each, query, is_foreign=is_foreign) for each in offered)):
        return Answer(
            question.id,
            question.text,
            (),
            tuple(citation_of(number, each) for number, each in enumerate(offered, start=1)),
            ENGINE,
        ), evaluation
    is_sure = not is_doubtful and (
        bool(named)
        or (
            chosen_first[0] is ranked[0]
            and is_certain(evaluation)
            and may_be_certain(query, ranked[0], excerpt_of(1, ranked[0]), retrieval)
            and (offered[0].marked in ranked[0].pieces or not refuses(query, offered[0].marked.text))
        )
    )
    chosen = distinct(ranked, 1 + MAX_FURTHER) if is_sure else filled(offered)
    quoted = _quoting(question, chosen, retrieval, short=not is_sure)
    newer = [each.sources[0].passage_id for each in quoted.conflicts if each.is_replaced]
    if newer and quoted.citations[0].passage_id not in newer:
        first = [each for each in ranked if each.passage.id in newer][:1]
        offered = choices(question, query, [*first, *ranked], 1 + MAX_FURTHER)
        quoted = _quoting(question, filled(offered), retrieval, short=True)
    return quoted, evaluation


def _preferred_first(ranked: Sequence[Candidate], retrieval: Retrieval) -> Sequence[Candidate]:
    """Return the candidates, with the best one of the passage that the reranker put first before all others.

    All others stay in the order of the evidence. A passage without a candidate, such as one of headings alone, changes
    nothing.
    """
    preferred = next((each for each in ranked if each.passage.id == retrieval.passages[0].passage.id), None)
    return sorted(ranked, key=lambda each: each is not preferred)


def _quoting(question: Question, chosen: Sequence[Candidate], retrieval: Retrieval, *, short: bool = False) -> Answer:
    """Return the answer that quotes these excerpts, or `short` quotes to choose from, with what other pages say against it."""
    citations = tuple(citation_of(number, each) for number, each in enumerate(chosen, start=1))
    excerpts = tuple(excerpt_of(number, each, short=short) for number, each in enumerate(chosen, start=1))
    whole = excerpts if short else excerpts[:1]
    return Answer(
        question.id,
        question.text,
        (),
        citations,
        ENGINE,
        tentative=short,
        conflicts=contradictions(
            [Sentence(first_line(each), (each.citation,)) for each in whole],
            citations[: len(whole)],
            retrieval,
            [line for each in whole for line in _commands(each.citation, chosen[each.citation - 1])],
        ),
        excerpts=excerpts[:1],
        further=excerpts[1:],
    )


def _commands(number: int, quoted: Candidate) -> list[Sentence]:
    """Return the lines of fenced code in the passage of a candidate with this number, each as a statement."""
    fenced = "\n".join(quoted.passage.text.split("```")[1::2])
    return [Sentence(f"`{line.strip()}`", (number,)) for line in fenced.splitlines() if line.strip()]


def _is_known(quote: Candidate, query: str, *, is_foreign: bool) -> bool:
    """Return whether a quote is shown regardless of the evaluation: it or the headings above it hold every term.

    A single term must be in the title of its page.
    """
    words = distinct_terms(query)
    return quote.read.found.confirmed > 0 or (
        quote.coverage > 0.99 and (len(words) > 1 or (is_foreign and words <= distinct_terms(quote.passage.title)))
    )


def _doubted(judged: tuple[Answer, Evaluation], spelling: Spelling) -> tuple[Answer, Evaluation]:
    """Return the answer with a note on those respelt words that occur in the answer."""
    answered, evaluation = judged
    read = {word: by for word, by in spelling.corrected.items() if distinct_terms(answered.text) & set(terms_of(by))}
    return replace(answered, note=FOREIGN if spelling.foreign else read_as(read)), evaluation


def read_as(corrected: Mapping[str, str]) -> str:
    """Return a note on how misspelt words were read; empty if there were none."""
    read = ", ".join(f"“{word}” as “{by}”" for word, by in corrected.items())
    return f"I read {read}." if read else ""


def _joined(
    answers: Sequence[tuple[Answer, Evaluation]], whole: tuple[Answer, Evaluation]
) -> tuple[Answer, Evaluation]:
    """Return one excerpt for each part of a question.

    Both measures are the minimum of the parts: the answer is as good as its weakest part.
    """
    evaluation = Evaluation(min(each.coe for _, each in answers), min(each.rce for _, each in answers))
    return (
        replace(
            whole[0],
            excerpts=tuple(replace(part.excerpts[0], citation=number) for number, (part, _) in enumerate(answers, 1)),
            further=(),
            citations=tuple(replace(part.citations[0], number=number) for number, (part, _) in enumerate(answers, 1)),
            tentative=not is_certain(evaluation) or any(part.tentative for part, _ in answers),
            conflicts=tuple(conflict for part, _ in answers for conflict in part.conflicts),
        ),
        evaluation,
    )


LEAST_LINES = 4  # of a text that is read as a paste
SEARCHED = 3  # lines that say what failed, the most decisive ones
MAX_LINE = 300  # characters of a line

_CAUSED_BY = re.compile(r"^[^\S\n]*+(?:Caused by:|\[cause\]:|--->) *(?P<what>\S.*)$", re.MULTILINE)
_OTHER_FRAME = re.compile(
    r"^[^\S\n]++at .{1,300} in .{1,300}:line \d+$|^[^\S\n]++from .{1,300}:\d+:in [`']", re.MULTILINE
)  # .NET, Ruby
_RUBY = re.compile(r"^\S{1,300}:\d+:in [`'].{1,200}?': (?P<what>\S.{0,1000})$", re.MULTILINE)
_RAISED = re.compile(
    r"^[^\S\n]*+(?:Exception in thread \"[^\"\n]{1,100}\" |Unhandled exception\. |Uncaught )?"
    r"(?P<what>[A-Za-z_][\w.]{0,200}+(?:(?<=Error)|(?<=Exception)|(?<=Timeout)|(?<=Interrupt)|(?<=Exit)|(?<=Failure))"
    r"(?::? [^\n]{1,1000})?)$",
    re.MULTILINE,
)
_PANIC = re.compile(r"^(?P<what>panic: .{1,1000}|thread '.{1,100}' panicked at .{1,1000})$", re.MULTILINE)
_CHAINED = re.compile(
    r"^(?:The above exception was the direct cause|During handling of the above exception)", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Paste:
    """The lines of a pasted text that say what failed, most decisive first, and the question beside them, which may be empty.

    Untrusted.
    """

    failed: tuple[str, ...]
    asked: str

    @property
    def queries(self) -> tuple[str, ...]:
        """Return what to search for: the most decisive line, and then all of them."""
        return tuple("\n".join(filter(None, (self.asked, *lines))) for lines in (self.failed[:1], self.failed))


def read_paste(text: str) -> Paste | None:
    """Return what failed in a pasted log or stack trace; None for any other text."""
    lines = plain(text).replace("```", "").splitlines()
    if sum(bool(line.strip()) for line in lines) < LEAST_LINES:
        return None
    whole = "\n".join(lines)
    is_trace = bool(frames(whole) or _OTHER_FRAME.search(whole))
    failed = [raised] if is_trace and (raised := _raised(whole)) else _failed_in_build(text) or _failed_in_log(lines)
    return Paste(tuple(line[:MAX_LINE] for line in failed), _question(lines)) if failed else None


def _failed_in_build(log: str) -> list[str]:
    """Return the lines of a build log that state the failure, the most decisive first; empty for any other text."""
    cause = build_cause(FailedBuild("", "", "", "", "", log), NO_HISTORY) if is_build_log(log) else None
    quoted = [evidence.quote for evidence in cause.evidence] if cause is not None else []
    stated = [line for line in quoted if decisiveness(line) > 0] or quoted
    return sorted(dict.fromkeys(stated), key=lambda line: -decisiveness(line))[:SEARCHED]


def _failed_in_log(lines: Sequence[str]) -> list[str]:
    """Return the trouble in the records of an application's log, the most decisive first; empty for any other text."""
    if sum(map(is_record, lines)) < LEAST_LINES:
        return []
    records = records_of(ToolOutput(PASTED, {}, "\n".join(lines)), "", until=datetime.now(UTC))
    weights = {each.text: TROUBLE.get(level_named(each.level), 0.0) for each in records}
    return sorted(
        (text for text, weight in weights.items() if weight),
        key=lambda text: (-weights[text], -decisiveness(text)),
    )[:SEARCHED]


def _raised(trace: str) -> str:
    """Return the first cause in a stack trace: the last “Caused by”, or the exception that was raised first."""
    if causes := _CAUSED_BY.findall(trace):
        return causes[-1]
    raised = _RAISED.findall(trace) or _PANIC.findall(trace) or _RUBY.findall(trace)
    if not raised:
        return ""
    return raised[0] if _CHAINED.search(trace) or not trace.lstrip().startswith("Traceback") else raised[-1]


def _question(lines: list[str]) -> str:
    """Return the sentence before or after the paste that asks something; empty if there is none."""
    sentences = [line.strip() for line in lines if line.strip()]
    return next((line for line in (*sentences[:2], *sentences[-2:]) if line.endswith("?")), "")
