"""Set-up of logs and metrics."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Literal

import structlog
from prometheus_client import Counter, Histogram

from core.model.errors import Unavailable

SCALE = (0.005, 0.01, 0.03, 0.1, 0.25, 0.5, 1, 2.5, 10, 30, 100, 300)  # seconds

REQUESTS = Counter("plumbline_requests_total", "Inbound HTTP requests", ["route", "status"])
ACKNOWLEDGEMENT = Histogram(
    "plumbline_acknowledgement_seconds",
    "Time until an inbound request was answered",
    ["route"],
    buckets=SCALE,
)

DELIVERIES = Counter(
    "plumbline_deliveries_total",
    "Webhooks by outcome: accepted ones changed an incident, deduplicated ones contained nothing new",
    ["source", "outcome"],
)
EVENTS = Counter(
    "plumbline_chat_events_total",
    "Events in chats: accepted, or deduplicated because they were received before",
    ["workflow", "outcome"],
)
STEPS = Histogram(
    "plumbline_step_seconds",
    "Duration of a workflow step",
    ["step", "outcome"],
    buckets=SCALE,
)
POSTS = Histogram(
    "plumbline_chat_call_seconds",
    "Duration of a call that posts, edits or deletes a message, by outcome",
    ["platform", "call", "outcome"],
    buckets=SCALE,
)


@contextmanager
def timed(histogram: Histogram, *labels: str) -> Generator[None]:
    """Observe the duration of the block, with the outcome `done`, `waits` or `failed` as the last label."""
    started, outcome = time.perf_counter(), "failed"
    try:
        yield
        outcome = "done"
    except Unavailable:
        outcome = "waits"
        raise
    finally:
        histogram.labels(*labels, outcome).observe(time.perf_counter() - started)


def configure_logging(style: Literal["console", "json"], level: int = logging.INFO) -> None:
    """Log to standard error as structured records: our own code from `level` on, libraries from warnings on.

    The console style has colours only in a terminal.
    """
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if style == "json"
        else structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(),
            exception_formatter=structlog.dev.plain_traceback,
        )
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    tracebacks = [structlog.processors.format_exc_info] if style == "json" else []
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *tracebacks, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    for ours in ("bot", "handlers", "adapters", "core"):
        logging.getLogger(ours).setLevel(level)
