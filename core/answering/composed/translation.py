"""Translate an answer that was checked in the language of its documents into the language of its question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field

from core.answering.model_text import adds_literals, cleaned, oversteps
from core.model.answer import Sentence
from core.model.errors import InvalidReply
from core.model.language_model import ModelRequest
from core.model_calls.prompts import composing as prompts
from core.model_calls.structured_reply import structured
from core.ports import LanguageModel

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
