"""Let a language model choose among the excerpts that may answer: one call, one name. The answer stays an excerpt.

Its odds are combined with those of the evidence engine, weighted by the model's exam (`core/answering/model_exam.py`). The
choice is shown only if it is still the likeliest then, so that a model that chooses at random changes nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace

from core.answering.answer_view import first_line
from core.answering.certainty import evaluation_of, says_what_is_asked
from core.answering.contradictions import contradictions
from core.answering.excerpts import candidates
from core.answering.find import MAX_FURTHER, citation_of, distinct, excerpt_of, search
from core.answering.model_text import adds_literals, cleaned, denies, literals, oversteps, whole_sentence, wording
from core.answering.rewrite import standalone
from core.confidence.calibrator import raw_score
from core.knowledge.retriever import Retriever
from core.model.answer import Answer, Excerpt, Sentence
from core.model.conversation import Question
from core.model.errors import InvalidReply
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
SENTENCE_TOKENS = 160  # room for a composed sentence
SAID = 0.9  # share of a composed sentence's terms that must be in the excerpt or in the question

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")


def needs_choice(found: Answer) -> bool:
    """Return whether a model is asked: not if the answer is certain, or made of several excerpts."""
    return (found.tentative or found.abstained) and len(found.excerpts) <= 1


async def chosen_answer(
    question: Question,
    found: tuple[Answer, Evaluation],
    retriever: Retriever,
    model: LanguageModel,
    request: ModelRequest,
    skill: Skill,
) -> tuple[Answer, Evaluation]:
    """Return the excerpt that the model chooses as the answer; the evidence engine's `found` if it is not the likeliest.

    Makes at most two calls: the choice, and one before it to rewrite a follow-up or a question in another language, or
    one after it for a sentence. `request` gives requester, urgency and deadline; its messages are replaced.

    Raises IndexUnavailable, ModelUnavailable, InvalidReply and PromptTooLong.
    """
    query = await understood(question, retriever, model, request)
    retrieval = await search(query, question.audience, retriever)
    ranked = candidates(query, retrieval)
    offered = distinct(ranked, OFFERED)
    if not offered:
        return found
    citations = [citation_of(number, each) for number, each in enumerate(offered, start=1)]
    excerpts = [excerpt_of(number, each, query) for number, each in enumerate(offered, start=1)]
    names = prompts.distinct_names([(source.title, source.heading) for source in citations])
    read = [Named(name, each.text) for name, each in zip(names, excerpts, strict=True)]
    told = await choose(model, request, prompts.choose(read, query), names)
    odds = weighed(told, _measured(evaluation_of(query, retrieval, ranked), len(names)), skill.right)
    best = told.index(max(told))
    if odds[best] < max(odds):
        return found
    if best == len(read):
        answer, evaluation = found
        return (replace(answer, note=f"{answer.note} {NOT_FOUND}".strip()) if answer.excerpts else answer), evaluation
    evaluation = Evaluation(1.0 - odds[-1], odds[best] / (1.0 - odds[-1]))
    shown = [best, *(place for place in range(len(read)) if place != best)][: 1 + MAX_FURTHER]
    sources = tuple(replace(citations[place], number=number) for number, place in enumerate(shown, start=1))
    pieces = tuple(replace(excerpts[place], citation=number) for number, place in enumerate(shown, start=1))
    sentences: tuple[Sentence, ...] = ()
    if skill.composes and query == question.text.strip():
        sentences = await _composed(read, query, names[best], pieces[0], sources[0].name, model, request)
    return (
        Answer(
            question.id,
            question.text,
            sentences,
            sources,
            model.name,
            tentative=True,
            conflicts=contradictions([Sentence(first_line(pieces[0]), (1,))], sources[:1], retrieval),
            excerpts=pieces[:1],
            further=pieces[1:],
            certainty=raw_score(evaluation),
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


async def _composed(
    read: Sequence[Named],
    query: str,
    name: str,
    excerpt: Excerpt,
    source: str,
    model: LanguageModel,
    request: ModelRequest,
) -> tuple[Sentence, ...]:
    """Return the answer in a sentence of the model that the excerpt entails; empty if there is none."""
    asked = replace(request, messages=prompts.compose(read, query, name), max_tokens=SENTENCE_TOKENS)
    try:
        said = cleaned((await structured(model, asked, prompts.Composed)).sentence)
    except InvalidReply:
        return ()
    return (Sentence(said, (excerpt.citation,)),) if is_entailed(said, query, excerpt, source) else ()


def is_entailed(said: str, question: str, excerpt: Excerpt, source: str) -> bool:
    """Return whether an excerpt entails a sentence that answers the question.

    The sentence must be whole; contain no command, number, identifier, address, mention or claim of confidence that the
    excerpt and its source do not contain; consist of their words and the question's; say more than the question; be
    negative exactly if the nearest statement is; and contain the kind of fact asked for. A copied statement passes.
    """
    text = f"{source}\n{excerpt.text}"
    terms, known, asked = wording(said), wording(text), wording(question)
    if not whole_sentence(said) or oversteps(said, text) or len(terms & (known | asked)) < SAID * len(terms):
        return False
    if not (terms & known) - asked and not literals(said) - literals(question):
        return False
    nearest = max(_SENTENCE_END.split(excerpt.text), key=lambda each: len(wording(each) & terms))
    return denies(said) == denies(nearest) and says_what_is_asked(question, excerpt.text, said)


REWRITE_TOKENS = 400  # room for both versions of a question
ENGLISH = "english"


async def understood(question: Question, retriever: Retriever, model: LanguageModel, request: ModelRequest) -> str:
    """Return the question rewritten to stand alone, as it is searched for.

    The model is asked only about a question with a conversation before it, or in another language than the documents; a
    single question in their language is never changed. Of a question in another language, the version whose words occur
    in more documents is used. Raises IndexUnavailable, and the errors of the port and of `structured`.
    """
    plain = standalone(question.text, question.history)
    if not question.history and not (await retriever.spelt(plain)).foreign:
        return plain
    rewritten = await _rewritten(question, model, request)
    if not _is_faithful(rewritten, question):
        return plain
    own = rewritten.question if question.history else plain
    if rewritten.language.strip().lower() == ENGLISH:
        return own
    known = {text: (await search(text, question.audience, retriever)).known for text in (own, rewritten.english)}
    return max(known, key=lambda text: known[text])


async def _rewritten(question: Question, model: LanguageModel, request: ModelRequest) -> prompts.Rewritten:
    """Ask the model to restate the question, with as many of the latest turns as fit into its context."""
    lines = [prompts.turn_line(turn) for turn in question.history]
    count = await fitting_turns(model, prompts.rewrite(question.text, ()), REWRITE_TOKENS, lines)
    messages = prompts.rewrite(question.text, question.history[len(lines) - count :])
    return await structured(model, replace(request, messages=messages, max_tokens=REWRITE_TOKENS), prompts.Rewritten)


def _is_faithful(rewritten: prompts.Rewritten, question: Question) -> bool:
    """Return whether both versions keep every name and number of the question, and add none that nobody said."""
    said = "\n".join([question.text, *(turn.text for turn in question.history)])
    return not any(
        adds_literals(question.text, version) or adds_literals(version, said)
        for version in (rewritten.question, rewritten.english)
    )
