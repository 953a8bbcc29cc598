from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from core.knowledge.retriever import Retriever
from core.model.answer import Answer
from core.model.conversation import PUBLIC, Audience, Channel, Person, Place, Platform, Question
from core.model.document import Document
from core.model.errors import ToolUnavailable
from core.model.team import CodeOwners, Rota, Team
from core.ports import Change, ChangeReader, TimeWindow
from handlers.knowledge.ingest_knowledge import ingest_knowledge
from handlers.questions.answer_from_records import MAX_SHOWN, answer_from_records, requested_record
from tests.cases import every_case
from tests.fakes.passage_index import FakeEncoderStore, FakePassageIndex
from tests.fakes.ports import some_ports

NOW = datetime(2026, 3, 18, 12, 0, tzinfo=UTC)
WEEK = timedelta(days=7)
TEAMS = (
    Team(
        "bookings",
        "Bookings",
        document="# Bookings\n\n## We own\n\n- pricing, and the fare tables\n\n## We do not own\n\n- the card terminals",
        services=frozenset({"pricing", "seats"}),
        channel="bookings",
        on_call=("Priya", "Jonas"),
    ),
    Team(
        "payments",
        "Payments",
        services=frozenset({"gateway"}),
        channel="payments-private",
        on_call=("Asha", "Mateo"),
        rota=Rota(("Asha", "Mateo"), NOW - timedelta(days=2), WEEK),
    ),
)
CHANNELS = (Channel("bookings", {}), Channel("payments-private", {}, private=True))
CODE = CodeOwners.parsed("* @acme/all\n/src/fares/ @acme/bookings").named(lambda owner: owner.rpartition("/")[2])
EVERYBODY = Audience(frozenset({PUBLIC}))


class Deployments:
    name = "deployments"

    def __init__(self, *changes: Change) -> None:
        self._changes = changes

    async def changes(self, window: TimeWindow) -> list[Change]:
        return [change for change in self._changes if window.start <= change.at < window.end]


class Broken:
    name = "broken"

    async def changes(self, window: TimeWindow) -> list[Change]:
        raise ToolUnavailable("no way there")


class Runbooks:
    name = "runbooks"

    async def documents(self) -> AsyncIterator[Document]:
        for key, readers in (("PricingSlow", PUBLIC), ("GatewayDown", "channel:payments-private")):
            text = f"# {key}\n\nRestart it with `restart --now`."
            yield Document(
                f"runbooks/{key}", "runbooks", "runbooks", key, text, owner="bookings", readers=frozenset({readers})
            )


def change(number: int, service: str = "pricing") -> Change:
    return Change(f"C{number}", NOW - timedelta(hours=number), "deploy", service, "Ada", f"version {number}")


@pytest.fixture
async def retriever() -> Retriever:
    index, encoders = FakePassageIndex(), FakeEncoderStore()
    await ingest_knowledge([Runbooks()], index, encoders, None)
    return Retriever(index, encoders, None)


async def asked(
    text: str, retriever: Retriever, changes: Sequence[ChangeReader] = (), audience: Audience = EVERYBODY
) -> Answer | None:
    question = Question("q", text, Person(Platform.SLACK, "U1"), Place(Platform.SLACK, "C1"), audience, NOW)
    ports = some_ports(
        teams=TEAMS,
        changes=changes,
        channels=CHANNELS,
        origins={"seats": "CODEOWNERS"},
        retriever=retriever,
        code=(CODE,),
        dependencies={"shop": ("pricing", "gateway"), "gateway": ("ledger", "pricing"), "pricing": ("seats",)},
    )
    wanted = await requested_record(question, ports)
    assert wanted is not None
    found = await answer_from_records(question, wanted, ports)
    return found[0] if found else None


async def said(text: str, retriever: Retriever, *changes: ChangeReader) -> str:
    answer = await asked(text, retriever, changes)
    assert answer is not None
    assert not answer.tentative
    return answer.text


async def test_an_owner_is_told_with_a_channel_that_everybody_may_know_of(retriever: Retriever) -> None:
    assert await said("who owns pricing?", retriever) == "Bookings owns pricing. Reach them in #bookings."
    assert await said("who owns gateway?", retriever) == "Payments owns gateway."


async def test_dependencies_are_those_that_the_company_states_and_a_doubt_where_it_states_none(
    retriever: Retriever,
) -> None:
    assert await said("what depends on pricing?", retriever) == "gateway and shop call pricing."
    assert await said("what depends on ledger?", retriever) == "gateway calls ledger."
    assert await said("what does gateway depend on?", retriever) == "gateway calls ledger and pricing."
    assert await said("what depends on bookings?", retriever) == "gateway and shop call Bookings."
    for unstated in ("what depends on orders-db?", "what depends on shop?", "what does seats depend on?"):
        answer = await asked(unstated, retriever)
        assert answer is not None
        assert answer.tentative
        assert "states no dependency" in answer.text


async def test_an_owner_is_cited_to_where_it_stands(retriever: Retriever) -> None:
    answers = [await asked(f"who owns {name}?", retriever) for name in ("pricing", "seats")]
    titles = [answer.citations[0].title for answer in answers if answer is not None]
    assert titles == ["plumbline.yaml", "CODEOWNERS"]


async def test_people_who_take_turns_are_told_with_the_end_of_the_turn_and_who_is_next(retriever: Retriever) -> None:
    told = await said("who is on call for payments?", retriever)
    assert told == "On call for Payments: Asha until 2026-03-23 12:00 UTC, then Mateo."
    assert await said("who is on call for bookings?", retriever) == "On call for Bookings: Priya first, then Jonas."


async def test_where_no_team_is_named_the_on_call_of_each_is_told(retriever: Retriever) -> None:
    assert await said("who is on call?", retriever) == "Bookings: Priya first, then Jonas. Payments: Asha."


async def test_who_is_on_call_is_told_as_of_the_day_that_is_asked_about(retriever: Retriever) -> None:
    told = await said("who is on call for payments on Tuesday?", retriever)
    assert told == "On call for Payments on Tuesday 2026-03-24: Mateo."


async def test_changes_are_told_newest_first_each_with_its_record(retriever: Retriever) -> None:
    answer = await asked(
        "what changed in pricing today?", retriever, [Deployments(change(3), change(1), change(2, "seats"))]
    )
    assert answer is not None
    assert [citation.title for citation in answer.citations] == ["C1", "C3"]
    assert "deploy of pricing by Ada: version 1" in answer.text


async def test_more_changes_than_are_shown_are_counted(retriever: Retriever) -> None:
    changes = Deployments(*(change(number) for number in range(1, MAX_SHOWN + 3)))
    assert "2 earlier changes of pricing" in await said("what changed in pricing today?", retriever, changes)


@every_case(
    ("service", "changed", "told"),
    [
        ("shop", "pricing", True),
        ("shop", "seats", True),
        ("gateway", "ledger", True),
        ("pricing", "gateway", False),
        ("pricing", "shop", False),
    ],
)
async def test_of_a_service_that_nobody_changed_the_changes_of_what_it_depends_on_are_told(
    service: str, changed: str, told: bool, retriever: Retriever
) -> None:
    text = await said(f"what changed in {service} today?", retriever, Deployments(change(1, changed)))
    assert f"No change of {service} is recorded" in text
    assert (f"What {service} depends on was changed:" in text) == told
    assert (f"deploy of {changed} by Ada" in text) == told


async def test_that_nothing_changed_is_not_said_for_sure_while_a_system_cannot_be_read(retriever: Retriever) -> None:
    assert "No change of pricing" in await said("what changed in pricing today?", retriever, Deployments())
    answer = await asked("what changed in pricing today?", retriever, [Deployments(), Broken()])
    assert answer is not None
    assert answer.tentative
    assert "broken" in answer.note


async def test_a_misspelt_name_is_told_of_with_a_hedge(retriever: Retriever) -> None:
    answer = await asked("who owns pricng?", retriever)
    assert answer is not None
    assert answer.tentative
    assert "Bookings owns pricing" in answer.text


async def test_a_short_word_that_is_not_understood_is_named_beside_who_is_on_call(retriever: Retriever) -> None:
    answer = await asked("whos on call for pricing rn", retriever)
    assert answer is not None
    assert answer.tentative
    assert answer.text.startswith("On call for Bookings (owner of pricing)")
    assert answer.note == "I did not understand “rn”."


async def test_a_thing_that_only_one_team_claims_is_its_own_with_a_hedge(retriever: Retriever) -> None:
    answer = await asked("who owns the fare tables?", retriever)
    assert answer is not None
    assert answer.tentative
    assert "Bookings" in answer.text
    assert answer.citations[0].quote == "pricing, and the fare tables"
    assert await asked("who owns the card terminals?", retriever) is None


async def test_a_page_is_told_with_its_owner_to_those_who_may_read_it(retriever: Retriever) -> None:
    answer = await asked("who looks after the page about PricingSlow?", retriever)
    assert answer is not None
    assert answer.text == "The page “PricingSlow” belongs to Bookings. Reach them in #bookings."
    assert answer.citations[0].document_id == "runbooks/PricingSlow"
    assert not answer.tentative
    assert await asked("who looks after the page about GatewayDown?", retriever) is None


async def test_code_is_told_with_the_rule_that_names_its_owner(retriever: Retriever) -> None:
    answer = await asked("who owns the code in src/fares/table.py?", retriever)
    assert answer is not None
    assert answer.text == "The code in `src/fares/table.py` belongs to Bookings."
    assert (answer.citations[0].title, answer.citations[0].quote) == ("CODEOWNERS", "/src/fares/ bookings")
    assert await asked("who owns the code in src/other/table.py?", retriever) is None


async def test_a_runbook_is_told_to_those_who_may_read_it(retriever: Retriever) -> None:
    assert "“PricingSlow”" in await said("what is the runbook of PricingSlow?", retriever)
    assert await asked("what is the runbook of GatewayDown?", retriever) is None
    private = replace(EVERYBODY, readers=frozenset({PUBLIC, "channel:payments-private"}))
    assert await asked("what is the runbook of GatewayDown?", retriever, audience=private) is not None


@pytest.mark.parametrize(
    "text", ["who owns pricing?", "who is on call for payments?", "what changed in pricing today?"]
)
async def test_where_outsiders_read_along_nothing_is_told_of_the_workspace(text: str, retriever: Retriever) -> None:
    assert await asked(text, retriever, [Deployments(change(1))], Audience(frozenset({"channel:guests"}))) is None
