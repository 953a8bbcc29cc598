"""Let a language model write the answer from the passages found, and show what the passages say (Ericsson chatbot, V-B).

One call writes sentences with citation marks. Each sentence is checked against the passages that it cites, by rules
(`checker.py`) and by the model's own yes or no (`verdicts.py`). If the first sentence fails, the evidence engine's answer
is shown instead. If the server has free slots, further replies and the analyses of LM-PACE show
meanwhile how sure the answer is (`sureness.py`).

The checked answer is then translated from the language of its documents into that of its question.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Annotated

from pydantic import Field

from core.answering.certainty import evaluation_of
from core.answering.composed.evidence import (
    CitedSentence,
    Form,
    NumberedPassages,
    claims,
    complete_claims,
    fitting,
    is_not_found,
    of_one_family,
    relevant,
)
from core.answering.composed.sureness import Written, sureness_of
from core.answering.composed.verdicts import Checked, by_model, by_rules, fault_in
from core.answering.contradictions import contradictions
from core.answering.excerpts import candidates
from core.answering.find import MAX_FURTHER, citation_of, distinct, excerpt_of, search
from core.answering.model_answer import NOT_FOUND, understood
from core.answering.model_text import adds_literals, cleaned, oversteps, wording
from core.answering.statements import Statement, statements
from core.confidence.calibrator import STRONG_SCORE, raw_score
from core.knowledge.retriever import Retrieval, Retriever
from core.model.answer import Answer, Citation, Excerpt, Sentence
from core.model.conversation import Question
from core.model.document import Passage
from core.model.errors import InvalidReply
from core.model.language_model import ModelRequest
from core.model.layout import counted
from core.model.prediction import Evaluation
from core.model_calls.choice import Skill
from core.model_calls.prompts import composing as prompts
from core.model_calls.structured_reply import structured
from core.ports import LanguageModel

VERSION = "answer-composed-3"  # of the prompt, the checks and the measures; stored with every prediction

WRITE_TOKENS = 700  # room for the reply


async def composed_answer(
    question: Question,
    engine_answer: tuple[Answer, Evaluation],
    retriever: Retriever,
    model: LanguageModel,
    request: ModelRequest,
    skill: Skill,
    draft: Callable[[Answer], None] = lambda _: None,
) -> tuple[Answer, Evaluation]:
    """Return the answer that the model writes; `engine_answer` if nothing of it can be shown.

    `draft` receives the answer so far each time that another sentence has passed the checks that need no model. `request`
    gives requester, urgency and deadline; its messages are replaced. The evaluation is the model's own: how probable it
    is that the passages answer (COE), and how far they say what is written, the model repeats it, and rates it (RCE), as
    good as the exam proved.

    Raises IndexUnavailable, ModelUnavailable, InvalidReply and PromptTooLong.
    """
    ends_at = asyncio.get_running_loop().time() + request.deadline
    reading = await understood(question, retriever, model, request)
    retrieval = await search(reading.query, question.audience, retriever)
    evidence = await fitting(model, relevant(reading.query, retrieval), prompts.write((), question.text), WRITE_TOKENS)
    if not evidence.passages:
        return engine_answer
    writing = replace(request, messages=prompts.write(evidence.shown, reading.query), max_tokens=WRITE_TOKENS)
    answers = _Answers(question, reading.query, evidence, retrieval, model.name)
    reply = await model.generate(writing, lambda text: answers.draft(text, draft))
    if is_not_found(reply.text):
        return _without(engine_answer)
    passing = by_rules(of_one_family(claims(reply.text), reading.query, evidence), reading.query, evidence)
    if not passing.kept:
        return engine_answer
    abilities = await model.abilities()
    written = Written(reading.query, question.asked_at, evidence, passing.claims, writing, ends_at)
    measuring = asyncio.create_task(sureness_of(written, model, abilities))
    try:
        checked = await by_model(passing, written, model, abilities)
        if not checked.kept:
            return engine_answer
        sureness = await measuring
    finally:
        measuring.cancel()
    coe = evaluation_of(reading.query, retrieval, candidates(reading.query, retrieval)).coe
    evaluation = Evaluation(
        coe if sureness.coe is None else sureness.coe,
        checked.support * sureness.agreement * sureness.rating * skill.writes,
    )
    answer = answers.whole(checked, evaluation, skill)
    if reading.language:
        translation = await translated(model, request, answer.sentences, question.text, reading.language)
        answer = replace(
            answer, sentences=translation, note=TRANSLATED if translation != answer.sentences else answer.note
        )
    return answer, evaluation


def _without(engine_answer: tuple[Answer, Evaluation]) -> tuple[Answer, Evaluation]:
    """Return the evidence engine's answer with a note that the model found none, and with a hedge."""
    answer, evaluation = engine_answer
    if not answer.excerpts:
        return engine_answer
    return replace(answer, tentative=True, note=f"{answer.note} {NOT_FOUND}".strip()), evaluation


@dataclass(frozen=True, slots=True)
class _Answers:
    """Builds the answer to one question from claims."""

    question: Question
    query: str
    evidence: NumberedPassages
    retrieval: Retrieval
    engine: str

    def draft(self, text: str, show: Callable[[Answer], None]) -> None:
        """Show what of a growing reply is complete and passes the rules, unless its first claim fails."""
        complete = complete_claims(text)
        kept = [claim for claim in complete if fault_in(claim, self.query, self.evidence) is None]
        if kept and kept[0] is complete[0] and any(claim.numbers for claim in kept):
            sentences, sources = self._cited(kept)
            show(Answer(self.question.id, self.question.text, sentences, sources, self.engine, tentative=True))

    def whole(self, checked: Checked, evaluation: Evaluation, skill: Skill) -> Answer:
        """Return the answer, with the best excerpts of the cited pages offered below it."""
        sentences, sources = self._cited(checked.claims)
        further, excerpts = self._excerpts(len(sources), frozenset(each.document_id for each in sources))
        left_out = sum(checked.faults.values())
        return Answer(
            self.question.id,
            self.question.text,
            sentences,
            (*sources, *further),
            self.engine,
            tentative=raw_score(evaluation) < STRONG_SCORE or not skill.is_proven or checked.by_rules,
            conflicts=contradictions(sentences[:1], sources[:1], self.retrieval),
            further=excerpts,
            note=LEFT_OUT.format(sentences=counted(left_out, "sentence")) if left_out else "",
        )

    def _cited(self, kept: Sequence[CitedSentence]) -> tuple[tuple[Sentence, ...], tuple[Citation, ...]]:
        """Return the claims as sentences, and their sources: the sections that they cite, in the order of their use."""
        sources: dict[object, Citation] = {}
        sentences: list[Sentence] = []
        steps = count(1)
        for claim in kept:
            nearest = [nearest_statement(claim, passage) for passage in self.evidence.cited(claim.numbers)]
            cited = [sources.setdefault(each.place, each.cited(len(sources) + 1)).number for each in nearest if each]
            sentences.append(Sentence(_written(claim, steps), tuple(dict.fromkeys(cited))))
        return tuple(sentences), tuple(sources.values())

    def _excerpts(self, used: int, documents: frozenset[str]) -> tuple[tuple[Citation, ...], tuple[Excerpt, ...]]:
        """Return the best excerpts, those of cited pages first, numbered after the sources that are used."""
        ranked = distinct(candidates(self.query, self.retrieval), 2 * MAX_FURTHER)
        ranked.sort(key=lambda each: each.passage.document_id not in documents)
        chosen = list(enumerate(ranked[:MAX_FURTHER], start=used + 1))
        return (
            tuple(citation_of(number, each) for number, each in chosen),
            tuple(excerpt_of(number, each, self.query) for number, each in chosen),
        )


LEFT_OUT = "{sentences} of the language model left out: the documents do not say that."


def nearest_statement(claim: CitedSentence, passage: Passage) -> Statement | None:
    """Return the statement of a passage that shares the most terms with a claim; None if it has none."""
    terms = wording(claim.text)
    return max(statements(passage), key=lambda each: len(terms & wording(each.text)), default=None)


def _written(claim: CitedSentence, steps: count[int]) -> str:
    """Return a claim as a line of Markdown."""
    match claim.form:
        case Form.ITEM:
            return f"- {claim.text}"
        case Form.STEP:
            return f"{next(steps)}. {claim.text}"
        case Form.ROW:
            return claim.text.replace(" | ", " · ")
        case Form.SENTENCE:
            return claim.text


TRANSLATED = "Translated from the language of the documents. The original wording applies."
TRANSLATE_TOKENS = 900  # room for all sentences of an answer


@dataclass(frozen=True, slots=True)
class Translated:
    """The sentences in the other language, in their order."""

    sentences: Annotated[list[Annotated[str, Field(max_length=900)]], Field(max_length=12)]


async def translated(
    model: LanguageModel, request: ModelRequest, sentences: Sequence[Sentence], question: str, language: str
) -> tuple[Sentence, ...]:
    """Return the sentences in `language`, with their citations.

    A sentence whose translation loses or adds a literal stays as it is. Raises the errors of the port.
    """
    messages = prompts.translate([each.text for each in sentences], question, language)
    try:
        reply = await structured(model, replace(request, messages=messages, max_tokens=TRANSLATE_TOKENS), Translated)
    except InvalidReply:
        return tuple(sentences)
    if len(reply.sentences) != len(sentences):
        return tuple(sentences)
    return tuple(
        sentence if _differs(sentence.text, translation := cleaned(text)) else replace(sentence, text=translation)
        for sentence, text in zip(sentences, reply.sentences, strict=True)
    )


def _differs(original: str, translation: str) -> bool:
    return not translation or oversteps(translation, original) or adds_literals(original, translation)
