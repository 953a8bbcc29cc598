"""Runs git and reads what it prints, within bounds of time and size."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from core.errors import Unavailable


async def git_output(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    label: str,
    seconds: float,
    max_bytes: int,
    failure: type[Unavailable],
) -> bytes:
    """What `command` printed. `label` says in an error what was run, for whom.

    Raises `failure` if git is not there, takes longer than `seconds`, fails, or prints more than `max_bytes`.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        raise failure(f"{label}: git cannot be started: {error.strerror}; install it.") from error
    try:
        async with asyncio.timeout(seconds):
            output, complaint = await process.communicate()
    except TimeoutError as error:
        raise failure(f"{label} took more than {seconds:.0f} s.") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        reason = complaint.decode("utf-8", "replace").strip().splitlines()[-1:] or ["no reason given"]
        raise failure(f"{label} failed: {reason[0]}")
    if len(output) > max_bytes:
        raise failure(f"{label} gave more than {max_bytes} bytes.")
    return output
