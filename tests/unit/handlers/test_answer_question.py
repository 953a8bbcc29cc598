from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from core.answering.certainty import VERSION
from core.answering.find import ENGINE
from core.answering.model_answer import VERSION as MODEL_VERSION
from core.confidence.model_estimator import VERSION as ESTIMATOR_VERSION
from core.knowledge.retriever import Retriever
from core.model.conversation import Speaker, Turn
from core.model.errors import ChatUnavailable, ModelUnavailable
from core.model.language_model import ModelReply, ModelRequest, Urgency
from core.model.messages import AnswerMessage
from core.model.prediction import Estimator, Evaluation, PredictionKind
from handlers.questions.answer_of_either import NO_REPLY, NOT_FOUND_BY_MODEL, WITHOUT_MODEL
from handlers.questions.answer_question import prepare_answer
from tests.fakes.answering import (
    COMPOSED,
    ROLLBACK,
    THREAD,
    answered,
    composing,
    last,
    question,
    retriever,
)
from tests.fakes.answering_script import AnsweringScript, Statements, agreeing, prompt, task
from tests.fakes.calibrators import calibrator
from tests.fakes.clock import FakeClock
from tests.fakes.language_model import ScriptedModel
from tests.fakes.messenger import Crash, RecordingMessenger, Trouble
from tests.fakes.store import InMemoryStore

__all__ = ["retriever"]  # the fixture


async def test_an_answer_is_posted_with_its_citation_and_its_badge(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger
) -> None:
    await answered(question("How do I roll back a canary?"), retriever, store, chat)
    answer = last(chat).answer
    assert answer.citations[0].document_id == "handbook/canary"
    assert "slip rollback" in answer.text
    assert answer.badge is not None
    assert answer.badge.probability is None


async def test_the_claim_is_stored_before_anybody_sees_it(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger
) -> None:
    chat.trouble.append(Trouble.CRASH_BEFORE)
    with pytest.raises(Crash):
        await answered(question("How do I roll back a canary?"), retriever, store, chat)
    (prediction,) = store.predictions.by_id.values()
    assert (prediction.kind, prediction.subject) == (PredictionKind.ANSWER, "q1")


async def test_an_abstention_makes_no_claim(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger
) -> None:
    await answered(question("What is the phone number of the zoo?"), retriever, store, chat)
    assert last(chat).answer.abstained
    assert last(chat).answer.badge is None
    assert store.predictions.by_id == {}


async def test_what_the_place_may_not_read_is_not_answered_from(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger
) -> None:
    asked = "Where is the master key kept?"
    await answered(question(asked, "q1"), retriever, store, chat)
    assert "heliotrope" not in repr(last(chat))
    await answered(question(asked, "q2", "channel:vault"), retriever, store, chat)
    assert "heliotrope" in repr(last(chat))


async def test_what_was_said_is_remembered_in_order(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger
) -> None:
    await answered(question("How do I roll back a canary?"), retriever, store, chat)
    first, second = await store.conversations.history(THREAD, 8)
    assert first == Turn(Speaker.PERSON, "How do I roll back a canary?")
    assert second.speaker is Speaker.PLUMBLINE
    assert "slip rollback" in second.text


async def test_a_follow_up_is_understood_in_its_thread(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger
) -> None:
    await answered(question("When does the deployment freeze begin?", "q1"), retriever, store, chat)
    await answered(question("and when does it end?", "q2"), retriever, store, chat)
    assert last(chat).answer.citations[0].document_id == "handbook/freeze"


@pytest.mark.parametrize("trouble", Trouble)
async def test_a_step_that_runs_twice_answers_once(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger, trouble: Trouble
) -> None:
    asked = question("How do I roll back a canary?")
    chat.trouble.append(trouble)
    with pytest.raises((ChatUnavailable, Crash)):
        await answered(asked, retriever, store, chat)
    for _ in range(2):
        await answered(asked, retriever, store, chat)
    assert len(chat.standing) == len(store.predictions.by_id) == 1
    assert len(store.conversations.turns) == 2


async def test_a_language_model_gives_the_answer_in_its_own_name(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger
) -> None:
    model = agreeing(AnsweringScript(composing, question=ROLLBACK), 0.8)
    await answered(question(ROLLBACK), retriever, store, chat, model)
    answer = last(chat).answer
    assert [sentence.text for sentence in answer.sentences] == [COMPOSED]
    assert (answer.engine, answer.note) == (model.name, "")
    (prediction,) = store.predictions.by_id.values()
    assert (prediction.engine, prediction.estimator_version) == (model.name, MODEL_VERSION)
    assert 0 < prediction.evaluation.rce <= 0.8


async def test_the_model_is_asked_at_once_and_for_the_channel_of_the_question(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger
) -> None:
    model = agreeing(AnsweringScript(composing, question=ROLLBACK))
    await answered(question(ROLLBACK), retriever, store, chat, model)
    assert {(request.requester, request.urgency) for request in model.requests} == {("slack:C0ASK", Urgency.PERSON)}


def down(_: ModelRequest) -> str:
    raise ModelUnavailable("The model is down.")


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(ScriptedModel(down), id="down"),
        pytest.param(ScriptedModel(lambda _: "I would love to help!"), id="not in the form asked for"),
        pytest.param(ScriptedModel(AnsweringScript(composing), context=300), id="too small a context"),
    ],
)
async def test_without_a_usable_reply_the_evidence_engine_answers_and_says_so(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger, model: ScriptedModel
) -> None:
    await answered(question(ROLLBACK), retriever, store, chat, model)
    answer = last(chat).answer
    assert "slip rollback" in answer.text
    assert (answer.engine, answer.note) == (ENGINE, WITHOUT_MODEL)
    (prediction,) = store.predictions.by_id.values()
    assert (prediction.engine, prediction.estimator_version) == (ENGINE, VERSION)


async def test_a_model_that_is_too_slow_is_not_waited_for(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stuck(ScriptedModel):
        async def generate(self, request: ModelRequest) -> ModelReply:
            await asyncio.Event().wait()
            raise AssertionError

    monkeypatch.setattr("handlers.questions.answer_of_either.MODEL_DEADLINE", 0.01)
    await answered(question(ROLLBACK), retriever, store, chat, Stuck())
    assert (last(chat).answer.engine, last(chat).answer.note) == (ENGINE, WITHOUT_MODEL)


async def test_what_the_documents_say_plainly_is_not_lost_to_a_model_that_finds_nothing(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger
) -> None:
    model = agreeing(AnsweringScript(lambda _: [], question=ROLLBACK))
    await answered(question(ROLLBACK), retriever, store, chat, model)
    answer = last(chat).answer
    assert "slip rollback" in answer.text
    assert (answer.engine, answer.note, answer.tentative) == (ENGINE, NOT_FOUND_BY_MODEL, True)


async def test_the_confidence_of_quotes_is_not_that_of_quotes_in_which_a_model_found_no_answer(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger
) -> None:
    await store.predictions.adopt(Estimator(PredictionKind.ANSWER, ENGINE, VERSION), calibrator(0.9, 0.95))
    await answered(question(ROLLBACK), retriever, store, chat)
    assert (badge := last(chat).answer.badge) is not None
    assert badge.probability == 0.95
    model = agreeing(AnsweringScript(lambda _: [], question=ROLLBACK))
    await answered(question(ROLLBACK, "q2"), retriever, store, chat, model)
    assert (badge := last(chat).answer.badge) is not None
    assert badge.probability is None


async def test_what_the_documents_say_plainly_stands_before_what_a_model_composes_without_certainty(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger
) -> None:
    model = agreeing(AnsweringScript(composing, question=ROLLBACK), 0.51)
    await answered(question(ROLLBACK), retriever, store, chat, model)
    answer = last(chat).answer
    assert (answer.engine, answer.note, answer.tentative) == (ENGINE, "", False)


async def test_a_failing_model_is_not_said_to_be_replaced_by_quotes_where_there_are_none(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger
) -> None:
    await answered(question("What is the phone number of the zoo?"), retriever, store, chat, ScriptedModel(down))
    assert (last(chat).answer.abstained, last(chat).answer.note) == (True, NO_REPLY)


async def test_a_follow_up_to_the_model_is_asked_with_what_was_said(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger
) -> None:
    model = agreeing(AnsweringScript(question="When does the deployment freeze end?"))
    await answered(question("When does the deployment freeze begin?", "q1"), retriever, store, chat, model)
    await answered(question("and when does it end?", "q2"), retriever, store, chat, model)
    rewrite = next(request for request in reversed(model.requests) if task(request) == "Rewritten")
    assert "When does the deployment freeze begin?" in prompt(rewrite)
    assert last(chat).answer.citations[0].document_id == "handbook/freeze"


async def test_an_answer_is_of_the_source_that_it_cites_and_is_judged_by_what_it_cites(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger
) -> None:
    await answered(question(ROLLBACK), retriever, store, chat)
    (prediction,) = store.predictions.by_id.values()
    assert (prediction.group, prediction.references) == ("handbook", ("handbook/canary",))


async def test_a_composed_answer_waits_for_a_two_step_estimate_only_where_there_is_a_judge(
    retriever: Retriever, store: InMemoryStore
) -> None:
    judge = ScriptedModel(lambda _: "The documents say so.", odds=lambda _, choices: {choices[-1]: 1.0})
    model = agreeing(AnsweringScript(composing, question=ROLLBACK))
    await prepare_answer(
        question(ROLLBACK), retriever=retriever, store=store, clock=FakeClock(), model=model, judge=judge
    )
    (prediction,) = store.predictions.by_id.values()
    assert prediction.estimator_version == f"{ESTIMATOR_VERSION}:scripted"
    assert prediction.evaluation == Evaluation(0.0, 1.0)  # the last labels: no, and the highest rating


async def test_a_quoted_answer_is_never_judged_by_a_model(retriever: Retriever, store: InMemoryStore) -> None:
    judge = ScriptedModel()
    await prepare_answer(question(ROLLBACK), retriever=retriever, store=store, clock=FakeClock(), judge=judge)
    (prediction,) = store.predictions.by_id.values()
    assert (prediction.estimator_version, judge.requests) == (VERSION, [])


def composing_both(shown: Statements) -> list[tuple[str, list[int]]]:
    cited = [number for number, text in shown.items() if "slip rollback" in text]
    return [(COMPOSED, cited), ("The traffic returns within 90 seconds.", cited)]


async def test_sentences_are_shown_as_they_pass_and_the_whole_takes_their_place(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger
) -> None:
    model = agreeing(AnsweringScript(composing_both, question=ROLLBACK))
    await answered(question(ROLLBACK), retriever, store, chat, model)
    ((_, draft),) = chat.posted
    assert isinstance(draft, AnswerMessage)
    assert [sentence.text for sentence in draft.answer.sentences] == [COMPOSED]
    assert draft.draft_for == question(ROLLBACK).asker
    assert (draft.answer.badge, draft.answer.prediction_id) == (None, None), "nobody judges half an answer"
    (whole,) = chat.standing.values()
    assert isinstance(whole, AnswerMessage)
    assert len(whole.answer.sentences) == 2
    assert (whole.draft_for, whole.answer.note) == (None, "")


async def test_a_chat_that_takes_no_draft_gets_the_whole_answer(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger
) -> None:
    chat.trouble.append(Trouble.DOWN)
    model = agreeing(AnsweringScript(composing_both, question=ROLLBACK))
    await answered(question(ROLLBACK), retriever, store, chat, model)
    assert len(chat.standing) == 1
    assert len(last(chat).answer.sentences) == 2


async def test_an_edited_question_has_an_edited_answer(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger
) -> None:
    await answered(question("what is the wifi password?"), retriever, store, chat)
    edited = replace(question(ROLLBACK), revision="1773480650.000000")
    for _ in range(2):  # the step may run twice
        await answered(edited, retriever, store, chat)
    assert len(chat.standing) == 1
    assert len(chat.edited) == 1
    (shown,) = chat.standing.values()
    assert isinstance(shown, AnswerMessage)
    assert "slip rollback" in shown.answer.text


async def test_a_composed_answer_waits_in_hand_for_a_chat_that_asks_to_wait_a_bit(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger
) -> None:
    model = agreeing(AnsweringScript(composing, question=ROLLBACK))
    chat.trouble.append(Trouble.DOWN)
    chat.retry_after = 0.0
    await answered(question(ROLLBACK), retriever, store, chat, model)
    asked = len(model.requests)
    assert len(chat.standing) == 1
    chat.trouble.append(Trouble.DOWN)
    chat.retry_after = 60.0
    with pytest.raises(ChatUnavailable):
        await answered(question(ROLLBACK, "q2"), retriever, InMemoryStore(), chat, model)
    assert len(model.requests) == 2 * asked, "and it is composed once"
