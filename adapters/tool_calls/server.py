"""A language model server whose model calls tools by its own means."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import structlog

from adapters.llama.completion import GrowingReply
from adapters.llama.connection import RequestRefused
from adapters.llama.server import LlamaServer
from adapters.tool_calls.form import options_of, with_tools
from core.model.language_model import ModelReply, ModelRequest, OnText

log = structlog.get_logger()


class ToolCallingServer(LlamaServer):
    """A server that is asked for native calls of tools in the steps of an investigation, and for JSON otherwise.

    One that refuses them, or makes none though it must, is asked for JSON from then on.
    """

    _calls_tools = True

    async def _once(
        self,
        request: ModelRequest,
        options: Mapping[str, object],
        on_text: OnText,
        shape: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict,
    ) -> list[GrowingReply]:
        if self._calls_tools and request.schema and options_of(request.schema):
            with suppress(RequestRefused):
                tools = partial(with_tools, schema=request.schema)
                replies = await super()._once(replace(request, schema=None), options, on_text, tools)
                if all(each.calls for each in replies):
                    return replies
            self._calls_tools = False
            log.warning("tool_calls_not_supported", model=self.name)
        return await super()._once(request, options, on_text, shape)

    async def _valid(self, request: ModelRequest, grown: GrowingReply) -> ModelReply:
        """Return a call as it is: what is wrong with it, the agent answers with advice."""
        return grown.reply() if grown.calls else await super()._valid(request, grown)
