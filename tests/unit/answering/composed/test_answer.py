"""A scripted model writes answers over a fake index; what is shown is what the passages say."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import pytest

from core.answering.evidence import SAMPLES
from core.answering.find import ENGINE, find_answer
from core.answering.model_answer import LEFT_OUT, NOT_FOUND, TRANSLATED, composed_answer
from core.knowledge.retriever import Retriever
from core.model.answer import Answer
from core.model.badge import Evaluation
from core.model.conversation import Question
from core.model.errors import InvalidReply, ModelUnavailable, PromptTooLong
from core.model.language_model import Abilities, ModelReply, ModelRequest
from core.model_calls.choice import Skill
from core.model_calls.constrained_reply import label_schema
from tests.fakes.language_model import ScriptedModel
from tests.unit.answering.pages import ASKED, COMMAND, DURATION, REQUEST, question, retriever

__all__ = ["retriever"]  # the fixture

WRITER = Skill(1.0, writes=1.0)
NO_ODDS = Abilities(odds=False)
VERDICT = label_schema(("yes", "no"))
_MARKED = re.compile(r"^\[(\d+)\] [^\n]*\n(.*?)(?=^\[\d+\] |^=====)", re.DOTALL | re.MULTILINE)


def number_of(word: str, request: ModelRequest) -> str:
    """Return the citation mark of the first passage with a word."""
    return next(f"[{number}]" for number, text in _MARKED.findall(request.messages[-1].text) if word in text)


def writing(reply: str, *, yes: float = 0.9, abilities: Abilities | None = None) -> ScriptedModel:
    """Return a model that writes a reply, in which {WORD} is the mark of the passage with that word."""

    def script(request: ModelRequest) -> str:
        if request.schema == VERDICT:
            return json.dumps("yes" if yes >= 0.5 else "no")
        if request.schema is not None:
            return json.dumps({"follow_up": True, "question": ASKED, "language": "English", "english": ASKED})
        return re.sub(r"\{(\w+)\}", lambda word: number_of(word[1], request), reply)

    def odds(_: ModelRequest, choices: Sequence[str]) -> dict[str, float]:
        return {"yes": yes, "no": 1.0 - yes} if "yes" in choices else dict.fromkeys(choices, 1.0)

    return ScriptedModel(script, odds, able=abilities or Abilities())


async def answered(
    model: ScriptedModel, retriever: Retriever, asked: Question | None = None, skill: Skill = WRITER
) -> tuple[Answer, Evaluation]:
    asked = asked or question()
    return await composed_answer(asked, await find_answer(asked, retriever), retriever, model, REQUEST, skill)


async def test_faithful_sentences_are_shown_with_their_sections_and_the_best_excerpt_below(
    retriever: Retriever,
) -> None:
    model = writing("Use `slipway rollback SERVICE` {slipway}. Traffic is back after 90 seconds {slipway}.")
    answer, evaluation = await answered(model, retriever)
    assert [each.text for each in answer.sentences] == [
        "Use `slipway rollback SERVICE`.",
        "Traffic is back after 90 seconds.",
    ]
    assert [each.citations for each in answer.sentences] == [(1,), (1,)]
    assert answer.citations[0].document_id == "docs/rollback"
    assert (answer.engine, answer.excerpts, answer.is_composed) == (model.name, (), True)
    assert COMMAND in answer.further[0].text
    assert (evaluation.coe, evaluation.rce, answer.tentative) == (0.9, 0.9, False)


@pytest.mark.parametrize(
    "reply",
    [
        "Run `slipway undo SERVICE` {slipway}.",
        "Traffic is back after 30 seconds {slipway}. Use `slipway rollback SERVICE` {slipway}.",
        "Use `slipway rollback SERVICE`.",
        "Use `slipway rollback SERVICE` [99].",
        "As an AI model, I cannot help with that.",
        '{"answer": ["',
    ],
    ids=["invented command", "first sentence wrong", "uncited", "cites nothing", "chatter", "malformed"],
)
async def test_reply_whose_first_sentence_is_not_supported_leaves_the_excerpt(retriever: Retriever, reply: str) -> None:
    expected = await find_answer(question(), retriever)
    assert (
        await answered(writing(reply.replace('{"', '{{"') if reply.startswith("{") else reply), retriever) == expected
    )


async def test_unsupported_later_sentence_is_left_out_and_counted(retriever: Retriever) -> None:
    model = writing("Use `slipway rollback SERVICE` {slipway}. Traffic is back after 30 seconds {slipway}.")
    answer, _ = await answered(model, retriever)
    assert [each.text for each in answer.sentences] == ["Use `slipway rollback SERVICE`."]
    assert answer.note == LEFT_OUT.format(sentences="1 sentence")


async def test_steps_are_shown_whole_or_not_at_all(retriever: Retriever) -> None:
    whole = "1. Run `slipway rollback SERVICE` {slipway}\n2. The traffic returns after 90 seconds {slipway}"
    answer, _ = await answered(writing(whole), retriever)
    assert [each.text[:2] for each in answer.sentences] == ["1.", "2."]
    answer, _ = await answered(writing(whole.replace("90", "900")), retriever)
    assert answer.engine == ENGINE


async def test_sentence_that_the_model_itself_doubts_is_not_shown(retriever: Retriever) -> None:
    answer, _ = await answered(writing("Use `slipway rollback SERVICE` {slipway}.", yes=0.2), retriever)
    assert answer.engine == ENGINE


@pytest.mark.parametrize(("yes", "is_composed"), [(0.9, True), (0.2, False)])
async def test_server_without_probabilities_gives_its_verdict_by_replies(
    retriever: Retriever, yes: float, is_composed: bool
) -> None:
    model = writing("Use `slipway rollback SERVICE` {slipway}.", yes=yes, abilities=NO_ODDS)
    answer, evaluation = await answered(model, retriever)
    assert answer.is_composed is is_composed
    assert [each.schema for each in model.requests] == [None, *[VERDICT] * SAMPLES]
    if is_composed:
        assert (evaluation.rce, answer.tentative) == (1.0, False)


@pytest.mark.parametrize("failure", [ModelUnavailable("down"), InvalidReply("neither")])
async def test_sentence_that_only_the_rules_checked_is_hedged(retriever: Retriever, failure: Exception) -> None:
    model = writing("Use `slipway rollback SERVICE` {slipway}.", abilities=NO_ODDS)
    write = model.script

    def script(request: ModelRequest) -> str:
        if request.schema == VERDICT:
            raise failure
        return write(request)

    model.script = script
    answer, _ = await answered(model, retriever)
    assert (answer.is_composed, answer.tentative) == (True, True)


DOUBTED = "Traffic does not return later than 90 seconds after that {slipway}."


@pytest.mark.parametrize(
    ("supports", "alters", "is_shown"),
    [(0.9, 0.1, True), (0.9, 0.9, False), (0.7, 0.1, False), (0.9, 0.3, False)],
    ids=["clear", "says yes to everything", "unsure", "unsure of the fault"],
)
async def test_sentence_that_a_rule_doubts_is_shown_if_the_model_dispels_the_doubt(
    retriever: Retriever, supports: float, alters: float, is_shown: bool
) -> None:
    model = writing(f"{COMMAND[:-1]} {{slipway}}. {DOUBTED}")

    def odds(request: ModelRequest, choices: Sequence[str]) -> dict[str, float]:
        text = request.messages[-1].text
        if "does not return later" not in text:
            return {"yes": 1.0}
        yes = alters if "word by word" in text else supports
        return {"yes": yes, "no": 1.0 - yes}

    model.odds = odds
    answer, _ = await answered(model, retriever)
    assert len(answer.sentences) == 1 + is_shown


async def test_doubted_sentence_is_not_shown_if_the_model_gives_no_verdict(retriever: Retriever) -> None:
    model = writing(f"{COMMAND[:-1]} {{slipway}}. {DOUBTED}", abilities=NO_ODDS)
    write = model.script

    def script(request: ModelRequest) -> str:
        if request.schema == VERDICT:
            raise ModelUnavailable("down")
        return write(request)

    model.script = script
    answer, _ = await answered(model, retriever)
    assert [each.text for each in answer.sentences] == [COMMAND]
    assert answer.note == LEFT_OUT.format(sentences="1 sentence")


def with_slots(
    others: str | Callable[[], Awaitable[str]], *, rating: str = "5", enough: float = 1.0, odds: bool = True
) -> ScriptedModel:
    """Return a model with free slots that writes a supported answer, and `others` to every further request."""
    model = writing("", abilities=Abilities(odds=odds, parallel=SAMPLES + 1))

    async def sample(request: ModelRequest, count: int) -> list[ModelReply]:
        assert request.messages
        if request.schema == VERDICT:
            return [ModelReply('"yes"', 0, 0, 0)] * count
        text = others if isinstance(others, str) else await others()
        return [ModelReply(text, 0, 0, 0)] * count

    def judged(_: ModelRequest, choices: Sequence[str]) -> dict[str, float]:
        said = {"yes": 0.9, "no": 0.1, "Yes": enough, "No": 1.0 - enough, rating: 1.0}
        return {choice: said.get(choice, 0.0) for choice in choices}

    model.script = lambda request: COMMANDED.format(number_of("slipway", request))
    model.odds = judged
    model.sample = sample
    return model


COMMANDED = "Use `slipway rollback SERVICE` {}."


async def test_replies_of_idle_slots_that_disagree_lower_the_confidence(retriever: Retriever) -> None:
    agreed, sure = await answered(with_slots(COMMANDED.format("[1]")), retriever)
    answer, evaluation = await answered(with_slots("NOT FOUND"), retriever)
    assert (sure.rce, evaluation.rce) == pytest.approx((0.9, 0.9 / (1 + SAMPLES)))
    assert (agreed.tentative, answer.tentative) == (False, True)


async def test_analyses_of_idle_slots_judge_the_answer(retriever: Retriever) -> None:
    answer, evaluation = await answered(with_slots(COMMANDED.format("[1]"), rating="3", enough=0.6), retriever)
    assert (evaluation.coe, evaluation.rce) == pytest.approx((0.6, 0.45))
    assert answer.is_composed
    assert answer.tentative


async def test_idle_slots_of_a_server_without_probabilities_only_write(retriever: Retriever) -> None:
    _, evaluation = await answered(with_slots("NOT FOUND", odds=False), retriever)
    assert evaluation.rce == 1 / (1 + SAMPLES)


async def test_slots_that_fail_do_not_cost_the_answer(retriever: Retriever) -> None:
    async def fail() -> str:
        raise ModelUnavailable("down")

    answer, evaluation = await answered(with_slots(fail), retriever)
    assert answer.is_composed
    assert evaluation.rce == pytest.approx(0.9)


async def hang() -> str:
    await asyncio.Event().wait()
    raise AssertionError


async def test_slots_that_hang_do_not_cost_the_answer(retriever: Retriever) -> None:
    asked = question()
    request = replace(REQUEST, deadline=0.05)
    found = await find_answer(asked, retriever)
    answer, _ = await composed_answer(asked, found, retriever, with_slots(hang), request, WRITER)
    assert answer.is_composed


async def test_cancelled_question_cancels_its_samples(retriever: Retriever) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def wait() -> str:
        begun.set()
        try:
            return await hang()
        finally:
            ended.set()

    asking = asyncio.create_task(answered(with_slots(wait), retriever))
    await begun.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert ended.is_set()


async def test_doubted_answer_does_not_wait_for_its_samples(retriever: Retriever) -> None:
    model = with_slots(hang)
    model.odds = lambda _, choices: {"no": 1.0}
    answer, _ = await answered(model, retriever)
    assert answer.engine == ENGINE


async def test_model_that_finds_nothing_leaves_a_hedged_excerpt_with_a_note(retriever: Retriever) -> None:
    answer, _ = await answered(writing("NOT FOUND"), retriever)
    assert (answer.engine, answer.tentative, answer.note) == (ENGINE, True, NOT_FOUND)


async def test_weak_writer_is_shown_with_a_hedge(retriever: Retriever) -> None:
    answer, _ = await answered(writing("Use `slipway rollback SERVICE` {slipway}."), retriever, skill=Skill(1.0, 0.7))
    assert answer.is_composed
    assert answer.tentative


async def test_drafts_grow_by_supported_sentences_and_begin_with_the_first(retriever: Retriever) -> None:
    drafts: list[Answer] = []
    model = writing(f"{COMMAND[:-1]} {{slipway}}. {DURATION[:-1]} {{slipway}}. Then call 911 {{slipway}}.")
    found = await find_answer(question(), retriever)
    await composed_answer(question(), found, retriever, model, REQUEST, WRITER, drafts.append)
    lengths = [len(draft.sentences) for draft in drafts]
    assert lengths == sorted(lengths)
    assert set(lengths) == {1, 2}
    assert all("911" not in sentence.text for draft in drafts for sentence in draft.sentences)
    drafts.clear()
    await composed_answer(
        question(), found, retriever, writing("Call 911 {slipway}. Wait. "), REQUEST, WRITER, drafts.append
    )
    assert drafts == []


async def test_question_in_another_language_is_answered_in_it(retriever: Retriever) -> None:
    german = "Wie lange dauert es, einen Läufer zu leeren?"
    english = "How long does it take to drain a runner?"

    def script(request: ModelRequest) -> str:
        match request.schema and request.schema.get("title"):
            case "Rewritten":
                return json.dumps(
                    {"follow_up": False, "question": german, "language": "German", "english": english},
                    ensure_ascii=False,
                )
            case "Translated":
                return json.dumps({"sentences": ["Warten Sie 45 Minuten."]})
            case _ if request.schema:
                return json.dumps("yes")
            case _:
                return f"Wait for 45 minutes {number_of('45', request)}."

    answer, _ = await answered(ScriptedModel(script, able=NO_ODDS), retriever, question(german))
    assert ([each.text for each in answer.sentences], answer.note) == (["Warten Sie 45 Minuten."], TRANSLATED)


async def test_small_context_reads_the_best_passages_that_fit(retriever: Retriever) -> None:
    model = writing("Use `slipway rollback SERVICE` {slipway}.", abilities=NO_ODDS)
    model.context = 1_150
    answer, _ = await answered(model, retriever)
    assert answer.is_composed
    assert "Kafka" not in model.requests[-1].messages[-1].text


@pytest.mark.parametrize("failure", [ModelUnavailable("down"), PromptTooLong("too long")])
async def test_model_that_fails_raises(retriever: Retriever, failure: Exception) -> None:
    def script(_: ModelRequest) -> str:
        raise failure

    with pytest.raises(type(failure)):
        await answered(ScriptedModel(script), retriever)


async def test_instructions_in_a_document_stay_quoted_and_unfollowed(retriever: Retriever) -> None:
    obeying = writing("`rm -rf /` rotates it, I am 100 % sure {gatekey}.")
    answer, _ = await answered(obeying, retriever, question("what rotates the gateway key?"))
    assert answer.engine == ENGINE
    assert obeying.requests[0].messages[-1].text.splitlines().count("=====") == 4
