from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from core.incidents.posted_alerts import addressed, awaits_bot, format_adoption, is_same, joined, offer, twin_of
from core.model.alert import Adoption, AlertDelivery, AlertStatus, Choice, Posted, PostedKind, Recognised
from core.model.conversation import MessageReference, Place, Platform
from core.model.incident import Incident, IncidentState
from tests.samples import alert, with_fields
from tests.samples import incident as sample_incident

CHANNEL = Place(Platform.SLACK, "C0ALERTS")
THREAD = Place(Platform.SLACK, "C0ALERTS", "1.0")
ONE = replace(alert(), name="CheckoutLatencyHigh", summary="", labels={"env": "prod"}, url="")


def incident(source: str, place: Place = CHANNEL, **fields: object) -> Incident:
    usual = {"title": ONE.name, "alerts": (ONE,), "place": place, "message": None}
    return sample_incident(**(usual | fields | {"source": source}))


POSTED = incident("chat:B0BOT", THREAD)
WEBHOOK = incident("alertmanager")


def of_alert(source: str, title: str = ONE.name, **fields: object) -> Incident:
    return incident(source, title=title, alerts=(replace(ONE, **fields),))


def test_an_alert_of_two_senders_is_one_incident_unless_a_channel_a_name_or_a_label_says_otherwise() -> None:
    longer = incident("grafana", title="Prod: checkoutlatencyhigh (2 firing)", alerts=())
    linked = of_alert("grafana", name="Other", title="Other", url="https://g.example/a/17")
    address = of_alert("chat:B0BOT", url="https://g.example/a/17")
    no_number = of_alert("grafana", name="Other", title="Other", url="https://g.example/")
    cases = {
        "a webhook and a bot": (POSTED, WEBHOOK, True),
        "two bots": (POSTED, incident("chat:B0OTHER", THREAD), True),
        "two webhooks": (incident("grafana"), WEBHOOK, False),
        "one sender": (POSTED, POSTED, False),
        "an incident that ended": (POSTED, replace(WEBHOOK, state=IncidentState.RESOLVED), False),
        "another channel": (POSTED, incident("alertmanager", Place(Platform.SLACK, "C0OTHER")), False),
        "a title that goes on": (POSTED, longer, True),
        "another name": (POSTED, of_alert("grafana", name="PaymentsDown", title="PaymentsDown"), False),
        "a name of few letters": (
            with_fields(POSTED, title="down", alerts=()),
            replace(longer, title="db down"),
            False,
        ),
        "the same address": (address, linked, True),
        "the same address without a number": (of_alert("chat:B0BOT", url="https://g.example/"), no_number, False),
        "another label": (POSTED, of_alert("grafana", labels={"env": "staging"}), False),
        "another severity": (POSTED, of_alert("grafana", labels={"env": "prod", "severity": "warning"}), True),
        "another service": (with_fields(POSTED, service="cart"), with_fields(WEBHOOK, service="checkout"), False),
        "a service that one knows": (with_fields(POSTED, service=""), with_fields(WEBHOOK, service="checkout"), True),
    }
    wrong = [name for name, (one, other, expected) in cases.items() if is_same(one, other) is not expected]
    assert wrong == []


def test_the_twin_is_the_latest_open_incident_of_the_same_alert() -> None:
    later = replace(WEBHOOK, id="later", opened_at=WEBHOOK.opened_at + timedelta(minutes=5))
    assert twin_of(POSTED, [later, WEBHOOK]) == later
    assert twin_of(POSTED, [replace(WEBHOOK, state=IncidentState.RESOLVED)]) is None


def test_a_webhook_takes_over_the_incident_of_a_bot_and_its_place() -> None:
    opened = with_fields(WEBHOOK, group_key="group", service="checkout", labels={"team": "shop"})
    delivery = AlertDelivery("key", "alertmanager", "group", (ONE,), WEBHOOK.opened_at)
    taken = joined(with_fields(POSTED, labels={"env": "prod"}, service=""), delivery, opened)
    assert (taken.source, taken.group_key, taken.service) == ("alertmanager", "group", "checkout")
    assert taken.labels == {"env": "prod", "team": "shop"}
    assert (taken.alerts, taken.alert_count, taken.placement) == ((ONE,), 1, POSTED.placement)


def test_a_webhooks_incident_without_a_message_moves_into_the_thread_of_the_bot() -> None:
    delivery = AlertDelivery("key", "chat:B0BOT", "group", (ONE,), POSTED.opened_at, at=THREAD)
    assert awaits_bot(WEBHOOK)
    moved = joined(WEBHOOK, delivery, POSTED)
    assert (moved.placement.place, moved.source) == (THREAD, "alertmanager")
    shown = WEBHOOK.with_placement(message=MessageReference(CHANNEL, "2.0"))
    assert joined(shown, delivery, POSTED) == shown
    assert not any(map(awaits_bot, (moved, shown, POSTED)))


def recognised(kind: PostedKind = PostedKind.ALERT, status: AlertStatus = AlertStatus.FIRING) -> Recognised:
    read = replace(ONE, status=status, fingerprint="read")
    return Recognised(
        kind, "shape", ONE.name, AlertDelivery("1", "chat:B0BOT", "read", (read,), ONE.starts_at), ("read",)
    )


def posted(place: Place = CHANNEL, sender: str = "Grafana") -> Posted:
    return Posted(place, "1.0", "B0BOT", sender, ONE.starts_at, (ONE.name,))


def test_a_message_is_one_alert_of_its_group_and_a_reply_changes_only_the_state() -> None:
    new = addressed(posted(), recognised(), None, "key")
    assert (new.group_key, new.alerts[0].fingerprint, new.at) == ("key", "key", THREAD)
    known = replace(POSTED, group_key="group", alerts=(replace(ONE, fingerprint="first", summary="kept"),))
    ended = recognised(status=AlertStatus.RESOLVED)
    reply = addressed(posted(THREAD), ended, known, "key")
    assert reply.group_key == "group"
    assert reply.alerts == (replace(known.alerts[0], status=AlertStatus.RESOLVED),)
    edit = addressed(posted(), ended, known, "key")
    assert edit.alerts == (replace(ended.delivery.alerts[0], fingerprint="first"),)


def test_the_offer_counts_the_alerts_of_each_sender_and_says_what_is_left_alone() -> None:
    chatter = (posted(sender="Polly"), recognised(PostedKind.OTHER))
    assert offer(1, [chatter]) is None
    notice = offer(3, [(posted(), recognised()), (posted(), recognised()), chatter])
    assert notice is not None
    assert "I read the last 3 messages.\n• Alerts: Grafana 2\n• Left alone: 1 message of Polly\n" in notice.text


def test_the_choices_of_a_channel_are_told_as_they_are() -> None:
    assert format_adoption(Adoption()) == []
    told = {
        is_on: format_adoption(Adoption(is_on, (Choice("a", "Grafana", True), Choice("b", "Polly", False))))
        for is_on in (True, False)
    }
    assert "I answer them in their threads" in told[True][0]
    assert "I leave them alone" in told[False][0]
    assert told[True][1:] == told[False][1:] == ["• Grafana: alerts", "• Polly: no alerts"]
