"""Serialization of workflow inputs and outputs as JSON, which cannot run code.

The engine's own format is pickle, which can run arbitrary code, and the engine reads it wherever a row is marked with
it. Anybody who can write a row, for example through a backup, could run code. Importing this module disables that
reader; data of earlier versions is detected without being read.
"""

from __future__ import annotations

import json
from typing import Any, cast

import sqlalchemy as sa
from dbos import Serializer
from dbos._serialization import DefaultSerializer

from core.model import errors
from core.model.errors import ConfigurationError, PlumblineError, Unavailable

UNFINISHED = ("PENDING", "ENQUEUED", "DELAYED")
SCHEMA = "dbos"  # of PostgreSQL

_PICKLE = "py_pickle"  # the engine's name of the format
_ERRORS = {
    kind.__name__: kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, PlumblineError)
}


class RecordedError(PlumblineError):
    """An error that a step raised before its process ended, and that is not one of Plumbline's own errors."""


class JsonSerializer(Serializer):
    """Serializes JSON values and exceptions.

    An error of `core.model.errors` is restored as its type; any other exception as a RecordedError that names it.
    """

    def name(self) -> str:
        return "plumbline_json"

    def serialize(self, data: Any) -> str:
        """Return the data as JSON. Raises TypeError or ValueError for anything but a JSON value or an exception."""
        if isinstance(data, dict) and data.keys() == {"args", "kwargs"}:
            return json.dumps(data, allow_nan=False)  # a workflow's arguments, which the engine expects back as a tuple
        if not isinstance(data, BaseException):
            return json.dumps({"value": data}, allow_nan=False)  # ASCII, because databases cannot store every character
        error = {"type": type(data).__name__, "message": str(data), "retry_after": getattr(data, "retry_after", None)}
        return json.dumps({"error": error})

    def deserialize(self, serialized_data: str) -> Any:
        """Return the data. Raises ValueError for text that `serialize` does not write."""
        written: object = json.loads(serialized_data)
        fields = cast("dict[str, Any]", written) if isinstance(written, dict) else {}
        if fields.keys() == {"value"}:
            return fields["value"]
        if fields.keys() == {"error"}:
            return _error(fields["error"])
        if fields.keys() == {"args", "kwargs"} and isinstance(fields["args"], list):
            return fields | {"args": tuple(cast("list[Any]", fields["args"]))}
        raise ValueError("This is neither a value nor an error of a workflow.")


def _error(written: Any) -> PlumblineError:
    match written:
        case {"type": str(name), "message": str(message), "retry_after": None | int() | float() as retry_after}:
            kind = _ERRORS.get(name)
        case _:
            raise ValueError("This is not an error of a workflow.")
    if kind is None:
        return RecordedError(f"{name}: {message}")
    return kind(message, retry_after) if issubclass(kind, Unavailable) else kind(message)


def refuse_pickled(database_url: str, way_out: str) -> None:
    """Raise ConfigurationError if an unfinished workflow was written as pickle, without reading it.

    `way_out` is appended to the message for the operator.
    """
    if count := _pickled(database_url):
        raise ConfigurationError(
            f"{count} unfinished workflows were written by an earlier version of Plumbline as pickle, a format that can "
            f"run code and is never read. {way_out}"
        )


def _pickled(database_url: str) -> int:
    """Return the number of unfinished workflows with pickled data."""
    url = sa.make_url(database_url)
    is_server = url.get_backend_name() == "postgresql"
    schema = SCHEMA if is_server else None
    workflow = sa.table(
        "workflow_status", sa.column("workflow_uuid"), sa.column("status"), sa.column("serialization"), schema=schema
    )
    step = sa.table("operation_outputs", sa.column("workflow_uuid"), sa.column("serialization"), schema=schema)
    steps = sa.select(step.c.workflow_uuid).where(step.c.serialization == _PICKLE)
    unfinished = sa.select(sa.func.count()).where(
        workflow.c.status.in_(UNFINISHED),
        (workflow.c.serialization == _PICKLE) | workflow.c.workflow_uuid.in_(steps),
    )
    engine = sa.create_engine(url.set(drivername="postgresql+psycopg") if is_server else url)
    try:
        with engine.connect() as connection:
            if not sa.inspect(connection).has_table(workflow.name, schema=schema):
                return 0
            return connection.execute(unfinished).scalar_one()
    finally:
        engine.dispose()


def _never_read(cls: DefaultSerializer, serialized_data: str) -> Any:  # noqa: ARG001 -- as the engine names them
    raise PlumblineError("A workflow was written as pickle, which can run code and is never read.")


def _never_written(self: DefaultSerializer, data: Any) -> str:  # noqa: ARG001 -- the same
    raise PlumblineError("Plumbline never writes a workflow as pickle.")


DefaultSerializer.deserialize = _never_read
DefaultSerializer.serialize = _never_written
