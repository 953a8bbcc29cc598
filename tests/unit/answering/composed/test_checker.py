"""A sentence of a language model is compared with the passages that it cites."""

from __future__ import annotations

import pytest

from core.answering.claims import Objection, fault_of, is_verbatim, source_of
from core.knowledge.passages import passages_of
from core.model.document import Document
from tests.cases import every_case

PAGE = """# Rotating the gateway key

Rotate the key with `gatekey rotate --grace 24h`. Old tokens stay valid for 24 hours, then the gateway refuses them.
Do not restart the gateway while a rotation is under way, unless the release captain agrees.
The gateway retries a failed call three times and waits 5 seconds between them.

## Limits

- It accepts bodies of up to 256 KB.
- Uploads above 1,000 MB are never accepted.
- Metrics are sent from the gateway to the collector.
- Only members of the platform team may delete a key.

| setting | default | meaning |
| --- | --- | --- |
| pool.max | 40 | connections of each service |
| queue.length | 200 | calls that wait |

## Draining

Before a drain, disable the autoscaler. After the drain, enable it again if the queue is empty.
Skiff copies the ledger to Harbour every night.
"""
QUESTION = "How do I rotate the key of the gateway?"
SOURCE = source_of(passages_of(Document("docs/gateway", "docs", "gateway", "Gateway", PAGE)))


@every_case(
    "sentence",
    [
        "Run `gatekey rotate --grace 24h` to rotate the key.",
        "Use `gatekey rotate --grace 24h`.",
        "Tokens issued before stay valid for 24h.",
        "After 24 hours the gateway no longer accepts old tokens.",
        "You must not restart the gateway during a rotation unless the release captain agrees.",
        "A failed call is retried 3 times, 5s apart.",
        "Bodies may be up to 256 KB.",
        "Uploads of more than 1000 MB are refused.",
        "The gateway sends metrics to the collector.",
        "The collector gets metrics from the gateway.",
        "A key can only be deleted by members of the platform team.",
        "`pool.max` is 40 by default.",
        "Up to 200 calls wait, set by `queue.length`.",
        "Disable the autoscaler before the drain.",
        "The autoscaler is enabled again after the drain if the queue is empty.",
        "Every night, Skiff copies the ledger to Harbour.",
        "The ledger is copied to Harbour by Skiff every night.",
        "Old tokens stay valid for one day.",
        "An old token is refused after a day, that is 24 hours.",
        "None but members of the platform team can delete a key.",
        "The gateway takes bodies of no more than 256 KB.",
        "If you drain it, first disable the autoscaler and only then start.",
        "`queue.length` is 200, the number of calls that may wait.",
        "Each service may have 40 connections, which is the default of `pool.max`.",
    ],
)
def test_no_rule_refuses_a_faithful_paraphrase(sentence: str) -> None:
    assert fault_of(sentence, QUESTION, SOURCE) is None


@every_case(
    ("sentence", "fault"),
    [
        ("Run `gatekey rotate --force` to rotate the key.", Objection.LITERAL),
        ("Old tokens stay valid for 48 hours.", Objection.LITERAL),
        ("Old tokens stay valid for 24 minutes.", Objection.LITERAL),
        ("Restart the gateway while a rotation is under way.", Objection.POLARITY),
        ("Uploads above 1,000 MB are accepted.", Objection.POLARITY),
        ("Old tokens stay valid for half an hour.", Objection.LITERAL),
        ("In Traefik, old tokens stay valid for 24 hours.", Objection.PRODUCT),
        ("I am sure that old tokens stay valid for 24 hours.", Objection.INJECTION),
        ("Tell @channel that old tokens stay valid for 24 hours.", Objection.INJECTION),
        ("Old tokens stay valid for 24 hours, see https://tokens.example/login.", Objection.INJECTION),
        ("Old tokens stay valid for 48 hours, see `curl https://tokens.example`.", Objection.INJECTION),
        ("Old tokens stay valid for 24 hours, ask ada@tokens.example.", Objection.INJECTION),
    ],
)
def test_unfaithful_sentence_is_refused_for_its_fault(sentence: str, fault: Objection) -> None:
    assert fault_of(sentence, QUESTION, SOURCE) is fault


@every_case(
    ("question", "answer"),
    [
        ("Does the gateway retry a failed call?", "Yes, the gateway retries a failed call."),
        ("Can uploads above 1,000 MB be accepted?", "No, uploads above 1,000 MB are never accepted."),
        (
            "Are metrics sent from the gateway to the collector?",
            "Yes. Metrics are sent from the gateway to the collector.",
        ),
        ("Do old tokens stay valid for 24 hours?", "Old tokens do stay valid for 24 hours."),
        ("Should I disable the autoscaler before a drain?", "Yes, disable the autoscaler before a drain."),
        ("May members of the platform team delete a key?", "Yes, only members of the platform team may delete a key."),
        ("Is the default of pool.max 40?", "Yes, the default of `pool.max` is 40."),
        ("Does Skiff copy the ledger every night?", "Yes, Skiff copies the ledger every night."),
        ("Are uploads above 1,000 MB accepted?", "No uploads above 1,000 MB are accepted."),
    ],
)
def test_an_answer_to_a_question_of_yes_or_no_may_say_what_was_asked(question: str, answer: str) -> None:
    assert fault_of(answer, question, SOURCE) is None


@every_case(
    "sentence",
    [
        "After the drain, disable the autoscaler again if the queue is empty.",
        "Metrics are sent from the collector to the gateway.",
        "`pool.max` is 200 by default.",
        "Do not restart the gateway while a rotation is under way.",
        "Members of the platform team may delete a key.",
        "It accepts bodies of up to 256 KB even if the queue is full.",
        "Harbour copies the ledger to Skiff every night.",
        "Ask the vendor for a replacement licence and reboot each node.",
        "This rotates the key of the gateway.",
        "Yes, the collector retries a failed upload.",
        "Yes, Harbour copies the ledger to Skiff.",
        "No, the gateway retries a failed call.",
    ],
)
def test_meaning_is_left_to_the_judge(sentence: str) -> None:
    assert fault_of(sentence, QUESTION, SOURCE) is None
    assert not is_verbatim(sentence, SOURCE)


def test_the_words_of_a_passage_need_no_judge() -> None:
    for sentence in (
        "Only members of the platform team may delete a key.",
        "Before a drain, disable the autoscaler.",
        "Before a drain, disable the autoscaler. After the drain, enable it again if the queue is empty.",
    ):
        assert is_verbatim(sentence, SOURCE)
        assert fault_of(sentence, QUESTION, SOURCE) is None


LOG = source_of(
    passages_of(
        Document(
            "docs/log",
            "docs",
            "log",
            "Log",
            "At 09:19:04 the pool fell from 40 to 4 connections. The query took 5916 ms. The lease lasts an hour and a half, its "
            "renewal half an hour. Deployed on 2024-05-24 at 09:14:03.",
        )
    )
)


def test_numbers_hold_in_other_units_and_to_the_precision_that_was_written(subtests: pytest.Subtests) -> None:
    for sentence, holds in {
        "The pool fell at 09:19.": True,
        "The pool fell at 09:18.": False,
        "The pool fell by 90 % (40 to 4).": True,
        "The pool fell by 80 % (40 to 4).": False,
        "The query took 5.9 s.": True,
        "The query took about 6 seconds.": True,
        "The query took 5.1 s.": False,
        "The lease lasts 90 minutes.": True,
        "The lease lasts 90 seconds.": False,
        "It is renewed for 30 minutes.": True,
        "It is renewed for 30 hours.": False,
        "It fell at 09:19, five minutes after the deployment at 09:14.": True,
    }.items():
        with subtests.test(sentence):
            assert (fault_of(sentence, "What happened?", LOG) is None) is holds
