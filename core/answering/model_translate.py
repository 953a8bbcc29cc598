"""An answer that was checked in the language of its documents is translated into the language of its question.

Every claim is checked before it is translated, against words of its own language; a translation has only to say the
same. One that does not is left out, and the sentence stays as it was checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.answering.answer import Sentence
from core.answering.model_check import VERDICT, probability_of_yes
from core.answering.model_text import adds_literals, cleaned, oversteps
from core.model.errors import InvalidReply
from core.model.language_model import ModelRequest
from core.model_calls.prompts import answering as prompts
from core.model_calls.structured_reply import structured
from core.ports import LanguageModel

TRANSLATE_TOKENS = 900  # room for all sentences of an answer


async def translated(
    model: LanguageModel, request: ModelRequest, sentences: Sequence[Sentence], question: str, language: str
) -> tuple[Sentence, ...]:
    """The sentences in the language, with their citations; each that cannot be trusted in its own.

    Raises what the port raises.
    """
    asked = prompts.translate([sentence.text for sentence in sentences], question, language)
    try:
        reply = await structured(
            model, replace(request, messages=asked, max_tokens=TRANSLATE_TOKENS), prompts.Translated
        )
    except InvalidReply:
        return tuple(sentences)
    if len(reply.sentences) != len(sentences):
        return tuple(sentences)
    return tuple(
        [
            await _checked(model, request, sentence, cleaned(text))
            for sentence, text in zip(sentences, reply.sentences, strict=True)
        ]
    )


async def _checked(model: LanguageModel, request: ModelRequest, sentence: Sentence, translation: str) -> Sentence:
    if not translation or oversteps(translation, sentence.text) or adds_literals(sentence.text, translation):
        return sentence
    probability = await probability_of_yes(model, request, prompts.same_meaning(sentence.text, translation))
    return replace(sentence, text=translation) if probability >= VERDICT else sentence
