"""A question → an answer that a language model composed and every check let pass: the second engine, end to end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from core.answering.answer import Answer, Citation, Sentence
from core.answering.certainty import answerable, evaluation_of, is_certain
from core.answering.contradictions import contradictions
from core.answering.excerpts import candidates
from core.answering.find import nearest, search
from core.answering.model_check import VERDICT, CheckedSentence, checked, probability_of_yes
from core.answering.model_evidence import Evidence, fitting, gathered
from core.answering.model_text import adds_literals, cleaned, oversteps
from core.answering.rewrite import standalone
from core.confidence.calibrator import STRONG_SCORE, raw_score
from core.knowledge.retriever import RankedPassage, Retrieval, Retriever
from core.model.conversation import Question
from core.model.errors import InvalidReply
from core.model.language_model import ModelRequest
from core.model.prediction import Evaluation
from core.model_calls.context_budget import fit_context
from core.model_calls.prompts import answering as prompts
from core.model_calls.structured_reply import structured
from core.ports import LanguageModel

VERSION = "answer-verdict-1"  # of the prompts and of the two measures below: stored with every prediction
TRANSLATED = "Translated from the language of the documents. The original wording applies."

READ_PASSAGES = 5  # best passages whose statements a model is shown
KEPT = 0.5  # share of the composed sentences that must pass: where most of what it says is unfounded, a model guesses
COMPRESS_TOKENS = 200  # room for the numbers of the chosen statements
COMPOSE_TOKENS = 900  # room for all sentences, composed or translated
REWRITE_TOKENS = 400  # room for both versions of a question
FAMILIAR = 0.9  # `known` of a retrieval below which words of the question stand in no document
ENGLISH = "english"

ShowDraft = Callable[[Answer], Awaitable[None]]
_Passed = Callable[[tuple[Sentence, ...], tuple[Citation, ...]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class _Composition:
    """An answer in the language of its documents; no sentences where they do not answer or too little may stay.

    `quotes` are the cited statements as they stand there, with the same citations. `verdict` is the mean probability
    that the model gives to a composed sentence's following from its citations, 0 for one that was withheld.
    """

    sentences: tuple[Sentence, ...] = ()
    citations: tuple[Citation, ...] = ()
    quotes: tuple[Sentence, ...] = ()
    verdict: float = 0.0


@dataclass(frozen=True, slots=True)
class _UnderstoodQuestion:
    """The query that was searched for, and what it found.

    `evidence` is what may be cited, of one family and best first; `evaluation` is that of the evidence engine.
    `language` is the one to translate the answer into; empty if the query is in the asker's own.
    """

    query: str
    retrieval: Retrieval
    evidence: tuple[RankedPassage, ...]
    evaluation: Evaluation
    language: str = ""


async def no_draft(_draft: Answer) -> None:
    """Show no draft: for those who wait for the whole answer."""


async def model_answer(
    question: Question,
    retriever: Retriever,
    model: LanguageModel,
    request: ModelRequest,
    draft: ShowDraft = no_draft,
) -> tuple[Answer, Evaluation]:
    """Answer from what the question's audience may read, or abstain by the rules of the evidence engine.

    `draft` is shown the sentences that have passed their checks, each time that there is one more and others are left to
    check, from the one on with which enough have passed for the answer to stand: nothing of it is taken back. An answer
    that is still to be translated has no drafts.

    `request` says for whom and by when the model is asked; its messages are replaced. The evaluation is that of the
    evidence engine; its `rce`, how far the references support the answer, counts as far as the model's verdicts agree.

    Raises IndexUnavailable, ModelUnavailable, InvalidReply and PromptTooLong.
    """
    found = await _understood(question, retriever, model, request)
    measured = found.evaluation
    abstention = Answer(question.id, question.text, (), nearest(found.retrieval.passages), model.name)

    async def passed(sentences: tuple[Sentence, ...], citations: tuple[Citation, ...]) -> None:
        if not found.language:
            await draft(replace(abstention, sentences=sentences, citations=citations))

    composition = await _composed(model, request, found, passed) if answerable(measured) else _Composition()
    if not composition.sentences:
        return abstention, Evaluation(measured.coe, 0.0)
    evaluation = Evaluation(measured.coe, measured.rce * composition.verdict)
    answer = replace(
        abstention,
        sentences=composition.sentences,
        citations=composition.citations,
        tentative=not is_certain(evaluation) or composition.verdict < STRONG_SCORE,
        certainty=raw_score(evaluation),
        conflicts=contradictions(composition.quotes, composition.citations, found.retrieval),
    )
    if found.language:
        shown = await _translated(model, request, composition.sentences, question.text, found.language)
        answer = replace(answer, sentences=shown, note=TRANSLATED if shown != composition.sentences else "")
    return answer, evaluation


async def _composed(
    model: LanguageModel, request: ModelRequest, found: _UnderstoodQuestion, passed: _Passed
) -> _Composition:
    evidence = await _compressed(model, request, gathered(found.evidence[:READ_PASSAGES]), found.query)
    if not evidence.statements:
        return _Composition()
    evidence = await fitting(model, evidence, prompts.compose((), found.query), COMPOSE_TOKENS)
    asked = prompts.compose(evidence.sections, found.query)
    reply = await structured(model, replace(request, messages=asked, max_tokens=COMPOSE_TOKENS), prompts.Composed)

    def stands(kept: list[CheckedSentence]) -> bool:
        return bool(kept) and len(kept) >= KEPT * len(reply.sentences)

    async def one_more(kept: list[CheckedSentence]) -> None:
        if stands(kept):
            await passed(*evidence.cited([item.sentence for item in kept]))

    kept = await checked(model, request, reply, evidence, one_more)
    if not stands(kept):
        return _Composition()
    sentences, citations = evidence.cited([item.sentence for item in kept])
    cited = {n: evidence.statements[n] for item in kept for n in item.sentence.citations}
    quotes, _ = evidence.cited([Sentence(statement.text, (n,)) for n, statement in cited.items()])
    return _Composition(
        sentences,
        citations,
        quotes,
        sum(item.probability for item in kept) / len(reply.sentences),
    )


async def _compressed(model: LanguageModel, request: ModelRequest, evidence: Evidence, query: str) -> Evidence:
    """The statements that the model holds for helpful (Ericsson chatbot, section V-B: contextual compression).

    It names their numbers, so that nothing can stand in an extract that does not stand in the passage.
    """
    evidence = await fitting(model, evidence, prompts.compress((), query), COMPRESS_TOKENS)
    asked = prompts.compress(evidence.sections, query)
    reply = await structured(model, replace(request, messages=asked, max_tokens=COMPRESS_TOKENS), prompts.Chosen)
    chosen = evidence.only(reply.statements)
    if reply.statements and not chosen.statements:
        raise InvalidReply(f"{model.name} chose only statements that it was not shown.")
    return chosen


async def _understood(
    question: Question, retriever: Retriever, model: LanguageModel, request: ModelRequest
) -> _UnderstoodQuestion:
    """Return the question made to stand alone, searched for (Ericsson chatbot, section V-B, steps 1 and 2).

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


async def _searched(query: str, question: Question, retriever: Retriever) -> _UnderstoodQuestion:
    retrieval = await search(query, question.audience, retriever)
    found = candidates(query, retrieval)
    family = found[0].passage.family if found else ""
    evidence = tuple(dict.fromkeys(each.found for each in found if each.passage.family == family))
    return _UnderstoodQuestion(query, retrieval, evidence, evaluation_of(query, retrieval, found))


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
    """Tell whether both versions keep every name and number of the question, and add none that nobody said."""
    said = "\n".join([question.text, *(turn.text for turn in question.history)])
    return not any(
        adds_literals(question.text, version) or adds_literals(version, said)
        for version in (rewritten.question, rewritten.english)
    )


async def _translated(
    model: LanguageModel, request: ModelRequest, sentences: Sequence[Sentence], question: str, language: str
) -> tuple[Sentence, ...]:
    """Return the sentences in the language, with their citations; each that cannot be trusted in its own.

    Raises what the port raises.
    """
    asked = prompts.translate([sentence.text for sentence in sentences], question, language)
    try:
        reply = await structured(model, replace(request, messages=asked, max_tokens=COMPOSE_TOKENS), prompts.Translated)
    except InvalidReply:
        return tuple(sentences)
    if len(reply.sentences) != len(sentences):
        return tuple(sentences)
    return tuple(
        [
            await _trusted(model, request, sentence, cleaned(text))
            for sentence, text in zip(sentences, reply.sentences, strict=True)
        ]
    )


async def _trusted(model: LanguageModel, request: ModelRequest, sentence: Sentence, translation: str) -> Sentence:
    if not translation or oversteps(translation, sentence.text) or adds_literals(sentence.text, translation):
        return sentence
    probability = await probability_of_yes(model, request, prompts.same_meaning(sentence.text, translation))
    return replace(sentence, text=translation) if probability >= VERDICT else sentence
