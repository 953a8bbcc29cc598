"""Let a language model choose among the excerpts that may answer: one call, one name. The answer stays an excerpt.

For a model that finds better than it writes (see `composed/`). Its odds are combined with those of the evidence engine,
weighted by the model's exam (`core/answering/model_exam.py`). The likeliest excerpt is shown, so that a model that chooses
at random changes nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from core.answering.answer_view import first_line
from core.answering.certainty import evaluation_of
from core.answering.contradictions import contradictions
from core.answering.excerpts import candidates
from core.answering.find import MAX_FURTHER, citation_of, distinct, excerpt_of, search
from core.answering.model_text import adds_literals
from core.answering.rewrite import standalone
from core.knowledge.retriever import Retriever
from core.model.answer import Answer, Sentence
from core.model.conversation import Question
from core.model.language_model import ModelRequest
from core.model.prediction import Evaluation
from core.model_calls.choice import Skill, choose, weighed
from core.model_calls.context_budget import fitting_turns
from core.model_calls.prompts import answering as prompts
from core.model_calls.prompts.quoted import Named
from core.model_calls.structured_reply import structured
from core.ports import LanguageModel

VERSION = "answer-choice-2"  # of the prompt and the weighting; stored with every prediction
NOT_FOUND = "The language model found no answer in these documents."

OFFERED = 8  # excerpts that a model chooses from


def needs_model(answer: Answer, skill: Skill) -> bool:
    """Return whether a model is asked: if the answer is not certain or has several parts, or if it is always asked."""
    may_write = skill.writes > 0 and (skill.always or len(answer.excerpts) > 1)
    return may_write or answer.tentative or answer.abstained


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
    excerpts = [excerpt_of(number, each, query) for number, each in enumerate(offered, start=1)]
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
ENGLISH = "english"


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
    if rewritten.language.strip().lower() == ENGLISH:
        return Understood(own)
    coverage = {text: (await search(text, question.audience, retriever)).known for text in (own, rewritten.english)}
    best = max(coverage, key=lambda text: coverage[text])
    return Understood(best, "" if best == own else rewritten.language.strip())


async def _rewritten(question: Question, model: LanguageModel, request: ModelRequest) -> prompts.Rewritten:
    """Ask the model to restate the question, with as many of the latest turns as fit into its context."""
    lines = [prompts.turn_line(turn) for turn in question.history]
    count = await fitting_turns(model, prompts.rewrite(question.text, ()), REWRITE_TOKENS, lines)
    messages = prompts.rewrite(question.text, question.history[len(lines) - count :])
    return await structured(model, replace(request, messages=messages, max_tokens=REWRITE_TOKENS), prompts.Rewritten)


def _is_faithful(rewritten: prompts.Rewritten, question: Question) -> bool:
    """Return whether both versions keep every name and number of the question, and add none that nobody said."""
    conversation = "\n".join([question.text, *(turn.text for turn in question.history)])
    return not any(
        adds_literals(question.text, version) or adds_literals(version, conversation)
        for version in (rewritten.question, rewritten.english)
    )
