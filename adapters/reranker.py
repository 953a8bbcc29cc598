"""A server whose model puts passages in order by how well they answer a question: `/v1/rerank`, as Cohere defined it.

llama-server with `--reranking`, vLLM and LocalAI have it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import structlog
from pydantic import BaseModel, FiniteFloat, ValidationError

from adapters.embeddings.server import LONGEST, QUERY_DEADLINE
from adapters.llama.connection import LlamaConnection
from adapters.model_queue import HEALTH_PERIOD
from adapters.section import EnvironmentName, Host, Section, Url
from core.model.errors import ModelUnavailable, PromptTooLong
from core.ports import Reranker

log = structlog.get_logger()


class _Result(BaseModel):
    index: int
    relevance_score: FiniteFloat  # of any range: only the order counts


class _Results(BaseModel):
    results: list[_Result]


class RerankerSection(Section):
    """A server with a reranker, at `/v1/rerank` of its `url`. `token_env` names the variable with its key, if it has one."""

    url: Url
    model: str = ""
    token_env: EnvironmentName | None = None

    def open(self, host: Host) -> Reranker:
        """Return the reranker. Raises ConfigurationError if the variable is not set."""
        key = host.settings.secret(self.token_env, "models.reranker") if self.token_env else ""
        connection = LlamaConnection(self.url, host.session, key, "models.reranker.token_env")
        return ServerReranker(connection, self.model).order


class ServerReranker:
    """Its `order` is a Reranker. A server that failed is left alone for HEALTH_PERIOD, so that only one of many questions waits for it in vain."""

    def __init__(self, connection: LlamaConnection, model: str = "", deadline: float = QUERY_DEADLINE) -> None:
        self._connection = connection
        self._model = model
        self._deadline = deadline
        self._paused_until = 0.0

    async def order(self, query: str, texts: Sequence[str]) -> list[int]:
        """Return the order, as a Reranker does."""
        now = asyncio.get_running_loop().time
        if now() < self._paused_until:
            raise ModelUnavailable("The reranker failed a moment ago.")
        body = {"query": query[:LONGEST], "documents": [text[:LONGEST] for text in texts]}
        try:
            async with asyncio.timeout(self._deadline):
                answer = await self._connection.post(
                    "v1/rerank", body | ({"model": self._model} if self._model else {})
                )
            return _order(answer, len(texts))
        except (ModelUnavailable, PromptTooLong, TimeoutError) as error:
            self._paused_until = now() + HEALTH_PERIOD
            problem = f"The reranker at {self._connection.host} failed: {str(error) or 'it did not answer in time.'}"
            log.warning("reranker_failed", problem=problem)
            raise ModelUnavailable(problem) from error


def _order(answer: Mapping[str, Any], count: int) -> list[int]:
    """Return the order in a server's reply about so many texts. Raises ModelUnavailable."""
    try:
        results = _Results.model_validate(answer).results
    except ValidationError:
        results = []
    if sorted(each.index for each in results) != list(range(count)):
        raise ModelUnavailable("It did not rate each passage once.")
    return [each.index for each in sorted(results, key=lambda each: (-each.relevance_score, each.index))]
