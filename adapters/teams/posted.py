"""Search for a post that may already exist in Teams, by its intent."""

from __future__ import annotations

import asyncio
import hashlib
import re
from dataclasses import replace
from datetime import datetime, timedelta

import structlog

from adapters.microsoft_graph.messages import ChatMessage
from adapters.teams.elements import Card, Element
from adapters.teams.history import TeamsHistory, Unreadable
from core.model.conversation import Place
from core.model.errors import ChatUnavailable, MessageNotFound
from core.ports import Clock

CARD = "application/vnd.microsoft.card.adaptive"
LENGTH = 32  # hexadecimal digits of an intent's digest


def marked(card: Card, intent: str) -> Card:
    """Return the card with its intent as the id of an element without an id."""
    body: list[Element] = list(card.content["body"])
    place = next(index for index, element in enumerate(body) if "id" not in element)
    body[place] = body[place] | {"id": _mark(intent)}
    return replace(card, content=card.content | {"body": body})


def is_for(message: ChatMessage, intent: str, app_id: str) -> bool:
    """Return whether this app posted the message for this intent.

    A card with the same id from another sender is not ours. Text with the id in one of our cards does not match: in
    JSON text, every quotation mark is preceded by a backslash.
    """
    cards = (each.content for each in message.attachments or () if each.contentType == CARD)
    element = re.compile(rf'"id"\s*:\s*"{_mark(intent)}"')
    return message.application_id == app_id and any(element.search(str(card)) for card in cards)


def _mark(intent: str) -> str:
    """Return a digest of fixed length, because an intent may be long and contain untrusted text."""
    return f"plumbline-{hashlib.sha256(intent.encode()).hexdigest()[:LENGTH]}"


DEADLINE = 10.0  # seconds per search, because the post waits for it
LOOKED_BACK = timedelta(days=7)  # a process that was down for longer posts again
GRAPH_OUTAGE_LIMIT = timedelta(
    minutes=1
)  # while Graph does not answer; after that, a duplicate is preferred to no post
MAX_DOUBTS = 10_000  # unsuccessful searches remembered; further ones do not wait

log = structlog.get_logger()


class PostedMessages:
    """Searches for our posts with Microsoft Graph.

    A channel is roughly sorted by the last reply in each thread, so only a page that is too old as a whole ends the
    search.
    """

    def __init__(self, history: TeamsHistory, clock: Clock) -> None:
        self._history = history
        self._clock = clock
        self._doubts: dict[str, datetime] = {}

    async def find(self, place: Place, intent: str) -> str | None:
        """Return the id of the message posted for this intent; None if there is none, or Graph cannot tell.

        Raises ChatUnavailable while Graph does not answer, for at most GRAPH_OUTAGE_LIMIT.
        """
        try:
            async with asyncio.timeout(DEADLINE):
                found = await self._search(place, intent)
        except MessageNotFound:
            found = None
        except Unreadable as error:
            log.info("teams cannot tell whether a message stands there", place=place.channel, reason=str(error))
            found = None
        except TimeoutError:
            return self._in_doubt(place, intent, ChatUnavailable("Microsoft Graph takes too long to answer."))
        except ChatUnavailable as error:
            return self._in_doubt(place, intent, error)
        self._doubts.pop(intent, None)
        return found

    async def _search(self, place: Place, intent: str) -> str | None:
        oldest = self._clock.now() - LOOKED_BACK
        async for page in self._history.newest(place):
            for message in page:
                if message.is_said and is_for(message, intent, self._history.app_id):
                    return message.id
            if page and all(message.createdDateTime < oldest for message in page):
                break
        return None

    def _in_doubt(self, place: Place, intent: str, error: ChatUnavailable) -> None:
        now = self._clock.now()
        left = (self._doubts.setdefault(intent, now) + GRAPH_OUTAGE_LIMIT - now).total_seconds()
        if left > 0 and len(self._doubts) <= MAX_DOUBTS:
            asked = error.retry_after  # may be an hour, which a message must not wait
            raise ChatUnavailable(str(error), None if asked is None else min(asked, left))
        del self._doubts[intent]
        log.warning("teams message may stand there twice", place=place.channel, reason=str(error))
