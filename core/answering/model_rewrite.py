"""A question is understood by the language model where its words alone do not lead to the documents."""

from __future__ import annotations

from dataclasses import dataclass, replace

from core.answering.certainty import evaluation_of
from core.answering.excerpts import candidates
from core.answering.find import search
from core.answering.model_text import adds_literals
from core.answering.rewrite import standalone
from core.knowledge.ranking import RankedPassage
from core.knowledge.retriever import Retrieval, Retriever
from core.model.conversation import Question
from core.model.language_model import ModelRequest
from core.model.prediction import Evaluation
from core.model_calls.context_budget import fit_context
from core.model_calls.prompts import answering as prompts
from core.model_calls.structured_reply import structured
from core.ports import LanguageModel

FAMILIAR = 0.9  # `known` of a retrieval below which words of the question stand in no document
REWRITE_TOKENS = 400  # room for both versions of a question
ENGLISH = "english"


@dataclass(frozen=True, slots=True)
class UnderstoodQuestion:
    """The query that was searched for, and what it found.

    `evidence` is what may be cited, of one family and best first; `evaluation` is that of the evidence engine.
    `language` is the one to translate the answer into; empty if the query is in the asker's own.
    """

    query: str
    retrieval: Retrieval
    evidence: tuple[RankedPassage, ...]
    evaluation: Evaluation
    language: str = ""


async def understood(
    question: Question, retriever: Retriever, model: LanguageModel, request: ModelRequest
) -> UnderstoodQuestion:
    """The question made to stand alone, searched for (Ericsson chatbot, section V-B, steps 1 and 2).

    The model is asked only about a question with a conversation before it, or with words that no document holds, which
    may be of another language. An English question that was asked alone is never changed: in other words, what nobody
    here ever wrote about would find something. Of a question in another language the version is taken whose words the
    documents hold, and of two such the one with the more decisive evidence.

    Raises IndexUnavailable, and what the port and `structured` raise.
    """
    plain = await _searched(standalone(question.text, question.history), question, retriever)
    if not question.history and plain.retrieval.known >= FAMILIAR:
        return plain
    rewritten = await _rewritten(question, model, request)
    if not _is_faithful(rewritten, question):
        return plain
    own = await _searched(rewritten.question, question, retriever) if question.history else plain
    if rewritten.language.strip().lower() == ENGLISH:
        return own
    english = replace(await _searched(rewritten.english, question, retriever), language=rewritten.language)
    return max(own, english, key=lambda version: (version.retrieval.known >= FAMILIAR, version.evaluation.coe))


async def _searched(query: str, question: Question, retriever: Retriever) -> UnderstoodQuestion:
    retrieval = await search(query, question.audience, retriever)
    found = candidates(query, retrieval)
    family = found[0].passage.family if found else ""
    evidence = tuple(dict.fromkeys(each.found for each in found if each.passage.family == family))
    return UnderstoodQuestion(query, retrieval, evidence, evaluation_of(query, retrieval, found))


async def _rewritten(question: Question, model: LanguageModel, request: ModelRequest) -> prompts.Rewritten:
    """By as much of the conversation as fits into the model's context, its end first."""
    fitted = await fit_context(
        model,
        instructions=prompts.rewrite(question.text, ()),
        max_tokens=REWRITE_TOKENS,
        history=[prompts.turn_line(turn) for turn in question.history],
    )
    messages = prompts.rewrite(question.text, [question.history[position] for position in fitted.history])
    return await structured(model, replace(request, messages=messages, max_tokens=REWRITE_TOKENS), prompts.Rewritten)


def _is_faithful(rewritten: prompts.Rewritten, question: Question) -> bool:
    """Whether both versions keep every name and number of the question, and add none that nobody said."""
    said = "\n".join([question.text, *(turn.text for turn in question.history)])
    return not any(
        adds_literals(question.text, version) or adds_literals(version, said)
        for version in (rewritten.question, rewritten.english)
    )
