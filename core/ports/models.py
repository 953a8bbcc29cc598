"""Ports of the language model and of locally learned models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from core.model.language_model import Abilities, ModelReply, ModelRequest, OnText, ignore_text

T = TypeVar("T")


class LanguageModel(Protocol):
    """A language model. Its output is untrusted text.

    Every call raises ModelUnavailable if the model does not answer within the request's deadline, is overloaded or is
    down, and PromptTooLong if the prompt and `max_tokens` do not fit into the context. Nothing is ever truncated.
    """

    @property
    def name(self) -> str:
        """Return the model's display name."""
        ...

    async def context_tokens(self) -> int:
        """Return the maximum number of tokens of a prompt and its reply together."""
        ...

    async def count_tokens(self, text: str) -> int:
        """Return the length of `text` in tokens of the model; 0 for empty text."""
        ...

    async def abilities(self) -> Abilities:
        """Return what the server can do; of several servers, what all of them can do."""
        ...

    async def generate(self, request: ModelRequest, on_text: OnText = ignore_text) -> ModelReply:
        """Return one reply. With a schema, it is valid JSON under the schema unless truncated at `max_tokens`.

        `on_text` receives the text so far as it grows, if the server streams, and no other text if the reply is repeated.

        Raises InvalidReply if a server without grammars gave no valid reply within its rounds.
        """
        ...

    async def sample(self, request: ModelRequest, count: int) -> list[ModelReply]:
        """Return `count` independent replies to one prompt, which is computed once if the server supports it."""
        ...

    async def expect(self, request: ModelRequest, choices: Sequence[str]) -> dict[str, float]:
        """Return the probability of each of 2 to 20 distinct `choices` as the whole reply; they sum to 1.

        They are read from the token probabilities of one constrained reply, or estimated by sampling if the server
        reports none.
        """
        ...


class LearnedStore(Protocol[T]):
    """Stores one object that was learned from data, such as the encoder of the corpus, for all processes.

    Raises StoreUnavailable if it is in a database that cannot be reached.
    """

    async def load(self) -> T | None:
        """Return the object saved last; None if there is none that this version can read.

        A save is visible to this process at once, and to others within 2 seconds if it is in a database. Called for
        every query, so it takes microseconds, except for one check every 2 seconds.
        """
        ...

    async def load_newest(self) -> T | None:
        """Return the object saved last by any process, without delay, for a caller that will change it."""
        ...

    async def save(self, learned: T, /) -> None:
        """Replace the object atomically."""
        ...
