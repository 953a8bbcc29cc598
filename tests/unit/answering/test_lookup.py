from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from core.answering.lookup import Fact, Lookup, Names, is_over, known_services, lookup, period
from core.model.conversation import Speaker, Turn
from core.model.team import Team
from core.ports import TimeWindow
from tests.cases import every_case

NOW = datetime(2026, 3, 18, 12, 0, tzinfo=UTC)  # a Wednesday
MIDNIGHT = NOW.replace(hour=0)
DAY = timedelta(days=1)
TEAMS = (
    Team("bookings", "Bookings", services=frozenset({"booking-api", "pricing"}), on_call=("Priya Ramanathan",)),
    Team("payments", "Payments", services=frozenset({"payment-gateway"}), aliases=("billing",)),
)
NAMES = Names(known_services(TEAMS, {"pricing": ("flags",)}), TEAMS, frozenset({"PricingSlow"}))


def on_call(service: str = "", team: str = "", *, after: timedelta) -> Lookup:
    return Lookup(Fact.ON_CALL, service, team, window=TimeWindow(NOW + after, NOW + after))


def looked_up(question: str, *before: str) -> Lookup | None:
    return lookup(question, [Turn(Speaker.PERSON, each) for each in before], NAMES, NOW)


@every_case(
    ("question", "expected"),
    [
        ("Who owns booking-api?", Lookup(Fact.OWNER, service="booking-api")),
        ("what depends on booking-api?", Lookup(Fact.CALLERS, service="booking-api")),
        ("which services depend on pricing", Lookup(Fact.CALLERS, service="pricing")),
        ("what depends on orders-db?", Lookup(Fact.CALLERS, claimed="orders-db")),
        ("what calls booking-api?", Lookup(Fact.CALLERS, service="booking-api")),
        ("who is on call for the shop?", Lookup(Fact.ON_CALL, claimed="shop")),
        ("whom do I page for opensearch?", Lookup(Fact.ON_CALL, claimed="opensearch")),
        ("who's on call for translations", Lookup(Fact.ON_CALL, claimed="translations")),
        ("whos oncall for payments", Lookup(Fact.ON_CALL, team="payments")),
        ("what does booking-api depend on?", Lookup(Fact.CALLEES, service="booking-api")),
        ("dependencies of pricing?", Lookup(Fact.CALLEES, service="pricing")),
        ("where do dependencies of npm come from?", None),
        ("which team does booking api belong to", Lookup(Fact.OWNER, service="booking-api")),
        ("Wer ist der Eigentümer von pricing?", Lookup(Fact.OWNER, service="pricing")),
        ("who is on call for billing?", Lookup(Fact.ON_CALL, team="payments")),
        ("who is on call next for the payments team?", Lookup(Fact.ON_CALL, team="payments", later=True)),
        ("who do I page for payment-gateway?", Lookup(Fact.ON_CALL, service="payment-gateway")),
        ("is pricing in an incident?", Lookup(Fact.INCIDENTS, service="pricing")),
        ("what is the runbook of PricingSlow?", Lookup(Fact.RUNBOOK, alert="PricingSlow")),
        ("runbook for alert KubePodCrashLooping", Lookup(Fact.RUNBOOK, alert="KubePodCrashLooping")),
        ("any recent deploys of flags?", Lookup(Fact.CHANGES, service="flags")),
        ("who owns bookng-api?", Lookup(Fact.OWNER, service="booking-api", respelt=(("bookng-api", "booking-api"),))),
        (
            "who is on cal for paymnts?",
            Lookup(Fact.ON_CALL, team="payments", respelt=(("cal", "call"), ("paymnts", "payments"))),
        ),
        ("who looks after the booking api?", Lookup(Fact.OWNER, service="booking-api")),
        ("who can I call when pricing is down?", Lookup(Fact.ON_CALL, service="pricing")),
        ("is Priya on call?", Lookup(Fact.ON_CALL, team="bookings")),
        ("who is on call right now?", Lookup(Fact.ON_CALL)),
        ("Qui est le propriétaire de pricing ?", Lookup(Fact.OWNER, service="pricing")),
        ("¿Quién está de guardia para payments?", Lookup(Fact.ON_CALL, team="payments")),
        ("Was hat sich gestern geändert?", Lookup(Fact.CHANGES, window=TimeWindow(MIDNIGHT - DAY, MIDNIGHT))),
    ],
)
def test_a_question_about_a_known_name_is_looked_up(question: str, expected: Lookup) -> None:
    assert looked_up(question) == expected


@every_case(
    "question",
    [
        "how do I change who is on call for payments?",
        "can I release pricing on Friday?",
        "pricing is down",
        "what is the release process of pricing?",
        "is there a change freeze today?",
        "who can grant a freeze exemption?",
        "what does pricing change?",
        "who is on call for payments and pricing?",
        "what changed?",
        "what is the runbook of pricing?",
    ],
)
def test_a_question_that_says_anything_else_is_left_to_the_documents(question: str) -> None:
    assert looked_up(question) is None


@every_case(
    ("question", "thing"),
    [
        ("who owns booking-ui?", "booking-ui"),
        ("who runs Vault?", "Vault"),
        ("whose job are the certificates at the edge?", "certificates edge"),
        ("who looks after the wiki page about canaries?", "wiki page canaries"),
        ("who owns the page Canary stages?", "page Canary stages"),
        ("which team handles the build cache", "build cache"),
        ("who do I ask about Kafka brokers?", "Kafka brokers"),
        ("wem gehört Vault?", "Vault"),
        ("who owns the booking-api runbook?", "booking-api runbook"),  # not who owns the service
    ],
)
def test_the_owner_of_a_thing_without_a_known_name_is_asked_for_by_its_words(question: str, thing: str) -> None:
    assert looked_up(question) == Lookup(Fact.OWNER, claimed=thing)


@every_case(
    ("question", "unread"),
    [
        ("whos on call for pricing rn", "rn"),
        ("thx, who's on call for pricing pls", "thx pls"),
        ("wer hat Bereitschaft für pricing ggf", "ggf"),
    ],
)
def test_short_words_that_are_not_understood_leave_a_call_for_a_known_name(question: str, unread: str) -> None:
    assert looked_up(question) == Lookup(Fact.ON_CALL, service="pricing", unread=unread)


@every_case(
    "question",
    [
        "who is on call for the pricing database",  # another thing than pricing
        "what is the on call pay for pricing",
        "how do I swap my on call for pricing",
        "is pricing down rn",
    ],
)
def test_other_words_leave_even_a_known_name_to_the_documents(question: str) -> None:
    assert looked_up(question) is None


def test_a_follow_up_repeats_no_word_that_was_not_understood() -> None:
    found = looked_up("and tomorrow?", "whos on call for pricing rn")
    assert found is not None
    assert (found.fact, found.service, found.unread) == (Fact.ON_CALL, "pricing", "")


def test_a_page_that_somebody_gets_is_a_call() -> None:
    assert looked_up("who gets the page for pricing?") == Lookup(Fact.ON_CALL, service="pricing")


def test_a_pronoun_takes_the_name_of_the_earlier_question() -> None:
    assert looked_up("and who is on call there?", "who owns pricing?") == Lookup(Fact.ON_CALL, service="pricing")


@every_case(
    ("question", "before", "expected"),
    [
        ("and payment-gateway?", "who owns pricing?", Lookup(Fact.OWNER, service="payment-gateway")),
        ("who is on call?", "who owns pricing?", Lookup(Fact.ON_CALL, service="pricing")),
        ("and today?", "what changed in pricing?", Lookup(Fact.CHANGES, "pricing", window=TimeWindow(MIDNIGHT, NOW))),
        ("and payment-gateway?", "how do I deploy pricing?", None),
        ("and next week?", "who is on call for payments?", on_call(team="payments", after=7 * DAY)),
        ("what about tomorrow?", "who is on call for pricing?", on_call("pricing", after=DAY)),
        ("and next week?", "what changed in pricing?", None),
    ],
)
def test_what_a_follow_up_leaves_out_is_what_was_asked_before(
    question: str, before: str, expected: Lookup | None
) -> None:
    assert looked_up(question, before) == expected


def test_a_follow_up_follows_the_last_question_that_was_answered() -> None:
    asked, replied = Turn(Speaker.PERSON, "who owns pricing?"), Turn(Speaker.PLUMBLINE, "Bookings owns pricing.")
    failed = (Turn(Speaker.PERSON, "how do I bend it?"), Turn(Speaker.PLUMBLINE, ""))
    answered = (Turn(Speaker.PERSON, "how do I deploy it?"), Turn(Speaker.PLUMBLINE, "With a form."))
    owner = Lookup(Fact.OWNER, service="payment-gateway")
    assert lookup("and payment-gateway?", [asked, replied, *failed], NAMES, NOW) == owner
    assert lookup("and payment-gateway?", [asked, replied, *answered], NAMES, NOW) is None


@pytest.mark.parametrize(
    ("question", "start"),
    [
        ("who is on call for pricing on Friday?", MIDNIGHT + 2 * DAY),
        ("who was on call for pricing on Friday?", MIDNIGHT - 5 * DAY),
        ("who is on call for pricing tomorrow?", NOW + DAY),
        ("who is on call for pricing next week?", NOW + 7 * DAY),
    ],
)
def test_a_day_of_an_on_call_is_the_coming_one_unless_it_is_said_to_be_past(question: str, start: datetime) -> None:
    found = looked_up(question)
    assert found is not None
    assert found.window is not None
    assert found.window.start == start


@every_case(
    ("service", "time", "start"),
    [
        ("check-in", "today", MIDNIGHT),
        ("check-in", "in the last 2 hours", NOW - timedelta(hours=2)),
        ("sign-on", "yesterday", MIDNIGHT - DAY),
        ("roll-over", "this week", MIDNIGHT - MIDNIGHT.weekday() * DAY),
    ],
)
def test_a_name_that_ends_like_a_preposition_keeps_it_before_a_time(service: str, time: str, start: datetime) -> None:
    names = Names(frozenset({"check-in", "sign-on", "roll-over"}))
    found = lookup(f"what changed in {service} {time}?", [], names, NOW)
    assert found is not None
    assert found.service == service
    assert found.window is not None
    assert found.window.start == start


def test_only_the_clause_that_asks_decides() -> None:
    pasted = "ERROR deploy of pricing failed, owner unknown. Who is on call for payments?"
    assert looked_up(pasted) == Lookup(Fact.ON_CALL, team="payments")


@every_case(
    ("text", "start", "end"),
    [
        ("today", MIDNIGHT, NOW),
        ("yesterday", MIDNIGHT - DAY, MIDNIGHT),
        ("since yesterday", MIDNIGHT - DAY, NOW),
        ("in the last 3 hours", NOW - timedelta(hours=3), NOW),
        ("since 09:30", NOW.replace(hour=9, minute=30), NOW),
        ("since 23:30", NOW.replace(hour=23, minute=30) - DAY, NOW),
        ("on Monday", MIDNIGHT - 2 * DAY, MIDNIGHT - DAY),
        ("since 2026-03-01", datetime(2026, 3, 1, tzinfo=UTC), NOW),
        ("on 16 March", MIDNIGHT - 2 * DAY, MIDNIGHT - DAY),
        ("on December 31st", datetime(2025, 12, 31, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)),
    ],
)
def test_a_time_is_read_as_a_period_in_utc(text: str, start: datetime, end: datetime) -> None:
    window, rest = period(f"what changed {text} there", NOW)
    assert window is not None
    assert (window.start, window.end) == (start, end)
    assert rest.split() == ["what", "changed", "there"]


@pytest.mark.parametrize("text", ["no time at all", "on 31 February", "since 25:10", "on 2031-01-01"])
def test_what_is_no_time_in_the_past_is_no_period(text: str) -> None:
    assert period(text, NOW) == (None, text)


@every_case(
    ("text", "over"),
    [
        ("In 2026 it lasts from 17 July 00:00 to 27 July 07:00. (2025: 18 – 28 July.)", True),
        ("The audit of 2025 runs from 3 March until 14 March.", True),
        ("Frozen from 17 July 2025 to 27 July 2025", True),
        ("24 December 12:00 to 2 January 07:00", False),  # every year
        ("In 2026 from 17 July to 27 July.\nSmaller ones: 24 December to 2 January.", False),  # one of them comes back
        ("24 December to 2 January, at most 1024 requests; code 0000, ²⁰²⁴", False),
        ("Frozen from 17 July 2025 to 27 July 2025, port 8080 too", True),
        ("From Friday 14:00 until Monday 07:00", False),
        ("On 8 November 2025 a flush exhausted the pool.", False),  # a day on which something happened
        ("In 2026 from 20 November to 30 November", False),
        ("From 1 March 2027 to 3 March 2027", False),
    ],
)
def test_a_span_of_dates_is_over_after_its_last_day_in_a_stated_year(text: str, over: bool) -> None:
    assert is_over(text, datetime(2026, 11, 28, tzinfo=UTC)) is over
