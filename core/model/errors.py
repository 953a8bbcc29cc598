"""Every error that Plumbline raises on purpose. The docstring of each is what an operator reads."""


class PlumblineError(Exception):
    """Something that Plumbline foresaw went wrong. The message says what, where, and what to do."""


class ConfigurationError(PlumblineError):
    """A setting or a line of plumbline.yaml is missing or wrong; the bot does not start with it."""


class MalformedInput(PlumblineError):
    """A request, file or payload cannot be understood. It was not accepted; the sender should mend it."""


class InputTooLarge(MalformedInput):
    """A request is over the size limit. It was not read to its end and not accepted."""


class Unauthorized(PlumblineError):
    """A signature, token or secret is missing, wrong or too old. Nothing was accepted."""


class Unavailable(PlumblineError):
    """An outside system did not answer, or refused for now. The step is tried again.

    `retry_after` is the number of seconds that the system asked us to wait, if it named one.
    """

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ChatUnavailable(Unavailable):
    """Slack, Teams or the local page did not take a message. The post stays recorded and is tried again."""


class ChatBusy(ChatUnavailable):
    """A chat asks to wait, or is known to: nothing was posted. The post is tried again when its turn comes."""


class Undeliverable(PlumblineError):
    """A chat will never take this message in this place. It is kept as a dead letter until an operator has it retried."""


class Withdrawn(PlumblineError):
    """A message was to be posted, and what it answers was deleted or changed meanwhile. It is not posted."""


class QuietNow(Unavailable):
    """A channel wants to be left alone. What has time is said there when its quiet hours end."""


class MessageNotFound(PlumblineError):
    """The chat message to edit or to reply to no longer exists: somebody deleted it."""


class SourceUnavailable(Unavailable):
    """A knowledge source could not be read. What was indexed from it before stays, and is marked by its age."""


class ToolUnavailable(Unavailable):
    """A monitoring, log or change system could not be read. The investigation goes on without it and says so."""


class ToolRefused(ToolUnavailable):
    """A monitoring, log or change system refused access: correct its token or its rights. The investigation says so."""


class IndexUnavailable(Unavailable):
    """The passage index cannot be opened or reached: another process holds it, or the server is down."""


class ModelUnavailable(Unavailable):
    """The language model did not answer in time, is overloaded or is down. The evidence engine answers instead."""


class PromptTooLong(PlumblineError):
    """A prompt does not fit into the model's context. It was not sent, and nothing of it was cut."""


class InvalidReply(PlumblineError):
    """The language model's reply is not of the form asked for, and asking again did not help."""


class StoreUnavailable(Unavailable):
    """The database did not answer, or has no room left. Nothing was written; what was asked for is tried again."""


class Conflict(PlumblineError):
    """Two writers changed the same record at once. The loser reads it again and repeats its decision."""


class Deadlock(StoreUnavailable, Conflict):
    """Two writers waited for each other, and the database undid this one. It is done again at once."""
