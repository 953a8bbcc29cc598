"""What people say first: who the bot is, how things stand, orders, a pasted log, and what could hurt if it were wrong."""

from __future__ import annotations

import pytest

from core.answering.questions import CHANGES_NOTHING
from core.incidents.readable import NONE_OPEN
from handlers.questions.show_home import ABOUT, HELLO, WHICH_SERVICE
from tests.scenario.first_day.conftest import CHANGE
from tests.scenario.first_day.pastes import PASTES, Paste
from tests.scenario.first_day.sample import SampleBot

pytestmark = pytest.mark.asyncio(loop_scope="module")

STATE_AND_SMALL_TALK = [
    ("hello", (HELLO,)),
    ("who are you", (HELLO,)),
    ("are you a bot?", (HELLO,)),
    ("what can you do?", (ABOUT, "rca …")),
    ("thanks, that worked!", ("You’re welcome.",)),
    ("is anything broken right now?", (NONE_OPEN,)),
    ("any open incidents?", (NONE_OPEN,)),
    ("are we down?", (NONE_OPEN,)),
    ("the site is slow", (NONE_OPEN, WHICH_SERVICE)),
    ("is payment-gateway ok?", ("No open incident", "payment-gateway")),
    ("who is on call for payments?", ("On call for Payments", "Asha Brandt")),
    ("whos oncall for delivery", ("On call for Delivery", "Hana Petrov")),
    ("who is on call for shop?", ("Closest match", "On call for Storefront", "the shop in the browser")),
    ("who do I page for opensearch", ("Closest match", "On call for Storefront", "OpenSearch cluster")),
    ("what calls payment-gateway?", ("booking-api and refunds-worker call payment-gateway",)),
    ("may I deploy on a friday", ("Closest matches", "slipway promotes nothing beyond staging")),
    ("how do i run a database migration for seat-inventory", ("Closest matches\n**Database migrations",)),
    ("status", ("passages indexed", "handbook: 60 documents")),
]
ORDERS = [
    ("restart payment-gateway please", "Closest matches"),
    ("can you roll back booking-api?", "slipway rollback SERVICE"),
    ("rollback pricing", "slipway rollback SERVICE"),
    ("please delete the log on node n-17", "Runbook: node under disk pressure"),
    ("drain runner barge-07 please", "drydock runner drain"),
    ("promote booking-api to 25", "slipway promote booking-api --to 25"),
    ("scale seat-inventory to 10 replicas", "I don’t know"),
]
COULD_HURT = [  # the clause that keeps somebody from doing harm
    ("can I use pg_ctl promote on pg-booking?", "Do not use `pg_ctl promote` by hand"),
    ("should I restart etcd when pg-booking has no leader?", "Do not restart the etcd members"),
    ("may I delete parked refunds?", "Do not delete them"),
    ("can I run two drains of deferred captures together?", "Never run two drains together"),
    ("can I delete the new signing key in a 401 storm?", "would become permanently invalid"),
    ("can I restart booking-api when checkout times out?", "do not restart booking-api"),
    ("can I skip the canary in a hotfix?", "staging can be skipped and the canary can not"),
    ("can I drain a node named with pg?", "leave them alone"),
    ("can I raise the pool of payment-gateway above 40?", "Do not raise the pool above 40"),
    ("is it safe to flush the seat cache?", "Never run `FLUSHALL`"),
]


@pytest.mark.parametrize(("asked", "said"), STATE_AND_SMALL_TALK, ids=[asked for asked, _ in STATE_AND_SMALL_TALK])
async def test_small_talk_and_questions_about_the_state_are_answered_for_what_they_are(
    sample: SampleBot, asked: str, said: tuple[str, ...]
) -> None:
    told = await sample.told(asked)
    assert all(part in told for part in said)


@pytest.mark.parametrize(("ordered", "said"), ORDERS, ids=[ordered for ordered, _ in ORDERS])
async def test_whoever_orders_the_bot_to_act_is_told_that_it_does_not_and_how_people_do(
    sample: SampleBot, ordered: str, said: str
) -> None:
    told = await sample.told(ordered)
    assert told.startswith(CHANGES_NOTHING)
    assert said in told
    assert "[1]" in told, "a page is cited"


@pytest.mark.parametrize("service", ["payment-gateway", "booking-api", "check-in"])
async def test_how_something_is_done_with_a_service_is_answered_with_the_command_for_any(
    sample: SampleBot, service: str
) -> None:
    assert "slipway rollback SERVICE" in await sample.told(f"how do I roll back {service}?")


async def test_a_follow_up_in_the_box_of_the_channel_follows_the_answer_above_it(sample: SampleBot) -> None:
    assert "Payments owns payment-gateway" in await sample.told("who owns payment-gateway?")
    assert "Bookings owns pricing" in await sample.told("and pricing?")
    assert "On call for Bookings" in await sample.told("and who is on call for it?")


@pytest.mark.parametrize(("asked", "clause"), COULD_HURT, ids=[asked for asked, _ in COULD_HURT])
async def test_the_clause_that_forbids_stands_in_the_answer(sample: SampleBot, asked: str, clause: str) -> None:
    assert clause in await sample.told(asked)


@pytest.mark.parametrize("paste", PASTES, ids=[paste.name for paste in PASTES])
async def test_a_paste_leads_to_what_failed_to_its_page_and_to_the_owner(sample: SampleBot, paste: Paste) -> None:
    lead, _, rest = (await sample.told(paste.text)).partition("\n")
    assert lead.startswith("What failed: “")
    assert paste.failed in lead.partition("”")[0], "the most decisive line comes first"
    assert paste.page in rest
    assert (f"{paste.owner} owns " in lead) is bool(paste.owner)
    assert (CHANGE in lead) is (paste.name == "GitHub Actions")  # the only one of pricing, which was changed today


async def test_two_pastes_have_what_failed_beyond_their_first_six_thousand_characters() -> None:
    assert sum(paste.text.find(paste.failed) > 6_000 for paste in PASTES) == 2
