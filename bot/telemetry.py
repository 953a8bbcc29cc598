"""Logs and metrics, set up once."""

from __future__ import annotations

import logging
import sys
from typing import Literal

import structlog
from prometheus_client import Counter, Histogram

REQUESTS = Counter("plumbline_requests_total", "Inbound HTTP requests", ["route", "status"])
ACKNOWLEDGEMENT = Histogram(
    "plumbline_acknowledgement_seconds",
    "Time until an inbound request was answered",
    ["route"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5),
)


def configure_logging(style: Literal["console", "json"]) -> None:
    """Structured logs on standard error, of our own code and of the libraries alike."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if style == "json"
        else structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
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
        logging.getLogger(ours).setLevel(logging.INFO)
