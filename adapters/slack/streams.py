"""Streaming of answers in Slack: sentences are shown while the rest is still being checked.

https://docs.slack.dev/reference/methods/chat.startStream
"""

from __future__ import annotations

from dataclasses import dataclass

import structlog
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from adapters.slack.client import call, error_code
from adapters.slack.identity import BotIdentity
from adapters.slack.intents import metadata
from adapters.slack.mrkdwn import prose
from core.model.conversation import MessageReference, Place
from core.model.errors import ChatUnavailable, MessageNotFound
from core.model.messages import AnswerMessage, Message

# Slack's errors if it lacks the method, or the app the permission: streaming is then disabled.
NEVER = frozenset(
    {"unknown_method", "missing_scope", "not_allowed_token_type", "access_denied", "feature_not_enabled", "deprecated"}
)
SENTENCE = 900  # characters
MAX_OPEN = 1_000  # streams remembered; the oldest ones are abandoned

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Stream:
    intent: str
    sentences: tuple[str, ...]


class Streams:
    """The streams that this process began. A stream of another process is ended by editing its message."""

    def __init__(self, client: AsyncWebClient, identity: BotIdentity) -> None:
        self._client = client
        self._identity = identity
        self._open: dict[tuple[str, str], _Stream] = {}
        self._works = True  # until Slack refuses it

    async def begin(self, place: Place, message: Message, intent: str) -> MessageReference | None:
        """Stream a draft. Returns None for other messages, or if Slack does not stream. Raises MessageNotFound."""
        if not isinstance(message, AnswerMessage) or message.draft_for is None:
            return None
        if not self._works or place.thread is None:
            return None
        sentences = _sentences(message)
        try:
            started = await call(
                "chat.startStream",
                self._client.chat_startStream(
                    channel=place.channel,
                    thread_ts=place.thread,
                    recipient_user_id=message.draft_for.id,
                    recipient_team_id=(await self._identity()).team_id,
                    markdown_text=_text(sentences),
                ),
            )
        except ChatUnavailable as error:
            self._refused(error)
            return None
        reference = MessageReference(place, started["ts"])
        if len(self._open) >= MAX_OPEN:
            self._open.pop(next(iter(self._open)))
        self._open[place.channel, reference.message_id] = _Stream(intent, sentences)
        return reference

    async def go_on(self, reference: MessageReference, message: Message) -> bool:
        """Append the new part of a draft. Returns False if it does not continue the streamed text, or is no draft."""
        if not isinstance(message, AnswerMessage) or message.draft_for is None:
            return False
        key = (reference.place.channel, reference.message_id)
        stream, sentences = self._open.get(key), _sentences(message)
        if stream is None or sentences[: len(stream.sentences)] != stream.sentences:
            return False
        new = _text(sentences[len(stream.sentences) :])
        try:
            if new:
                await call(
                    "chat.appendStream",
                    self._client.chat_appendStream(channel=key[0], ts=key[1], markdown_text=f"\n\n{new}"),
                )
        except ChatUnavailable as error:
            self._refused(error)
            return False
        self._open[key] = _Stream(stream.intent, sentences)
        return True

    async def end(self, reference: MessageReference, *, begun_elsewhere: bool = False) -> None:
        """End the stream, so that the message can be edited. Does nothing if there is none."""
        key = (reference.place.channel, reference.message_id)
        stream = self._open.pop(key, None)
        if stream is None and not begun_elsewhere:
            return
        named = metadata(stream.intent) if stream is not None else None
        try:
            await call("chat.stopStream", self._client.chat_stopStream(channel=key[0], ts=key[1], metadata=named))
        except (ChatUnavailable, MessageNotFound) as error:
            # Slack ends a stream itself after some minutes; the edit that follows matters.
            log.info("stream had ended", reason=str(error))

    def _refused(self, error: ChatUnavailable) -> None:
        if error_code(error) in NEVER:
            self._works = False
            log.info("Slack does not stream here; answers are edited instead", reason=str(error))


def is_streaming(error: ChatUnavailable) -> bool:
    """Return whether a message could not be edited because it is still streaming."""
    return isinstance(error.__cause__, SlackApiError) and error_code(error) == "streaming_state_conflict"


def _sentences(message: AnswerMessage) -> tuple[str, ...]:
    return tuple(
        f"{prose(sentence.text, SENTENCE)} {''.join(f'[{number}]' for number in sentence.citations)}"
        for sentence in message.answer.shown
    )


def _text(sentences: tuple[str, ...]) -> str:
    """Return Markdown, in which an empty line ends a line."""
    return "\n\n".join(sentences)
