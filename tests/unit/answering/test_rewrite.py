"""Follow-ups."""

from __future__ import annotations

import pytest

from core.answering.questions import MAX_LENGTH, MAX_PARTS, is_follow_up, parts, standalone
from core.model.conversation import Speaker, Turn
from tests.cases import every_case

ASKED = "How do I roll back a canary in production?"
HISTORY = (Turn(Speaker.PERSON, ASKED), Turn(Speaker.PLUMBLINE, "slipway rollback SERVICE"))


@every_case(
    "question",
    [
        "and for staging?",
        "no, in staging",
        "And what about payments?",
        "what about bookings?",
        "is there one in shallows?",
        "who works there?",
        "in shallows?",
        "who owns it?",
        "does that need approval?",
        "why?",
        "ok, and the same for south?",
        "actually I meant the flag",
        "No in staging",
        "no - the one for bookings, not the one for payments in the north",
        "nope, I asked about the canary in staging and not about the one in production",
        "nein, in Staging",
        "Und im Staging?",
        "Was ist mit bookings?",
        "auf Shallows?",
        "non, en staging",
        "et pour bookings ?",
        "¿y en staging?",
        "no, en staging",
        "no en staging",
        "いいえ、ステージングでのロールバックの手順です",
        "不是，是预发布环境的回滚步骤",
    ],
)
def test_a_follow_up_carries_the_topic_along(question: str) -> None:
    assert is_follow_up(question)
    assert standalone(question, HISTORY) == f"{ASKED} {question} {question}"


@every_case(
    "question",
    [
        "How do I drain a drydock runner?",
        "is there a freeze",
        "are there open changes?",
        "there is no space left",
        "Which Kafka topics does vessel-tracker write, and how long are they kept?",
        "booking-api answers 503, who is on call?",
        "Nobody can log in: unknown kid in all services",
        "No space left on device on ledger-db, which volume is it?",
        "No route to host from booking-api to ledger-db, which rule is missing?",
        "Wie leere ich einen Runner im Dock?",
        "Wer hat für booking-api Bereitschaft, wenn die Suche ausfällt?",
        "MIT licence of slip?",
        "IM alerts missing?",
        "et-service crash",
        "on-call phone?",
        "Non-root containers fail to start on drydock, what is missing?",
        "Y-axis labels of the booking dashboard are cut off, who owns it?",
        "¿Cómo vacío un runner del dique seco?",
        "Comment vider un runner du dock ?",
    ],
)
def test_a_question_that_stands_alone_is_left_as_it_is(question: str) -> None:
    assert not is_follow_up(question)
    assert standalone(question, HISTORY) == question


def test_a_chain_of_follow_ups_keeps_its_first_question() -> None:
    history = (*HISTORY, Turn(Speaker.PERSON, "and for payments?"), Turn(Speaker.PLUMBLINE, "…"))
    assert standalone("no, in staging", history) == f"{ASKED} and for payments? no, in staging no, in staging"


def test_a_new_question_ends_the_topic() -> None:
    history = (*HISTORY, Turn(Speaker.PERSON, "How do I drain a drydock runner?"))
    assert standalone("and how long does it take?", history).startswith("How do I drain a drydock runner? and how long")


def test_without_a_history_nothing_is_added() -> None:
    assert standalone(" and for staging? ", ()) == "and for staging?"


@every_case(
    "question", ["how do we fix this?", "what should we do?", "any runbook for it?", "can you help?", "any ideas?"]
)
def test_in_somebody_else_s_thread_a_question_is_about_what_the_thread_began_with(question: str) -> None:
    theirs = tuple(Turn(Speaker.PERSON, text) for text in ("The till is slow", "same here", "restarted it", "no use"))
    assert standalone(question, theirs) == f"The till is slow {question} {question}"


@pytest.mark.parametrize("greeting", ["Good morning all", "Hi team, anyone around?", "quick question :wave:", "👋"])
def test_a_greeting_is_not_what_somebody_else_s_thread_is_about(greeting: str) -> None:
    theirs = tuple(Turn(Speaker.PERSON, text) for text in (greeting, "The till is slow", "same here"))
    assert standalone("what should we do?", theirs) == "The till is slow what should we do? what should we do?"
    assert standalone("what should we do?", theirs[:1]) == "what should we do?"


@every_case(
    ("question", "expected"),
    [
        ("how do I roll back X and who approves a hotfix?", ["how do I roll back X", "who approves a hotfix?"]),
        ("How do I drain a runner? Who is the captain?", ["How do I drain a runner?", "Who is the captain?"]),
        ("is the quota full, and can I ask for more?", ["is the quota full", "can I ask for more?"]),
        ("如何登录管理界面？日志在哪个路径下？", ["如何登录管理界面？", "日志在哪个路径下？"]),
        ("how do I drain a runner, and who waits for it?", ["how do I drain a runner", "how do I drain a runner who waits for it? who waits for it?"]),
    ],
)  # fmt: skip
def test_a_question_for_several_things_is_parted_into_questions_that_stand_alone(
    question: str, expected: list[str]
) -> None:
    assert list(parts(question)) == expected


@every_case(
    "question",
    [
        "how do I drain and retire a runner?",
        "can I put a manifest into a message? broker says RecordTooLarge",
        "the leader failed and now the replica refuses to join",
        "why does ```a? b?``` fail",
        "is it true or not?",
        "pod disruption budget: minAvailable vs maxUnavailable",
        "",
        "the queue is slow. " * (MAX_LENGTH // 10) + "why? who owns it?",
    ],
)
def test_a_question_for_one_thing_is_left_whole(question: str) -> None:
    assert parts(f" {question}") == (question,)


def test_more_parts_than_can_be_answered_stay_together() -> None:
    found = parts("who owns the index? who owns the queue? who owns the cache? who owns the gateway?")
    assert len(found) == MAX_PARTS
    assert found[-1] == "who owns the cache? who owns the gateway?"
