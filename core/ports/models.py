"""Ports of the language model and of locally learned models."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Protocol

from core.model.language_model import ModelReply, ModelRequest

if TYPE_CHECKING:
    from core.knowledge.encoder import Encoder
    from core.triage.owner_model import OwnerModel


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

    async def generate(self, request: ModelRequest) -> ModelReply:
        """Return one reply. With a schema, it is valid JSON under the schema unless truncated at `max_tokens`.

        Raises InvalidReply if a server without grammars gave no valid reply within its rounds.
        """
        ...

    async def sample(self, request: ModelRequest, count: int) -> list[ModelReply]:
        """Return `count` independent replies to one prompt, which is computed once if the server supports it."""
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[str]:
        """Yield one reply piece by piece. Abandoning the iteration cancels the generation."""
        ...

    async def expect(self, request: ModelRequest, choices: Sequence[str]) -> dict[str, float]:
        """Return the probability of each of 2 to 20 distinct `choices` as the whole reply; they sum to 1.

        They are read from the token probabilities of one constrained reply, or estimated by sampling if the server
        reports none.
        """
        ...


class EncoderStore(Protocol):
    """Stores the encoder learned from the corpus, for all processes that use the index.

    Raises StoreUnavailable if it is in a database that cannot be reached.
    """

    async def load(self) -> Encoder | None:
        """Return the latest encoder; None if there is none that this version can read.

        A save is visible to this process at once, and to others within 2 seconds if it is in a database. Called for
        every query, so it takes microseconds, except for one check every 2 seconds.
        """
        ...

    async def load_newest(self) -> Encoder | None:
        """Return the latest encoder saved by any process, for a caller that is about to change it."""
        ...

    async def save(self, encoder: Encoder, /) -> None:
        """Replace the encoder atomically."""
        ...


class OwnerModelStore(Protocol):
    """Stores the learned owner model, for all processes.

    Raises StoreUnavailable if it is in a database that cannot be reached.
    """

    async def load(self) -> OwnerModel | None:
        """Return the latest model; None if there is none that this version can read.

        A save is visible to this process at once, and to others within 2 seconds if it is in a database. Called for
        every triage, so it takes microseconds, except for one check every 2 seconds.
        """
        ...

    async def save(self, model: OwnerModel, /) -> None:
        """Replace the model atomically."""
        ...
