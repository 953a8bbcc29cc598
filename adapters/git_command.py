"""Execution of Git within limits of time and size, without running programs named by a repository.

A repository's configuration, hooks and attributes can name programs. A person who can write into a checkout must not
run anything here, so every call uses these settings, which the repository cannot override. Settings whose names contain
a repository's own words cannot be disabled, so the features are not used: no checkout, no text conversion, no external
diff, no pager, and no transport but the requested one.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

from core.model.errors import Unavailable

# For programs that read commits: no signature checks, and no external diffs.
PLAIN_COMMITS = ("--no-ext-diff", "--no-textconv", "--no-mailmap", "--no-show-signature")

_SETTINGS = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.pager": "cat",
    "core.editor": "false",
    "core.askPass": "",
    "core.sshCommand": "false",
    "core.gitProxy": "",
    "core.alternateRefsCommand": "true",
    "core.attributesFile": os.devnull,
    "core.quotePath": "false",
    "credential.helper": "",  # clears the helpers named earlier
    "diff.external": "",
    "fetch.recurseSubmodules": "false",
    "gc.auto": "0",
    "gpg.program": "false",
    "gpg.openpgp.program": "false",
    "gpg.ssh.program": "false",
    "gpg.ssh.defaultKeyCommand": "false",
    "gpg.x509.program": "false",
    "http.followRedirects": "false",
    "init.templateDir": "",
    "log.showSignature": "false",
    "maintenance.auto": "false",
    "protocol.allow": "never",
    "safe.bareRepository": "explicit",
    "submodule.recurse": "false",
    "uploadpack.packObjectsHook": "",
}
_ENVIRONMENT = {
    "HOME": os.devnull,
    "LC_ALL": "C",
    "GIT_ASKPASS": "",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_EDITOR": "false",
    "GIT_NO_LAZY_FETCH": "1",  # Git 2.44 and newer; older versions are restricted by the protocols
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_PROTOCOL_FROM_USER": "0",
    "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",  # takes precedence over core.sshCommand
    "GIT_TERMINAL_PROMPT": "0",
}
# The remote of a file:// URL may be tampered with too, so it may not fetch from elsewhere.
_UPLOAD_PACK = "env GIT_ALLOW_PROTOCOL=none GIT_NO_LAZY_FETCH=1 git upload-pack"


async def git_output(
    folder: Path,
    *arguments: str,
    label: str,
    seconds: float,
    max_bytes: int,
    failure: type[Unavailable],
    transport: str = "",
    settings: Mapping[str, str] | None = None,
) -> bytes:
    """Return Git's output for these arguments in the repository at `folder`, bare or not.

    `label` describes the call in errors. `transport` is the URL scheme that Git may use; empty for none. `settings` are
    passed invisibly to other processes, and may contain a secret. Raises `failure` if Git is missing, takes longer than
    `seconds`, fails, or prints more than `max_bytes`.
    """
    inside = folder / ".git"
    command = [
        *("git", "--no-pager", "--git-dir", str(inside if inside.exists() else folder)),
        *(part for name, value in _SETTINGS.items() for part in ("-c", f"{name}={value}")),
        *arguments[:1],
        *((f"--upload-pack={_UPLOAD_PACK}",) if transport == "file" else ()),
        *arguments[1:],
    ]
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            env={
                **_ENVIRONMENT,
                **_passed(settings or {}),
                "PATH": os.defpath,
                "GIT_ALLOW_PROTOCOL": transport or "none",
            },
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
        raise failure(f"{label} printed more than {max_bytes} bytes.")
    return output


def _passed(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings as environment variables for Git."""
    variables = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (name, value) in enumerate(settings.items()):
        variables |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return variables
