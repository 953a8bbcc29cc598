"""A simulated model that investigates incidents, as the script of a server with OpenAI's chats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from core.model.language_model import ChatMessage, ModelRequest, Role
from tests.benchmarks.simulated_agent import Cause, SimulatedInvestigator
from tests.fakes.llama_server import an_answer


def investigating(causes: Sequence[Cause], right: float = 1.0) -> Callable[[dict[str, Any]], str]:
    """The script of a server whose model knows these causes, and understands each with the probability `right`."""
    model = SimulatedInvestigator(causes, right)

    def reply(body: dict[str, Any]) -> str:
        messages = tuple(ChatMessage(Role(each["role"]), each["content"]) for each in body["messages"])
        drawn = body["seed"] if body["temperature"] else 0
        schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
        return model.reply(ModelRequest(messages, schema=schema), drawn) or an_answer(body)

    return reply
