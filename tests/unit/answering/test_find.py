"""The evidence engine from end to end, over a fake index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from core.answering.certainty import ANSWER_THRESHOLD, is_certain
from core.answering.fact_kinds import refuses
from core.answering.find import ENGINE, MAX_FURTHER, find_answer
from core.knowledge.passages import passages_of
from core.knowledge.retriever import Retriever
from core.knowledge.terms import Encoder
from core.model.conversation import PUBLIC, Audience, Person, Place, Platform, Question, Speaker, Turn
from core.model.document import Document, DocumentKind, document
from core.model.text import thread_text
from tests.cases import every_case
from tests.fakes.passage_index import FakeEncoderStore, FakePassageIndex
from tests.fakes.reranker import FakeReranker
from tests.samples import confirmed
from tests.unit.answering.pasted import GITHUB_ACTIONS

PRIVATE = "channel:payments-private"
PAGES = {
    "runbooks/rollback": "# Roll back a canary\n\nRun `slipway rollback SERVICE`. It takes 90 seconds in production.",
    "runbooks/staging": "# Roll back in staging\n\nIn staging run `shallows rollback SERVICE`. It takes ten minutes.",
    "runbooks/drain": "# Drain a runner\n\nRun `drydock runner drain NAME` and wait for 45 minutes.",
    "runbooks/kid": "# Unknown kid\n\nPublish the signing key with `identityctl jwks publish`.",
    "architecture/topics": "# Kafka topics\n\nA new topic is a file in the repository. Platform reviews it.",
    "architecture/pool": "# Connection pools\n\nThe gateway holds forty connections for each pod.",
}
SECRET = "# Settlement desk\n\nThe settlement desk is reached at extension 7714 with the pass phrase."


@pytest.fixture
async def retriever() -> Retriever:
    documents = [page(f"docs/{key}", text, key.split("/")[0]) for key, text in PAGES.items()]
    secret = Document(
        "docs/runbooks/secret", "docs", "runbooks", "Settlement desk", SECRET, readers=frozenset({PRIVATE})
    )
    return await retriever_of([*documents, secret])


def page(key: str, text: str, area: str = "docs", updated_at: datetime | None = None) -> Document:
    """Return a page that is named after its heading."""
    return Document(key, "docs", area, text.partition("\n")[0][2:], text, updated_at=updated_at)


async def retriever_of(documents: Sequence[Document], reranker: FakeReranker | None = None) -> Retriever:
    passages = [passage for document in documents for passage in passages_of(document)]
    encoder = Encoder.fitted(passages)
    index, encoders = FakePassageIndex(), FakeEncoderStore()
    await index.upsert([encoder.encode_passage(passage) for passage in passages])
    await encoders.save(encoder)
    return Retriever(index, encoders, reranker=reranker and reranker.order)


def question(text: str, *history: str, readers: frozenset[str] = frozenset({PUBLIC})) -> Question:
    return Question(
        "q-1",
        text,
        Person(Platform.TERMINAL, "someone"),
        Place(Platform.TERMINAL, "terminal"),
        Audience(readers),
        datetime(2026, 3, 14, tzinfo=UTC),
        tuple(Turn(Speaker.PERSON, turn) for turn in history),
    )


async def test_a_question_is_answered_from_the_page_that_says_it(retriever: Retriever) -> None:
    answer, evaluation = await find_answer(question("how do I drain a runner?"), retriever)
    assert not answer.abstained
    assert answer.citations[0].document_id == "docs/runbooks/drain"
    assert "drydock runner drain NAME" in answer.excerpts[0].text
    assert (answer.question_id, answer.question, answer.engine) == ("q-1", "how do I drain a runner?", ENGINE)
    assert answer.badge is None
    assert 0 < evaluation.coe <= 1
    assert 0 < evaluation.rce <= 1


async def test_what_people_confirmed_for_this_question_is_shown_however_little_evidence_there_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("core.answering.find.answerable", lambda _: False)
    written = [page(f"docs/{key}", text) for key, text in PAGES.items()]
    asked = "how do I roll back a canary?"
    said = "Run `shallows undo --now` and call Delivery."
    retriever = await retriever_of([*written, document(confirmed(question=asked, text=said))])
    confirmed_answer, _ = await find_answer(question(asked), retriever)
    assert [each.text for each in confirmed_answer.excerpts] == [said]
    other, _ = await find_answer(question("how do I drain a barge?"), retriever)
    assert other.abstained


async def test_a_page_that_holds_every_word_of_a_question_is_never_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.answering.find.answerable", lambda _: False)
    written = [page(f"docs/{key}", text) for key, text in PAGES.items()]
    answer, _ = await find_answer(question("how do I drain a runner?"), await retriever_of(written))
    assert "drain" in answer.excerpts[0].text


async def test_the_answer_is_of_one_family(retriever: Retriever) -> None:
    answer, _ = await find_answer(question("how do I roll back a canary?"), retriever)
    [excerpt] = answer.excerpts
    assert answer.citations[excerpt.citation - 1].document_id == "docs/runbooks/rollback"


@pytest.mark.parametrize(
    "name", ["RouterErrorRatioTooHigh", "router-error-ratio-too-high", "Router error ratio too high?"]
)
async def test_the_name_of_an_alert_is_answered_from_the_page_of_that_name(name: str) -> None:
    text = "# Router error ratio too high\n\nLook at the backend first.\n\n## Remedy\n\nEmpty the bad zone."
    other = "# Router\n\nThe router sends each request to a backend. Its error ratio is on the board, too."
    pages = [("high", "Router error ratio too high", text), ("router", "Router", other)]
    found = await retriever_of([Document(f"docs/{name}", "docs", "", title, text) for name, title, text in pages])
    answer, _ = await find_answer(question(name), found)
    assert (answer.abstained, answer.tentative) == (False, False)
    assert answer.citations[0].document_id == "docs/high"


async def test_of_a_pasted_log_what_failed_is_searched_for_and_told() -> None:
    full = "# Disk of a runner full\n\nThe job says that no space is left on the device. Drain the runner and prune its images."
    gradle = "# Gradle\n\nEach task of a build runs with `./gradlew build`. Add --stacktrace to get the stack trace of a task."
    found = await retriever_of([Document(f"docs/{text[2:6]}", "docs", "", text[2:9], text) for text in (full, gradle)])
    answer, _ = await find_answer(question(GITHUB_ACTIONS), found)
    assert answer.citations[0].title == "Disk of"
    assert answer.lead.startswith("What failed: “> java.io.IOException: No space left on device”.")


async def test_a_follow_up_for_another_kind_of_fact_does_not_begin_with_the_quote_that_stands_above(
    retriever: Retriever,
) -> None:
    topic = question("how do I roll back a canary?")
    first, _ = await find_answer(topic, retriever)
    assert "slipway" in first.text
    history = (Turn(Speaker.PERSON, topic.text), Turn(Speaker.PLUMBLINE, first.text))
    for text, is_above in (("and how long does it take?", True), ("and who may do that?", False)):
        again, _ = await find_answer(replace(question(text), history=history), retriever)
        assert ("slipway" in again.quotes[0].text) is is_above, text  # it states an amount, and nobody


async def test_a_follow_up_is_answered_in_its_context(retriever: Retriever) -> None:
    answer, _ = await find_answer(question("and in staging?", "how do I roll back a canary?"), retriever)
    assert answer.citations[0].document_id == "docs/runbooks/staging"


async def test_without_evidence_it_abstains_and_names_the_nearest() -> None:
    words = " ".join(f"w{chr(97 + number // 26)}{chr(97 + number % 26)}" for number in range(80))
    retriever = await retriever_of([Document("docs/long", "docs", "guides", "Long", f"# Long\n\nHarbour {words}.")])
    answer, evaluation = await find_answer(question("which clown of the circus lives in the harbour?"), retriever)
    assert answer.abstained
    assert 1 <= len(answer.citations) <= 1 + MAX_FURTHER
    assert 0 < evaluation.coe < ANSWER_THRESHOLD


@pytest.mark.parametrize("text", ["", "?", "the of and", "zebra"])
async def test_a_question_that_shares_nothing_gets_an_honest_answer(text: str, retriever: Retriever) -> None:
    answer, evaluation = await find_answer(question(text), retriever)
    assert answer.abstained
    assert answer.citations == ()
    assert evaluation.coe == evaluation.rce == 0.0


async def test_an_answer_is_tentative_exactly_where_its_evidence_is_not_called_strong(retriever: Retriever) -> None:
    for asked in ("how do I drain a runner?", "what do I run to roll back?"):
        answer, evaluation = await find_answer(question(asked), retriever)
        assert answer.tentative == (not is_certain(evaluation))


async def test_other_excerpts_are_offered_below(retriever: Retriever) -> None:
    answer, _ = await find_answer(question("what do I run to roll back?"), retriever)
    assert 1 <= len(answer.further) <= MAX_FURTHER
    shown = [*answer.excerpts, *answer.further]
    assert [excerpt.citation for excerpt in shown] == [citation.number for citation in answer.citations]
    assert len({excerpt.text for excerpt in shown}) == len(shown)


async def test_a_document_that_says_otherwise_is_shown_beside_the_answer() -> None:
    said = {
        "old": "# Draining a runner\n\nDraining a runner takes 45 minutes. Tell the channel before.",
        "new": "# Draining a runner\n\nDraining a runner takes 10 minutes. The group makes a new one.",
        "else": "# Kafka topics\n\nA new topic is a file in the repository.",
    }
    documents = [
        page(f"docs/{key}", text, "runbooks", datetime(2024 + n, 1, 1, tzinfo=UTC))
        for n, (key, text) in enumerate(said.items())
    ]
    answer, _ = await find_answer(question("how long does draining a runner take?"), await retriever_of(documents))
    [conflict] = answer.conflicts
    assert [source.document_id for source in conflict.sources] == ["docs/new", "docs/old"]


async def test_nobody_is_answered_from_what_they_may_not_read(retriever: Retriever) -> None:
    asked = "how do I reach the settlement desk?"
    answer, _ = await find_answer(question(asked), retriever)
    assert "docs/runbooks/secret" not in {citation.document_id for citation in answer.citations}
    answer, _ = await find_answer(question(asked, readers=frozenset({PUBLIC, PRIVATE})), retriever)
    assert answer.citations[0].document_id == "docs/runbooks/secret"


async def test_a_question_that_somebody_else_asked_is_no_answer_and_hides_none() -> None:
    asked = "How do I roll back a canary?"
    thread = Document(
        "chat/1", "chat", "chat", f"#ci: {asked}", thread_text(asked, ["thanks, found it"]), DocumentKind.THREAD
    )
    rollback = Document("docs/rollback", "docs", "runbooks", "Rollback", PAGES["runbooks/rollback"])
    found, _ = await find_answer(question(asked), await retriever_of([thread, rollback]))
    assert {source.document_id for source in found.citations} == {"docs/rollback"}
    assert not found.abstained
    alone, _ = await find_answer(question(asked), await retriever_of([thread]))
    assert alone.abstained


async def test_before_anything_was_ingested_it_abstains() -> None:
    answer, _ = await find_answer(
        question("how do I drain a runner?"), Retriever(FakePassageIndex(), FakeEncoderStore())
    )
    assert answer.abstained
    assert answer.citations == ()


async def test_a_huge_question_is_answered_all_the_same(retriever: Retriever) -> None:
    huge = replace(question(""), text="how do I drain a runner? " + "noise " * 10_000)
    answer, _ = await find_answer(huge, retriever)
    assert answer.question_id == "q-1"


async def test_both_sides_of_a_comparison_are_among_the_quotes(retriever: Retriever) -> None:
    answer, _ = await find_answer(question("drain a runner or roll back a canary?"), retriever)
    assert answer.tentative
    assert {each.document_id for each in answer.citations} >= {"docs/runbooks/drain", "docs/runbooks/rollback"}


async def test_a_quote_that_refers_to_the_same_command_shows_it() -> None:
    text = (
        "# Rolling back\n\n## The command\n\n```\nslip rollback NAME\n```\n\nIt takes a minute.\n\n"
        "## A canary\n\nThe same command rolls back a canary pod."
    )
    pages = [Document("docs/back", "docs", "runbooks", "Rolling back", text)]
    answer, _ = await find_answer(question("how are pods of a canary rolled"), await retriever_of(pages))
    assert answer.excerpts[0].marked == "The same command rolls back a canary pod."
    assert "slip rollback NAME" in answer.excerpts[0].text


PAST_AND_STANDING = [
    ("may I deploy on a friday?", "Freezes", "friday", "deployments", "In 2025 it lasted from 3 March to 14 March."),
    (
        "can I restart the batch on sundays?",
        "Batch windows",
        "sunday",
        "batch",
        "The audit of 2025 ran from 1 May until 9 May.",
    ),
    (
        "is a migration ok on a monday?",
        "Quiet days",
        "monday",
        "migration",
        "From 4 June 2025 to 8 June 2025 we moved.",
    ),
]


@every_case(("asked", "title", "day", "thing", "past"), PAST_AND_STANDING)
async def test_of_a_page_the_rule_that_stands_is_quoted_and_not_the_dates_that_are_over(
    asked: str, title: str, day: str, thing: str, past: str
) -> None:
    rule = f"From {day} noon on, nothing goes beyond staging."
    text = f"# {title} and {day}\n\n## Every week\n\n{rule}\n\n## The great one\n\n{past} No {thing} then."
    found, _ = await find_answer(
        question(asked), await retriever_of([Document("docs/calendar", "docs", "rules", f"{title} and {day}", text)])
    )
    assert rule in found.excerpts[0].text


async def test_a_heading_of_common_words_alone_answers_the_question_that_holds_them() -> None:
    text = (
        "# Rolling back\n\n## The canary\n\nA canary rolls back by itself after a minute, or when somebody asks for it.\n\n"
        "## Who may\n\nAnybody on the rota, without approval."
    )
    pages = [Document("docs/back", "docs", "runbooks", "Rolling back", text)]
    answer, _ = await find_answer(question("who may roll back a canary?"), await retriever_of(pages))
    assert answer.excerpts[0].marked == "Anybody on the rota, without approval."


async def test_a_page_whose_command_is_forbidden_comes_after_the_ban_whatever_is_quoted_of_it() -> None:
    old = "# Flushing the cache\n\nThe cache drifts away from the database.\n\n## How\n\n```\nredis-cli -h cache FLUSHALL\n```"
    new = "# Stale cache\n\n**Never run `FLUSHALL` on the Redis cache.** A flush of the cache threw away all holds."
    pages = [
        page(f"docs/{number}", text, "runbooks", datetime(2024 + number, 1, 1, tzinfo=UTC))
        for number, text in enumerate((old, new))
    ]
    answer, _ = await find_answer(question("cache drifts away from the database"), await retriever_of(pages))
    assert [each.document_id for each in answer.citations][:2] == ["docs/1", "docs/0"]
    assert answer.tentative


TIMEOUTS = """\
# Shop timeouts

Most of the time when checkout of the shop times out, it is the trouble of somebody else. Find out whose.

## Retries

The browser retries a checkout of the shop that timed out once.

## Whose it is

Hand over to payments with the graph; {refusal}. Holds of passengers are lost otherwise.
"""


@every_case(
    ("asked", "refusal"),
    [
        ("can I restart the shop when checkout times out?", "do not restart the shop"),
        ("should we restart shop if the checkout times out", "the shop must not be restarted"),
        ("is it ok to restart the shop when checkout times out", "never restart the shop before noon"),
        ("may I restart shop pods when the checkout times out", "you can’t restart shop pods by hand"),
        ("can we safely restart shop when checkout times out", "do **not** restart the shop"),
    ],
)
async def test_what_a_page_refuses_is_quoted_before_the_rest_of_it(asked: str, refusal: str) -> None:
    retriever = await retriever_of([page("docs/shop", TIMEOUTS.format(refusal=refusal), "runbooks")])
    answer, _ = await find_answer(question(asked), retriever)
    assert refusal in answer.excerpts[0].marked


@every_case(
    ("asked", "text"),
    [
        ("how do I restart the shop?", "Do not restart the shop."),
        ("can I restart the shop?", "Do not scale the shop."),
        ("can I scale the shop?", "It has never had to restart."),
        ("can I restart the shop?", "A shop that does not answer is restarted."),
        ("can I restart shop?", "Do not scale shop by hand."),
        ("can I restart shop?", "If shop does not restart within 5 minutes, call its owner."),
        ("can I restart shop?", "If what fails is not shop, call its owner."),
        ("can I restart shop?", "You need not restart shop after a change of its settings."),
    ],
)
def test_what_denies_something_else_refuses_nothing(asked: str, text: str) -> None:
    assert not refuses(asked, text)


async def test_a_refusal_elsewhere_on_the_page_leaves_no_answer_certain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.answering.find.is_certain", lambda _: True)
    asked = question("can I restart the shop when checkout times out?")
    for refusal, is_hedged in (("do not restart the shop", True), ("look at its dashboard", False)):
        long = TIMEOUTS.format(refusal=refusal).replace(
            "Find out whose.", "Restart it if need be. " + "It waits. " * 60
        )
        answer, _ = await find_answer(asked, await retriever_of([page("docs/shop", long, "runbooks")]))
        assert answer.tentative == is_hedged


@every_case("asked", ["how many pods does the shop have?", "how many pods do we have for the shop?"])
async def test_a_page_answers_how_many_there_are_and_not_an_incident(asked: str) -> None:
    incident = page(
        "incidents/1", "# The shop is slow\n\nThree pods of the shop have many requests since noon.", "incidents"
    )
    told = page("docs/shop", "# Load of the shop\n\nAdd pods for the shop; normal is six for each cluster.", "runbooks")
    answer, _ = await find_answer(
        question(asked), await retriever_of([replace(incident, kind=DocumentKind.INCIDENT), told])
    )
    assert answer.citations[0].document_id == "docs/shop"


async def test_a_question_of_which_half_is_answered_is_answered_with_a_hedge(retriever: Retriever) -> None:
    answer, _ = await find_answer(question("how do I drain a runner, and who waits for it?"), retriever)
    assert answer.tentative


async def test_of_a_long_table_the_entry_is_marked_that_the_question_names() -> None:
    rows = "\n".join(f"| {code} | reason {code} |" for code in (10, 20, 30, 86, 99))
    codes = page("docs/codes", f"# Exit codes\n\n| Code | Meaning |\n|---|---|\n{rows}", "runbooks")
    pages = [page(f"docs/{key}", text, "runbooks") for key, text in PAGES.items()]
    retriever = await retriever_of([*pages, codes])
    answer, _ = await find_answer(question("what does exit code 86 mean?"), retriever)
    assert answer.excerpts[0].marked == "| 86 | reason 86 |"


async def test_a_page_whose_command_a_later_page_replaces_comes_after_that_page() -> None:
    old = "# Roll back by hand\n\nTo roll back by hand, run:\n\n```\nkubectl rollout undo deploy/NAME\n```"
    new = "# Rolling back\n\nThis replaced `kubectl rollout undo` in December: it has no lasting effect."
    pages = [
        page(f"docs/{name}", text, "deployment", datetime(2026, month, 1, tzinfo=UTC))
        for name, text, month in (("old", old, 1), ("new", new, 6))
    ]
    answer, _ = await find_answer(question("roll back by hand"), await retriever_of(pages))
    shown = [each.document_id for each in answer.citations[: len(answer.quotes)]]
    assert answer.tentative
    assert shown == ["docs/new", "docs/old"]


POOLS = {
    "docs/pools": "# Connection pools\n\nThe gateway holds 40 connections for each pod.",
    "docs/limits": "# Connections\n\nA pod of the gateway holds connections open until a ceiling that sysctl sets.",
    "docs/tuning": "# Connections of a pod\n\nThe gateway logs the connections that a pod holds open.",
}
HELD = "how many connections does the gateway hold for a pod?"


async def pools(reranker: FakeReranker | None = None) -> Retriever:
    return await retriever_of([page(key, text) for key, text in POOLS.items()], reranker)


async def test_the_passage_that_a_reranker_prefers_is_quoted_first_and_the_others_stay_behind_it() -> None:
    (plain, evaluation), (preferring, same) = [
        await find_answer(question(HELD), await pools(reranker)) for reranker in (None, FakeReranker("sysctl"))
    ]
    order = [each.document_id for each in plain.citations]
    assert order.index("docs/limits") > 0
    assert [each.document_id for each in preferring.citations] == [
        "docs/limits",
        *(each for each in order if each != "docs/limits"),
    ]
    assert preferring.tentative
    assert same == evaluation


async def test_a_reranker_that_fails_changes_nothing() -> None:
    reranker = FakeReranker("sysctl")
    reranker.failing = True
    assert await find_answer(question(HELD), await pools(reranker)) == await find_answer(question(HELD), await pools())


async def test_an_answer_is_certain_only_where_the_evidence_says_so_and_the_reranker_agrees(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tentative: dict[tuple[bool, str], bool] = {}
    for is_strong in (True, False):
        monkeypatch.setattr("core.answering.find.is_certain", lambda _, strong=is_strong: strong)
        for word in ("40", "sysctl"):
            answer, _ = await find_answer(question(HELD), await pools(FakeReranker(word)))
            tentative[is_strong, word] = answer.tentative
    assert tentative == {
        (True, "40"): False,
        (True, "sysctl"): True,
        (False, "40"): True,
        (False, "sysctl"): True,
    }


async def test_what_people_confirmed_stays_before_what_a_reranker_prefers() -> None:
    reranker = FakeReranker("sysctl")
    documents = [page(key, text) for key, text in POOLS.items()]
    answer, _ = await find_answer(
        question(HELD),
        await retriever_of([*documents, document(confirmed(question=HELD, text="Sixty of them."))], reranker),
    )
    assert "Sixty" in answer.excerpts[0].text
    assert not reranker.asked
