"""The native llama-server of the xllamacpp wheel as a process: MODEL PORT SLOTS CONTEXT [API_KEY [embedding]]."""

from __future__ import annotations

import sys
import threading
from importlib import import_module
from typing import Any


def main(model: str, port: str, slots: str, context: str, api_key: str = "", embedding: str = "") -> None:
    """Serve until killed. `context` is the number of tokens for all slots together."""
    xllamacpp: Any = import_module("xllamacpp")  # not among the packages that `make check` installs
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.hostnames = ["127.0.0.1"]
    params.port = int(port)
    params.n_parallel = int(slots)
    params.n_ctx = int(context)
    params.endpoint_slots = True
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1  # more only wait for each other on a tiny model
    params.embedding = embedding == "embedding"
    if api_key:
        params.api_keys = [api_key]
    server = xllamacpp.Server(params)  # noqa: F841 it serves for as long as it is referred to
    threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
