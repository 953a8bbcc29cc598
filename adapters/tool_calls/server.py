"""A language model server whose model calls tools by its own means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import structlog

from adapters.llama.completion import GrowingReply, Shape
from adapters.llama.connection import ReplyFailed, RequestRefused
from adapters.llama.server import LlamaServer
from adapters.tool_calls.form import options_of, with_tools
from core.model.language_model import ModelReply, ModelRequest, OnText

log = structlog.get_logger()


class ToolCallingServer(LlamaServer):
    """A server that is asked for native calls of tools in the steps of an investigation, and for JSON otherwise.

    One that refuses them, or makes none though it must, is asked for JSON from then on. A reply that was cut or failed before its
    call says nothing of that, and its step alone is asked for as JSON; but a server that never called may have one such reply.
    """

    _calls_tools = True
    _has_called = False
    _has_lost = False  # a reply that may have ended in a call

    async def _once(
        self, request: ModelRequest, options: Mapping[str, object], on_text: OnText, shape: Shape = dict
    ) -> list[GrowingReply]:
        if self._calls_tools and request.schema and options_of(request.schema):
            try:
                replies = await super()._once(
                    replace(request, schema=None), options, on_text, partial(with_tools, schema=request.schema)
                )
                if any(each.calls for each in replies):
                    self._has_called = True
                    return replies
                is_lost = not replies[0].reply().complete
            except RequestRefused as error:
                is_lost = isinstance(error, ReplyFailed)
            self._calls_tools = is_lost and (self._has_called or not self._has_lost)
            self._has_lost = True
            log.warning("tool_call_missing", model=self.name, asked_again=self._calls_tools)
        return await super()._once(request, options, on_text, shape)

    async def _valid(self, request: ModelRequest, grown: GrowingReply) -> ModelReply:
        """Return a call as it is: what is wrong with it, the agent answers with advice."""
        return grown.reply() if grown.calls else await super()._valid(request, grown)
