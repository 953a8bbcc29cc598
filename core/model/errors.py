"""All errors that the product raises on purpose. Operators read the docstrings."""

from math import ceil


class PlumblineError(Exception):
    """An anticipated failure. The message says what failed, where, and what to do."""


class ConfigurationError(PlumblineError):
    """A setting or a line of plumbline.yaml is missing or wrong. The bot does not start."""


class MalformedInput(PlumblineError):
    """A request, file or payload cannot be parsed. It was rejected; the sender has to correct it."""


class InputTooLarge(MalformedInput):
    """A request exceeds the size limit. It was rejected without being read to the end."""


class Unauthorized(PlumblineError):
    """A signature, token or secret is missing, wrong or too old. The request was rejected.

    `challenge` is the header WWW-Authenticate, which tells a program how to authenticate; empty if there is none.
    """

    def __init__(self, message: str, challenge: str = "") -> None:
        super().__init__(message)
        self.challenge = challenge


class Forbidden(PlumblineError):
    """A request came from the page of another site, or from somebody without the right to it. It was rejected."""


class TooManyRequests(PlumblineError):
    """A sender exceeds its rate limit. The request was rejected; it should be sent again later."""

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.retry_after = ceil(seconds)


class Unavailable(PlumblineError):
    """An external system did not answer, or refused temporarily. The step is retried.

    `retry_after` is the number of seconds that the system asked to wait, if it named one.
    """

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ChatUnavailable(Unavailable):
    """Slack, Teams or the local page did not accept a message. The post stays recorded and is retried."""


class ChatBusy(ChatUnavailable):
    """A chat asks to wait, or its rate limit is reached. Nothing was posted; the post is retried in its turn."""


class Undeliverable(PlumblineError):
    """A chat permanently refuses a message in this place. It is kept as a dead letter until an operator retries it."""


class ChatClosed(Undeliverable):
    """A chat takes no message there until somebody mends it: credentials, an installation, an archived channel.

    The message waits, and is posted once the chat takes messages again, without a command.
    """


class Withdrawn(PlumblineError):
    """A message was not posted, because what it answers was deleted or changed."""


class QuietNow(Unavailable):
    """A channel is in its quiet hours. Non-urgent messages are posted when they end."""


class MessageNotFound(PlumblineError):
    """The chat message to edit or to reply to was deleted."""


class SourceUnavailable(Unavailable):
    """A knowledge source could not be read. Its indexed documents are kept, and shown with their age."""


class ToolUnavailable(Unavailable):
    """A monitoring, log or change system could not be read. The investigation goes on without it and says so."""


class NotThere(ToolUnavailable):
    """A page of a monitoring, log or build system does not exist, no longer exists, or is hidden from the token."""


class NoFailedBuild(ToolUnavailable):
    """The build that a link leads to passed, is not finished, was cancelled, or has no log. The investigation says so."""


class ToolRefused(ToolUnavailable):
    """A monitoring, log or change system refused access: correct its token or permissions.

    The investigation says so.
    """


class IndexUnavailable(Unavailable):
    """The passage index cannot be opened or reached: another process has locked it, or the server is down."""


class ModelUnavailable(Unavailable):
    """The language model did not answer in time, is overloaded or is down. The evidence engine answers instead."""


class PromptTooLong(PlumblineError):
    """A prompt does not fit into the model's context. It was not sent; prompts are never truncated."""


class InvalidReply(PlumblineError):
    """The language model's reply has the wrong format, and repeated requests did not help."""


class StoreUnavailable(Unavailable):
    """The database did not answer, or is full. Nothing was written; the operation is retried."""


class Conflict(PlumblineError):
    """Two writers changed the same record. The second one reads it again and repeats its decision."""


class Deadlock(StoreUnavailable, Conflict):
    """Two writers waited for each other, and the database rolled this one back. It is repeated at once."""
