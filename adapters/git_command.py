"""Runs git and reads what it prints: within bounds of time and size, and without running what a repository asks for.

A repository's own configuration, hooks and attributes can name programs. Whoever writes into a checkout must not run
anything here, so every call is made with these settings, which the repository cannot change. What a setting cannot switch
off, because its name holds one of the repository's choosing, is kept from being used: nothing is checked out, no text
conversion or external diff is asked for, no pager is started, and no transport is allowed but the one that is asked for.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

from core.model.errors import Unavailable

# Of programs that read commits: no signature is checked, no difference is shown by a program of the repository's.
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
    "credential.helper": "",  # forgets those that were named before
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
    "GIT_NO_LAZY_FETCH": "1",  # git 2.44 and newer; older ones are held back by the protocols
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_PROTOCOL_FROM_USER": "0",
    "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",  # goes before core.sshCommand
    "GIT_TERMINAL_PROMPT": "0",
}
# The other end of a file:// URL is a repository that may have been tampered with, too: it fetches nothing from elsewhere.
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
    """Return what git prints for these arguments in the repository at `folder`, bare or with files.

    `label` says in an error what was run, for whom. `transport` is the scheme of the URL that git may reach; empty for
    none. `settings` are passed where no other process can see them, and may hold a secret.

    Raises `failure` if git is not there, takes longer than `seconds`, fails, or prints more than `max_bytes`.
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
        raise failure(f"{label} gave more than {max_bytes} bytes.")
    return output


def _passed(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings as environment variables that git reads."""
    variables = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (name, value) in enumerate(settings.items()):
        variables |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return variables
