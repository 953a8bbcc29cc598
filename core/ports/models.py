"""The language model, and what is learned on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from core.model.language_model import ModelReply, ModelRequest

T = TypeVar("T")


class LanguageModel(Protocol):
    """A language model at the user's side. Whatever it says is untrusted text.

    Every call raises ModelUnavailable when the model does not answer within the request's deadline, is overloaded or
    is down, and PromptTooLong when the prompt and `max_tokens` do not fit into the context: nothing is ever cut.
    """

    @property
    def name(self) -> str:
        """The model's name as people see it."""
        ...

    async def context_tokens(self) -> int:
        """How many tokens a prompt and its reply may have together."""
        ...

    async def count_tokens(self, text: str) -> int:
        """The length of `text` by the model's own tokenizer; 0 for the empty text."""
        ...

    async def generate(self, request: ModelRequest) -> ModelReply:
        """One reply. With a schema, it is valid JSON under the schema unless it was cut at `max_tokens`.

        Raises InvalidReply if a server without grammars gave no valid reply within its rounds.
        """
        ...

    async def sample(self, request: ModelRequest, count: int) -> list[ModelReply]:
        """`count` independent replies to one prompt, which is computed once where the server can."""
        ...

    async def expect(self, request: ModelRequest, choices: Sequence[str]) -> dict[str, float]:
        """The probability of each of 2 to 20 distinct `choices` as the whole reply; they add up to 1.

        Read from the token probabilities of one constrained step, or estimated by sampling where the server has none.
        """
        ...


class LearnedStore(Protocol[T]):
    """Keeps one thing that was learned from data, as the encoder of the corpus is, for every process.

    Raises StoreUnavailable where it is in a database that cannot be reached.
    """

    async def load(self) -> T | None:
        """Return what was saved last; None if there is nothing that this version can read.

        By this process at once, by whatever process after at most 2 seconds where it is in a database. Called for
        every query: microseconds while nothing was saved since the last call, but for one look in those 2 seconds.
        """
        ...

    async def load_newest(self) -> T | None:
        """Return surely what was saved last by whatever process, for whoever is about to change it."""
        ...

    async def save(self, learned: T, /) -> None:
        """Replace it: whole or, after a crash, not at all."""
        ...
