"""A question is restated by the language model where its words alone do not lead to the documents."""

from __future__ import annotations

from dataclasses import replace

from core.answering.find import search
from core.answering.model_text import adds_literals
from core.answering.rewrite import standalone
from core.knowledge.retriever import Retriever
from core.model.conversation import Question
from core.model.language_model import ModelRequest
from core.model_calls.context_budget import fitting_turns
from core.model_calls.prompts import answering as prompts
from core.model_calls.structured_reply import structured
from core.ports import LanguageModel

REWRITE_TOKENS = 400  # room for both versions of a question
ENGLISH = "english"


async def understood(question: Question, retriever: Retriever, model: LanguageModel, request: ModelRequest) -> str:
    """Return the question made to stand alone, as it is to be searched for.

    The model is asked only about a question with a conversation before it, or in a language that the documents are not in;
    a lone question in theirs is never changed. Of a question in another language, the version is taken whose words more of
    the documents hold.

    Raises IndexUnavailable, and what the port and `structured` raise.
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
    """Restate it by as much of the conversation as fits into the model's context, the latest turns first."""
    lines = [prompts.turn_line(turn) for turn in question.history]
    count = await fitting_turns(model, prompts.rewrite(question.text, ()), REWRITE_TOKENS, lines)
    messages = prompts.rewrite(question.text, question.history[len(lines) - count :])
    return await structured(model, replace(request, messages=messages, max_tokens=REWRITE_TOKENS), prompts.Rewritten)


def _is_faithful(rewritten: prompts.Rewritten, question: Question) -> bool:
    """Tell whether both versions keep every name and number of the question, and add none that nobody said."""
    said = "\n".join([question.text, *(turn.text for turn in question.history)])
    return not any(
        adds_literals(question.text, version) or adds_literals(version, said)
        for version in (rewritten.question, rewritten.english)
    )
