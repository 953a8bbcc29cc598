"""Answers of a language model: sentences that it writes from the passages found, shown as far as the passages say it.

Ericsson chatbot, section V-B. One call writes sentences with citation marks. A second one judges those that the rules leave
open, against the passages that they cite (`core/answering/claims.py`). If nothing can be shown, or only quotes and the
evidence engine abstains, that engine's answer is shown instead. Two short calls say meanwhile how sure the answer is
(LM-PACE, `core/answering/evidence.py`).

The checked answer is then translated from the language of its documents into that of its question.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Annotated

from pydantic import Field

from core.answering.caveats import contradictions
from core.answering.certainty import evaluation_of
from core.answering.claims import Checked, by_judge, by_rules, nearest_statements
from core.answering.evidence import NumberedPassages, Written, fitting, of_their_families, relevant, sureness_of
from core.answering.excerpts import candidates, citation_of, distinct, excerpt_of
from core.answering.find import MAX_FURTHER, RETRIEVED, search
from core.answering.model_text import adds_literals, cleaned, oversteps
from core.answering.questions import parts, standalone
from core.answering.reply import CitedSentence, Form, claims, complete_claims, is_not_found
from core.confidence.calibrator import STRONG_SCORE, raw_score
from core.knowledge.retriever import CANDIDATES, Retrieval, Retriever
from core.model.answer import Answer, Citation, Excerpt, Sentence
from core.model.badge import Evaluation
from core.model.conversation import Question
from core.model.errors import InvalidReply
from core.model.language_model import ModelRequest
from core.model.text import counted
from core.model_calls.choice import PROVEN, Skill, fitting_texts, structured
from core.model_calls.prompts import answering as prompts
from core.ports import LanguageModel

NOT_FOUND = "The language model found no answer in these documents."


def needs_model(answer: Answer, skill: Skill) -> bool:
    """Return whether a model is asked: if the answer is not certain or has several parts, or if it is always asked."""
    return skill.writes > 0 and (answer.tentative or answer.abstained or skill.always or len(answer.excerpts) > 1)


REWRITE_TOKENS = 400  # room for both versions of a question


@dataclass(frozen=True, slots=True)
class Understood:
    """A question that stands alone, as it is searched for. `language` is that of its asker, if the documents have another."""

    query: str
    language: str = ""


async def understood(
    question: Question, retriever: Retriever, model: LanguageModel, request: ModelRequest
) -> Understood:
    """Return the question rewritten to stand alone.

    The model is asked only about a question with a conversation before it, or in another language than the documents; a
    single question in their language is never changed. Of a question in another language, the version whose words occur
    in more documents is used. Raises IndexUnavailable, and the errors of the port and of `structured`.
    """
    plain = standalone(question.text, question.history)
    if not question.history and not (await retriever.spelt(plain)).foreign:
        return Understood(plain)
    rewritten = await _rewritten(question, model, request)
    if not _is_faithful(rewritten, question):
        return Understood(plain)
    own = rewritten.question if question.history else plain
    if rewritten.language.strip().lower() == "english":
        return Understood(own)
    coverage = {text: (await search(text, question.audience, retriever)).known for text in (own, rewritten.english)}
    is_own = coverage[own] >= coverage[rewritten.english]
    return Understood(own) if is_own else Understood(rewritten.english, rewritten.language.strip())


async def _rewritten(question: Question, model: LanguageModel, request: ModelRequest) -> prompts.Rewritten:
    """Ask the model to restate the question, with as many of the latest turns as fit into its context."""
    latest = [prompts.turn_line(turn) for turn in reversed(question.history)]
    places = await fitting_texts(model, prompts.rewrite(question.text, ()), REWRITE_TOKENS, latest)
    first = len(latest) - sum(place == turn for turn, place in enumerate(places))  # of those without a gap
    messages = prompts.rewrite(question.text, question.history[first:])
    return await structured(model, replace(request, messages=messages, max_tokens=REWRITE_TOKENS), prompts.Rewritten)


def _is_faithful(rewritten: prompts.Rewritten, question: Question) -> bool:
    """Return whether both versions keep every name and number of the question, and add none that nobody said."""
    return not any(
        adds_literals(question.text, version)
        or adds_literals(version, "\n".join([question.text, *(turn.text for turn in question.history)]))
        for version in (rewritten.question, rewritten.english)
    )


COMPOSED_VERSION = "answer-composed-7"  # of the prompt, the checks and the measures; stored with every prediction

WRITE_TOKENS = 700  # room for the reply
DEPTHS = (RETRIEVED, CANDIDATES, CANDIDATES)  # of searches: a model that found no answer reads on, twice at most


async def composed_answer(
    question: Question,
    engine_answer: tuple[Answer, Evaluation],
    retriever: Retriever,
    model: LanguageModel,
    request: ModelRequest,
    skill: Skill,
    draft: Callable[[Answer], None] = lambda _: None,
    analyses: int = 0,
    beyond_budget: Collection[str] = (),
) -> tuple[Answer, Evaluation]:
    """Return the answer that the model writes; `engine_answer` if nothing of it can be shown.

    The model reads what is relevant, as much as fits. Where it finds no answer there, it reads on in what was found with less
    likelihood, of any family. `draft` receives the answer so far: that of the evidence engine with a hedge before the model
    reads on, then each time that another sentence has passed the checks that need no model. `request` gives requester,
    urgency and deadline; its messages are replaced. The evaluation is the model's own: how probable it is that the passages
    answer (COE), and how far they support what is written (RCE), as good as the exam proved; each after that many `analyses`.
    `beyond_budget` names what the budget of the question does not allow, once it is over.

    Raises IndexUnavailable, ModelUnavailable, InvalidReply and PromptTooLong.
    """
    ends_at = asyncio.get_running_loop().time() + request.deadline
    reading = await understood(question, retriever, model, request)
    retrieval = await search(reading.query, question.audience, retriever)
    questions, read = [each for each in parts(reading.query) if each != reading.query] or [reading.query], set[str]()
    for depth in DEPTHS:
        by_part = {
            each: retrieval
            if each == reading.query and not read
            else await search(each, question.audience, retriever, depth)
            for each in questions
        }
        evidence = await fitting(
            model,
            [each for each in relevant(by_part, of_family=not read) if each.id not in read],
            prompts.write((), question.text),
            WRITE_TOKENS,
        )
        if not evidence.passages:
            return _without(engine_answer) if read else engine_answer
        read.update(each.id for each in evidence.passages.values())
        writing = replace(request, messages=prompts.write(evidence.shown, reading.query), max_tokens=WRITE_TOKENS)
        answers = _Answers(question, engine_answer[0], reading.query, evidence, retrieval, model.name)
        reply = await model.generate(
            writing, lambda text, of=answers: of.draft(of.checked(complete_claims(text)), draft)
        )
        if not is_not_found(reply.text):
            break
        if engine_answer[0].excerpts:
            draft(_without(engine_answer)[0])  # which stands, with its hedge, where reading on fails or is late
    else:
        return _without(engine_answer)
    passing = answers.checked(claims(reply.text))
    if not passing.may_replace(engine_answer[0]):
        return engine_answer
    answers.draft(passing, draft)
    written = Written(reading.query, evidence.of(passing.claims), passing.claims, writing, ends_at)
    measuring = asyncio.create_task(sureness_of(written, model, await model.abilities(), analyses))
    try:
        checked = await by_judge(passing, written, model if skill.judges else None)
        if not checked.may_replace(engine_answer[0]):
            return engine_answer
        sureness = await measuring or replace(evaluation_of(retrieval, candidates(reading.query, retrieval)), rce=1.0)
    finally:
        measuring.cancel()
    evaluation = replace(sureness, rce=sureness.rce * skill.writes)
    answer = answers.whole(checked, evaluation, skill, beyond_budget)
    if reading.language:
        draft(replace(answer, tentative=True))  # the checked one stands if nothing is left to translate it
        translation = await translated(model, request, answer.sentences, question.text, reading.language)
        answer = replace(
            answer,
            sentences=translation,
            note=f"{answer.note} {TRANSLATED}".strip() if translation != answer.sentences else answer.note,
        )
    return answer, evaluation


def _without(engine_answer: tuple[Answer, Evaluation]) -> tuple[Answer, Evaluation]:
    """Return the evidence engine's answer with a note that the model found none, and with a hedge."""
    answer, evaluation = engine_answer
    return (
        replace(answer, tentative=True, note=f"{answer.note} {NOT_FOUND}".strip()) if answer.excerpts else answer
    ), evaluation


@dataclass(frozen=True, slots=True)
class _Answers:
    """Builds the answer to one question from claims."""

    question: Question
    engine_answer: Answer
    query: str
    evidence: NumberedPassages
    retrieval: Retrieval
    engine: str

    def checked(self, statements: Sequence[CitedSentence]) -> Checked:
        """Return the verdicts of the rules on what cites the families of the question."""
        return by_rules(of_their_families(statements, self.query, self.evidence), self.query, self.evidence)

    def draft(self, passing: Checked, show: Callable[[Answer], None]) -> None:
        """Show what passes the rules, and what stands in the place of the rest."""
        if passing.may_replace(self.engine_answer):
            sentences, sources = self._cited(passing.claims)
            show(Answer(self.question.id, self.question.text, sentences, sources, self.engine, tentative=True))

    def whole(self, checked: Checked, evaluation: Evaluation, skill: Skill, beyond_budget: Collection[str]) -> Answer:
        """Return the answer, with the best excerpts of the cited pages offered below it."""
        sentences, sources = self._cited(checked.claims)
        further, excerpts = self._excerpts(len(sources), frozenset(each.document_id for each in sources))
        return Answer(
            self.question.id,
            self.question.text,
            sentences,
            (*sources, *further),
            self.engine,
            tentative=raw_score(evaluation) < STRONG_SCORE
            or skill.writes < PROVEN
            or checked.quoted > 0
            or bool(beyond_budget),  # what was left out may have been the measurement
            conflicts=contradictions([each for each in sentences if each.citations][:1], sources[:1], self.retrieval),
            further=excerpts,
            note=" ".join(
                [
                    note.format(sentences=counted(number, "sentence"))
                    for note, number in ((QUOTED, checked.quoted), (LEFT_OUT, checked.left_out))
                    if number
                ]
                + [BEYOND_BUDGET.format(what=each) for each in beyond_budget]
            ),
        )

    def _cited(self, kept: Sequence[CitedSentence]) -> tuple[tuple[Sentence, ...], tuple[Citation, ...]]:
        """Return the claims as sentences, and their sources: the sections that they cite, in the order of their use."""
        sources: dict[object, Citation] = {}
        sentences: list[Sentence] = []
        steps = count(1)
        for claim in kept:
            cited = [
                sources.setdefault(each.place, each.cited(len(sources) + 1)).number
                for _, each, _ in nearest_statements(claim, self.evidence)
            ]
            sentences.append(Sentence(_written(claim, steps), tuple(dict.fromkeys(cited))))
        return tuple(sentences), tuple(sources.values())

    def _excerpts(self, used: int, documents: frozenset[str]) -> tuple[tuple[Citation, ...], tuple[Excerpt, ...]]:
        """Return the best excerpts, those of cited pages first, numbered after the sources that are used."""
        ranked = distinct(candidates(self.query, self.retrieval), 2 * MAX_FURTHER)
        ranked.sort(key=lambda each: each.passage.document_id not in documents)
        chosen = list(enumerate(ranked[:MAX_FURTHER], start=used + 1))
        return (
            tuple(citation_of(number, each) for number, each in chosen),
            tuple(excerpt_of(number, each) for number, each in chosen),
        )


BEYOND_BUDGET = "The budget of the language model (models.question) did not allow {what}."
LEFT_OUT = "{sentences} of the language model left out: the documents do not say that."
QUOTED = "{sentences} in the words of the documents: those of the language model could not be confirmed."


def _written(claim: CitedSentence, steps: count[int]) -> str:
    """Return a claim as a line of Markdown."""
    match claim.form:
        case Form.ITEM:
            return f"- {claim.text}"
        case Form.STEP:
            return f"{next(steps)}. {claim.text}"
        case Form.ROW:
            return claim.text.replace(" | ", " · ")
        case Form.LEAD if not claim.text.endswith(":"):
            return f"**{claim.text.replace(' | ', ' · ')}**"
        case _:
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
    return (
        original.startswith("```")
        or not translation
        or oversteps(translation, original)
        or adds_literals(original, translation)
    )
