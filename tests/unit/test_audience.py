from __future__ import annotations

from core.model.conversation import (
    PUBLIC,
    Channel,
    Person,
    Place,
    Platform,
    channel_audience,
    person_audience,
    with_outsiders,
)
from core.model.incident import may_see_incident
from tests.samples import incident

VAULT = Channel("vault", {Platform.SLACK: "C0VAULT", Platform.CONSOLE: "vault"}, private=True)
HELP = Channel("help", {Platform.SLACK: "C0ASK"})
CHANNELS = (VAULT, HELP)


def test_a_channel_reads_what_is_public_and_what_is_shared_with_it_by_name_or_id() -> None:
    audience = channel_audience(Place(Platform.SLACK, "C0VAULT"), CHANNELS)
    assert audience.readers == {PUBLIC, "channel:vault", "channel:slack:C0VAULT"}


def test_a_channel_reads_nothing_that_is_shared_with_another() -> None:
    audience = channel_audience(Place(Platform.SLACK, "C0ASK"), CHANNELS)
    assert not audience.may_read(frozenset({"channel:vault"}))
    assert audience.may_read(frozenset({"channel:vault", "channel:help"}))


def test_the_same_id_on_another_platform_is_another_channel() -> None:
    audience = channel_audience(Place(Platform.TEAMS, "C0VAULT"), CHANNELS)
    assert not audience.may_read(frozenset({"channel:vault"}))
    assert not audience.may_read(frozenset({"channel:slack:C0VAULT"}))


def test_a_channel_that_nobody_named_reads_what_is_public_and_what_was_taken_from_it() -> None:
    audience = channel_audience(Place(Platform.SLACK, "C0OTHER"), CHANNELS)
    assert audience.readers == {PUBLIC, "channel:slack:C0OTHER"}


def test_a_thread_reads_what_its_channel_reads() -> None:
    channel, thread = Place(Platform.SLACK, "C0VAULT"), Place(Platform.SLACK, "C0VAULT", thread="17.1")
    assert channel_audience(thread, CHANNELS) == channel_audience(channel, CHANNELS)


def test_a_person_reads_what_is_public_and_what_is_shared_with_exactly_this_person() -> None:
    audience = person_audience(Person(Platform.SLACK, "U1", "Ines"))
    assert audience.readers == {PUBLIC, "person:slack:U1"}
    assert not audience.may_read(frozenset({"person:slack:U2"}))


def test_a_document_without_readers_is_read_by_nobody() -> None:
    assert not person_audience(Person(Platform.SLACK, "U1")).may_read(frozenset())


def test_what_is_said_in_a_channel_is_for_everybody_only_if_it_is_named_and_not_private() -> None:
    assert PUBLIC in channel_audience(Place(Platform.SLACK, "C0ASK"), CHANNELS).disclosed_to
    assert channel_audience(Place(Platform.SLACK, "C0VAULT"), CHANNELS).disclosed_to == {
        "channel:vault",
        "channel:slack:C0VAULT",
    }
    assert channel_audience(Place(Platform.SLACK, "C0OTHER"), CHANNELS).disclosed_to == {"channel:slack:C0OTHER"}


def test_what_is_said_in_a_direct_message_is_for_that_person() -> None:
    assert person_audience(Person(Platform.SLACK, "U1")).disclosed_to == {"person:slack:U1"}


def test_where_outsiders_read_along_nothing_public_is_read_and_nothing_becomes_public() -> None:
    audience = with_outsiders(channel_audience(Place(Platform.SLACK, "C0ASK"), CHANNELS))
    assert audience.readers == audience.disclosed_to == {"channel:help", "channel:slack:C0ASK"}


def test_an_incident_is_for_those_who_read_the_channel_that_it_was_posted_in() -> None:
    private = incident(place=Place(Platform.SLACK, "C0VAULT"))
    assert may_see_incident(channel_audience(Place(Platform.CONSOLE, "vault"), CHANNELS), private, CHANNELS)
    assert not may_see_incident(channel_audience(Place(Platform.SLACK, "C0ASK"), CHANNELS), private, CHANNELS)
    assert not may_see_incident(person_audience(Person(Platform.SLACK, "U1")), private, CHANNELS)


def test_a_message_that_stands_in_two_channels_shows_what_both_may_read_and_is_read_by_both() -> None:
    help_, vault = Place(Platform.SLACK, "C0ASK"), Place(Platform.SLACK, "C0VAULT")
    audience = incident(place=vault, also_in=(help_,)).placement.audience(CHANNELS)
    assert audience.readers == {PUBLIC}
    assert audience.disclosed_to == {
        PUBLIC,
        "channel:help",
        "channel:slack:C0ASK",
        "channel:vault",
        "channel:slack:C0VAULT",
    }
