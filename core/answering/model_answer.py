"""Answers of a language model: an excerpt that it chooses in one call, or sentences that it writes from the passages found.

What it writes is shown as far as the passages say it (Ericsson chatbot, section V-B).

For a model that finds better than it writes (see `composed_answer`). Its odds are combined with those of the evidence engine,
weighted by the model's exam (`core/answering/model_exam.py`). The likeliest excerpt is shown, so that a model that chooses
at random changes nothing.

One call writes sentences with citation marks. A second one judges those that the rules leave open, against the passages that
they cite (`core/answering/claims.py`). If nothing of the model's own passes, the evidence engine's answer is shown instead. Two
short ones say meanwhile how sure the answer is (LM-PACE, `core/answering/evidence.py`).

The checked answer is then translated from the language of its documents into that of its question.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Annotated

from pydantic import Field

from core.answering.answer_view import first_line
from core.answering.caveats import contradictions
from core.answering.certainty import evaluation_of
from core.answering.claims import Checked, by_judge, by_rules, nearest_statement
from core.answering.evidence import NumberedPassages, Written, fitting, of_their_families, relevant, sureness_of
from core.answering.excerpts import candidates, distinct
from core.answering.find import MAX_FURTHER, citation_of, excerpt_of, search
from core.answering.model_text import adds_literals, cleaned, oversteps
from core.answering.questions import parts, standalone
from core.answering.reply import CitedSentence, Form, claims, complete_claims, is_not_found
from core.confidence.calibrator import STRONG_SCORE, raw_score
from core.knowledge.retriever import Retrieval, Retriever
from core.model.answer import Answer, Citation, Excerpt, Sentence
from core.model.badge import Evaluation
from core.model.conversation import Question
from core.model.errors import InvalidReply
from core.model.language_model import ModelRequest
from core.model.text import counted
from core.model_calls.choice import Skill, choose, fitting_texts, structured, weighed
from core.model_calls.prompts import Named
from core.model_calls.prompts import answering as prompts
from core.ports import LanguageModel

MODEL_VERSION = "answer-choice-2"  # of the prompt and the weighting; stored with every prediction
NOT_FOUND = "The language model found no answer in these documents."

OFFERED = 8  # excerpts that a model chooses from


def needs_model(answer: Answer, skill: Skill) -> bool:
    """Return whether a model is asked: if the answer is not certain or has several parts, or if it is always asked."""
    return answer.tentative or answer.abstained or (skill.writes > 0 and (skill.always or len(answer.excerpts) > 1))


async def chosen_answer(
    question: Question,
    engine_answer: tuple[Answer, Evaluation],
    retriever: Retriever,
    model: LanguageModel,
    request: ModelRequest,
    skill: Skill,
) -> tuple[Answer, Evaluation]:
    """Return the excerpt that the model chooses as the answer; `engine_answer` if it is not the likeliest.

    Makes at most two calls: one to rewrite a follow-up or a question in another language, and the choice. `request` gives
    requester, urgency and deadline; its messages are replaced.

    Raises IndexUnavailable, ModelUnavailable, InvalidReply and PromptTooLong.
    """
    query = (await understood(question, retriever, model, request)).query
    retrieval = await search(query, question.audience, retriever)
    ranked = candidates(query, retrieval)
    offered = distinct(ranked, OFFERED)
    if not offered:
        return engine_answer
    citations = [citation_of(number, each) for number, each in enumerate(offered, start=1)]
    excerpts = [excerpt_of(number, each) for number, each in enumerate(offered, start=1)]
    names = prompts.distinct_names([(source.title, source.heading) for source in citations])
    read = [Named(name, each.text) for name, each in zip(names, excerpts, strict=True)]
    distribution = await choose(model, request, prompts.choose(read, query), names)
    odds = weighed(distribution, _measured(evaluation_of(query, retrieval, ranked), len(names)), skill.right)
    if distribution.index(max(distribution)) == len(read) and odds[-1] == max(odds):
        answer, evaluation = engine_answer
        return (replace(answer, note=f"{answer.note} {NOT_FOUND}".strip()) if answer.excerpts else answer), evaluation
    best = max(range(len(read)), key=odds.__getitem__)
    if best != distribution.index(max(distribution)) or (engine_answer[0].abstained and odds[-1] == max(odds)):
        return engine_answer
    evaluation = Evaluation(1.0 - odds[-1], odds[best] / (1.0 - odds[-1]))
    shown = [best, *(place for place in range(len(read)) if place != best)][: 1 + MAX_FURTHER]
    sources = tuple(replace(citations[place], number=number) for number, place in enumerate(shown, start=1))
    pieces = tuple(replace(excerpts[place], citation=number) for number, place in enumerate(shown, start=1))
    return (
        Answer(
            question.id,
            question.text,
            (),
            sources,
            model.name,
            tentative=True,
            conflicts=contradictions([Sentence(first_line(pieces[0]), (1,))], sources[:1], retrieval),
            excerpts=pieces[:1],
            further=pieces[1:],
        ),
        evaluation,
    )


def _measured(evaluation: Evaluation, count: int) -> list[float]:
    """Return the probability that each of `count` excerpts answers, best first, and that none does, without the model.

    Each has the probability that was measured for the first, given that none before it answers: a better excerpt is never
    less likely than a worse one.
    """
    first = evaluation.rce if count > 1 else 1.0
    before = [evaluation.coe * first * (1.0 - first) ** place for place in range(count)]
    return [*before, 1.0 - math.fsum(before)]


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
    best = max(coverage, key=lambda text: coverage[text])
    return Understood(best, "" if best == own else rewritten.language.strip())


async def _rewritten(question: Question, model: LanguageModel, request: ModelRequest) -> prompts.Rewritten:
    """Ask the model to restate the question, with as many of the latest turns as fit into its context."""
    latest = [prompts.turn_line(turn) for turn in reversed(question.history)]
    places = await fitting_texts(model, prompts.rewrite(question.text, ()), REWRITE_TOKENS, latest)
    gapless = sum(place == turn for turn, place in enumerate(places))
    messages = prompts.rewrite(question.text, question.history[len(latest) - gapless :])
    return await structured(model, replace(request, messages=messages, max_tokens=REWRITE_TOKENS), prompts.Rewritten)


def _is_faithful(rewritten: prompts.Rewritten, question: Question) -> bool:
    """Return whether both versions keep every name and number of the question, and add none that nobody said."""
    conversation = "\n".join([question.text, *(turn.text for turn in question.history)])
    return not any(
        adds_literals(question.text, version) or adds_literals(version, conversation)
        for version in (rewritten.question, rewritten.english)
    )


COMPOSED_VERSION = "answer-composed-4"  # of the prompt, the checks and the measures; stored with every prediction

WRITE_TOKENS = 700  # room for the reply


async def composed_answer(
    question: Question,
    engine_answer: tuple[Answer, Evaluation],
    retriever: Retriever,
    model: LanguageModel,
    request: ModelRequest,
    skill: Skill,
    draft: Callable[[Answer], None] = lambda _: None,
    analyses: int = 0,
) -> tuple[Answer, Evaluation]:
    """Return the answer that the model writes; `engine_answer` if nothing of it can be shown.

    `draft` receives the answer so far each time that another sentence has passed the checks that need no model. `request`
    gives requester, urgency and deadline; its messages are replaced. The evaluation is the model's own: how probable it
    is that the passages answer (COE), and how far they support what is written (RCE), as good as the exam proved; each
    after that many `analyses`.

    Raises IndexUnavailable, ModelUnavailable, InvalidReply and PromptTooLong.
    """
    ends_at = asyncio.get_running_loop().time() + request.deadline
    reading = await understood(question, retriever, model, request)
    retrieval = await search(reading.query, question.audience, retriever)
    several = [each for each in parts(reading.query) if each != reading.query]
    by_part = {each: await search(each, question.audience, retriever) for each in several}
    passages = relevant(by_part or {reading.query: retrieval})
    evidence = await fitting(model, passages, prompts.write((), question.text), WRITE_TOKENS)
    if not evidence.passages:
        return engine_answer
    writing = replace(request, messages=prompts.write(evidence.shown, reading.query), max_tokens=WRITE_TOKENS)
    answers = _Answers(question, reading.query, evidence, retrieval, model.name)
    reply = await model.generate(writing, lambda text: answers.draft(text, draft))
    if is_not_found(reply.text):
        return _without(engine_answer)
    passing = answers.checked(claims(reply.text))
    if not passing.kept:
        return engine_answer
    written = Written(reading.query, evidence.of(passing.claims), passing.claims, writing, ends_at)
    measuring = asyncio.create_task(sureness_of(written, model, await model.abilities(), analyses))
    try:
        checked = await by_judge(passing, written, model if skill.judges else None)
        if not checked.kept:
            return engine_answer
        sureness = await measuring
    finally:
        measuring.cancel()
    coe = evaluation_of(reading.query, retrieval, candidates(reading.query, retrieval)).coe
    sureness = sureness or Evaluation(coe, 1.0)
    evaluation = replace(sureness, rce=sureness.rce * skill.writes)
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

    def checked(self, statements: Sequence[CitedSentence]) -> Checked:
        """Return the verdicts of the rules on what cites the families of the question."""
        return by_rules(of_their_families(statements, self.query, self.evidence), self.query, self.evidence)

    def draft(self, text: str, show: Callable[[Answer], None]) -> None:
        """Show what of a growing reply is complete and passes the rules."""
        if kept := self.checked(complete_claims(text)).claims:
            sentences, sources = self._cited(kept)
            show(Answer(self.question.id, self.question.text, sentences, sources, self.engine, tentative=True))

    def whole(self, checked: Checked, evaluation: Evaluation, skill: Skill) -> Answer:
        """Return the answer, with the best excerpts of the cited pages offered below it."""
        sentences, sources = self._cited(checked.claims)
        further, excerpts = self._excerpts(len(sources), frozenset(each.document_id for each in sources))
        return Answer(
            self.question.id,
            self.question.text,
            sentences,
            (*sources, *further),
            self.engine,
            tentative=raw_score(evaluation) < STRONG_SCORE or not skill.is_proven or checked.quoted > 0,
            conflicts=contradictions([each for each in sentences if each.citations][:1], sources[:1], self.retrieval),
            further=excerpts,
            note=" ".join(
                note.format(sentences=counted(number, "sentence"))
                for note, number in ((QUOTED, checked.quoted), (LEFT_OUT, checked.left_out))
                if number
            ),
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
            tuple(excerpt_of(number, each) for number, each in chosen),
        )


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
