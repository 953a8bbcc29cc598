"""An answer in Teams: cited sentences, or an honest “I don’t know”."""

from __future__ import annotations

from typing import Any

from adapters.teams.elements import (
    MAX_SUMMARY,
    ROOMS,
    SPACE,
    Card,
    Element,
    Room,
    Run,
    button,
    card,
    container,
    dotted,
    heading,
    line,
    listing,
    prose,
    run,
    titled,
)
from core.answering.answer import Answer, Citation, Sentence
from core.model.badge import Badge
from core.model.messages import ASK, CONFLICTING, TENTATIVE, Verdict

DONT_KNOW = "I don’t know: nothing that I may show here answers this."
NEAREST = "I don’t know, this is the nearest that I have:"

SMALL: dict[str, Any] = {"size": "Small", "isSubtle": True}
MAX_MARKERS = 5  # citation markers after one sentence
MAX_CONTACTS = 3


def answer_card(answer: Answer, room: Room) -> Card:
    return _abstention(answer, room) if answer.abstained else _cited_answer(answer, room)


def spoken(answer: Answer) -> str:
    """The sentences of an answer as plain text: what is streamed before its card. More sentences only add to it."""
    return "\n".join(_plain_sentence(sentence) for sentence in answer.shown)


def footer_card(answer: Answer, room: Room) -> Card:
    """Return the card that stands below the streamed sentences of an answer."""
    return card([*_tentative(answer), *_below(answer, room)], _buttons(answer), spoken(answer))


def _plain_sentence(sentence: Sentence) -> str:
    said = "".join(each["text"] for each in prose(sentence.text, ROOMS[0].characters))
    return " ".join([said, *(f"[{number}]" for number in sentence.citations[:MAX_MARKERS])])


def _cited_answer(answer: Answer, room: Room) -> Card:
    urls = {citation.number: citation.deep_link for citation in answer.citations}
    sentences = listing(answer.shown, room, "sentences", lambda sentence: _sentence(sentence, urls, room))
    summary = " ".join(sentence.text for sentence in answer.shown)
    return card([*_tentative(answer), *sentences, *_below(answer, room)], _buttons(answer), summary)


def _tentative(answer: Answer) -> list[Element]:
    return line([run(TENTATIVE if answer.tentative else "", MAX_SUMMARY, **SMALL)])


def _below(answer: Answer, room: Room) -> list[Element]:
    """Return the contradictions, the badge, and the sources."""
    contradicting = [source for conflict in answer.conflicts for source in conflict.sources]
    return [
        *titled(
            f"⚠️ {CONFLICTING}",
            listing(contradicting, room, "sources", lambda source: [*_source(source, room), *_quote(source, room)]),
        ),
        *_footnote(answer),
        container(
            titled("Sources", listing(answer.citations, room, "sources", lambda source: _source(source, room))),
            separator=True,
            spacing="Medium",
        ),
    ]


def _abstention(answer: Answer, room: Room) -> Card:
    said = NEAREST if answer.citations else DONT_KNOW
    nearest = listing(answer.citations, room, "documents", lambda source: _nearest(source, room))
    names = " · ".join(contact.text for contact in answer.contacts[:MAX_CONTACTS])
    asked = line([run(f"{ASK} {names}" if names else "", room.characters, size="Small")])
    return card([heading(said), *nearest, *asked, *_footnote(answer)], _buttons(answer), said)


def _sentence(sentence: Sentence, urls: dict[int, str], room: Room) -> list[Element]:
    markers: list[Run] = []
    for number in sentence.citations[:MAX_MARKERS]:
        markers += [SPACE, run(f"[{number}]", 10, url=urls.get(number, ""), color="Accent", size="Small")]
    return line([*prose(sentence.text, room.characters), *markers])


def _source(citation: Citation, room: Room) -> list[Element]:
    updated = f"updated {citation.updated_at:%Y-%m-%d}" if citation.updated_at else ""
    number = run(f"[{citation.number}]", 12, size="Small")
    return line([number, SPACE, *dotted([_title(citation, room)], [run(updated, 30, **SMALL)], [_staleness(citation)])])


def _nearest(citation: Citation, room: Room) -> list[Element]:
    titled = dotted([_title(citation, room)], [_staleness(citation)])
    return [*line([run("•", 1), SPACE, *titled]), *_quote(citation, room)]


def _quote(citation: Citation, room: Room) -> list[Element]:
    return line(prose(citation.quote, room.characters, **SMALL), "None")


def _staleness(citation: Citation) -> Run:
    return run(f"⚠️ {citation.staleness}" if citation.staleness else "", 60, size="Small")


def _title(citation: Citation, room: Room) -> Run:
    title = " › ".join(dict.fromkeys(filter(None, (citation.title, citation.heading))))
    return run(title, min(room.characters, 200), url=citation.deep_link, size="Small")


def _footnote(answer: Answer) -> list[Element]:
    """The badge with what it rests on, and the note."""
    return [*_badge_line(answer.badge), *line([run(answer.note, MAX_SUMMARY, **SMALL)])]


def _badge_line(badge: Badge | None) -> list[Element]:
    return line([run(badge.text, 80, weight="Bolder", size="Small")]) if badge is not None else []


def _buttons(answer: Answer) -> list[Element]:
    """An answer that is no prediction has nothing to be judged: then only a person can be asked."""
    judged = (Verdict.HELPFUL, Verdict.WRONG) if answer.prediction_id else ()
    subject = answer.prediction_id or answer.question_id
    why = (Verdict.WHY_ANSWER,) if answer.prediction_id else ()
    return [button(verdict, subject) for verdict in (*judged, Verdict.ASK_A_PERSON, *why)]
