"""Documents in a Git repository: a local clone, or a repository that is fetched.

Files are read from Git's objects without a checkout, so there are no hooks, filters, links and submodules.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import ClassVar, Literal, Self
from urllib.parse import quote, urlsplit

from pydantic import model_validator

from adapters.catalogues import section
from adapters.catalogues.section import Files, Wanted
from adapters.git_command import PLAIN_COMMITS, git_output
from adapters.http import Refused
from adapters.section import EnvironmentName, Host
from adapters.sources.formats import SUFFIXES, has_format, max_bytes
from adapters.sources.parsing import FileOrigin, documents_of, of_other_formats
from adapters.sources.section import Entry, Indexed, ListingPart, OnePlace, Position, Readers, SourceSection
from adapters.text_files import decoded
from core.model.conversation import PUBLIC
from core.model.document import Document
from core.model.errors import ConfigurationError, SourceUnavailable
from core.ports import LeftOut

SCHEMES = frozenset({"https", "ssh", "file"})
FETCH_TIMEOUT = 300.0  # seconds
READ_TIMEOUT = 60.0  # seconds
MAX_OUTPUT = 64 * 1024 * 1024  # bytes of a listing or a file
NEWEST = "refs/plumbline/newest"  # the last fetched commit; Git loses its own reference when a fetch fails

_DEFAULT_LINKS = "{url}/blob/{commit}/{path}"  # supported by GitHub, GitLab and Gitea


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository, and the web addresses of its files.

    - `url` (https, ssh or file): fetched into the bare repository at `clone`, with `token` for https. If empty, `clone`
      is a clone that is kept up to date externally.
    - `branch`: empty for the branch of HEAD.
    - `links`: a web address with `{commit}` and `{path}`; if empty, it is derived from an https URL.
    - `readers`: applies to documents that do not name their readers.
    """

    clone: Path
    url: str = ""
    branch: str = ""
    links: str = ""
    token: str = ""
    readers: frozenset[str] = frozenset({PUBLIC})
    open_labels: tuple[str, ...] = ()

    @property
    def scheme(self) -> str:
        return urlsplit(self.url).scheme

    def link(self, commit: str, path: PurePosixPath) -> str:
        links = self.links
        if not links and self.url.startswith("https://"):
            links = _DEFAULT_LINKS.replace("{url}", self.url.removesuffix("/").removesuffix(".git"))
        return links.replace("{commit}", commit).replace("{path}", quote(str(path)))


@dataclass(frozen=True, slots=True)
class _File:
    path: PurePosixPath
    blob: str
    size: int


class GitRepositorySource(OnePlace):
    """Every Markdown, HTML, PDF, Word and text file of a branch. A document links to its file at a commit.

    That commit is the first one in which the bot saw this version of the file, so commits that do not touch a file do
    not change its document. A document's date is that of the last commit that changed it, if the history is available;
    if only the newest commit was fetched, it is the date of the commit in which a change was seen, or none.
    """

    def __init__(self, name: str, repository: Repository) -> None:
        """Create the source.

        Raises ConfigurationError for a URL that is not https, ssh or file, or contains a password.
        """
        parts = urlsplit(repository.url)
        if repository.url and parts.scheme not in SCHEMES:
            raise ConfigurationError(f"Source {name}: a git URL begins with https://, ssh:// or file://.")
        if parts.password:
            raise ConfigurationError(f"Source {name}: take the password out of the URL and set `token_env`.")
        if repository.branch.startswith("-"):
            raise ConfigurationError(f"Source {name}: {repository.branch!r} is not the name of a branch.")
        self.name = name
        self._repository = repository

    async def check(self) -> None:
        repository = self._repository
        if not repository.url:
            await self._newest()
            return
        branch = repository.branch or "HEAD"
        remote = ("ls-remote", "--quiet", "--exit-code", "--end-of-options", repository.url, branch)
        await self._git(*remote, transport=repository.scheme)

    async def listing(self, position: Position, indexed: Indexed) -> AsyncIterator[ListingPart]:
        commit = await self._newest()
        listed = await self._listed(commit)
        files = [file for file in listed if has_format(file.path)]
        read = {path: each.version for path, each in position.marks.items()}
        is_same = all(read.get(str(file.path)) == file.blob for file in files)
        dates = {} if is_same else await self._dates(commit, since_known=bool(read))
        entries = list[Entry]()
        for file in files:
            name = str(file.path)
            document = partial(self._documents, file, commit, dates.get(name) or dates.get(""))
            entries.append(Entry(name, self._repository.readers, file.blob, document, name))
        others = of_other_formats(file.path for file in listed)
        yield ListingPart(entries, left_out=others, is_whole=True)

    async def read(self, wanted: Wanted) -> Files:
        """Return the wanted files of the newest commit, or of the last fetched one if fetching fails.

        Large files are left out. Raises SourceUnavailable, also for too many.
        """
        try:
            commit = await self._newest()
        except SourceUnavailable:
            commit = await self._fetched()
        small = [file for file in await self._listed(commit) if file.size <= section.MAX_BYTES]
        files = sorted((file for file in small if wanted(file.path)), key=lambda file: file.path)
        if len(files) > section.MAX_FILES:
            raise SourceUnavailable(
                f"{self.name} has {len(files)} matching files; at most {section.MAX_FILES} are read."
            )
        return {file.path: decoded(await self._git("cat-file", "blob", file.blob)) for file in files}

    async def _newest(self) -> str:
        """Fetch, and return the commit to read."""
        repository = self._repository
        if repository.url:
            if not (repository.clone / "HEAD").exists():
                await asyncio.to_thread(repository.clone.mkdir, parents=True, exist_ok=True)
                await self._git("init", "--bare", "--quiet")
            await self._git(
                *("fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--no-write-commit-graph"),
                *("--end-of-options", repository.url, f"+{repository.branch or 'HEAD'}:{NEWEST}"),
                seconds=FETCH_TIMEOUT,
                transport=repository.scheme,
            )
        return await self._fetched()

    async def _fetched(self) -> str:
        """Return the commit to read without fetching."""
        repository = self._repository
        local = f"refs/heads/{repository.branch}" if repository.branch else "HEAD"
        revision = NEWEST if repository.url else local
        return (await self._git("rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")).decode().strip()

    async def _listed(self, commit: str) -> list[_File]:
        """Return all regular files, without links and submodules."""
        listing = await self._git("ls-tree", "-r", "-z", "--long", "--full-tree", commit)
        files: list[_File] = []
        for entry in listing.decode("utf-8", "surrogateescape").split("\x00"):
            description, _, name = entry.partition("\t")
            mode, kind, blob, size = (*description.split(), "", "", "", "")[:4]
            if kind == "blob" and mode != "120000" and name.isprintable():
                files.append(
                    _File(PurePosixPath(name), blob, int(size) if size.isdecimal() else 0)
                )  # BAD: the object is missing
        return files

    async def _documents(self, file: _File, commit: str, changed_at: datetime | None) -> list[Document | LeftOut]:
        if file.size > max_bytes(file.path):
            return [LeftOut(str(file.path), f"The file is larger than {max_bytes(file.path)} bytes.")]
        try:
            content = await self._git("cat-file", "blob", file.blob)
        except SourceUnavailable as error:  # the repository is available, but this file is not: what is indexed stays
            raise Refused(str(error), 0) from error
        own = self._repository
        return await documents_of(
            FileOrigin(self.name, file.path, own.link(commit, file.path), own.readers, own.open_labels, changed_at),
            content,
        )

    async def _dates(self, commit: str, *, since_known: bool) -> dict[str, datetime]:
        """Return the date of each path's last change, if the history is available; under "" that of all other changed
        paths.
        """
        if (await self._git("rev-parse", "--is-shallow-repository")).strip() == b"true":
            seconds = int(await self._git("show", "--no-patch", "--format=%ct", *PLAIN_COMMITS, commit))
            return {"": datetime.fromtimestamp(seconds, UTC)} if since_known else {}
        dates = dict[str, datetime]()
        documents = (f":(icase)*{suffix}" for suffix in SUFFIXES)
        history = await self._git(
            "log", "-z", "--format=%x01%ct", "--name-only", "--no-renames", *PLAIN_COMMITS, commit, "--", *documents
        )
        for part in history.decode("utf-8", "surrogateescape").split("\x01")[1:]:
            seconds, _, names = part.partition("\x00")
            at = datetime.fromtimestamp(int(seconds.strip()), UTC)
            for name in names.strip("\n").split("\x00"):
                dates.setdefault(name.strip("\n"), at)
        return dates

    async def _git(self, *arguments: str, seconds: float = READ_TIMEOUT, transport: str = "") -> bytes:
        return await git_output(
            self._repository.clone,
            *arguments,
            label=f"{self.name}: git {arguments[0]}",
            seconds=seconds,
            max_bytes=MAX_OUTPUT,
            failure=SourceUnavailable,
            transport=transport,
            settings=_login(self._repository) if transport == "https" else {},
        )


def _login(repository: Repository) -> dict[str, str]:
    if not repository.token:
        return {}
    login = base64.b64encode(f"x-access-token:{repository.token}".encode()).decode()
    return {f"http.{repository.url}.extraHeader": f"Authorization: Basic {login}"}


class GitRepositorySection(SourceSection):
    """A Git repository: either `path`, a clone that is kept up to date externally, or `url`, which is fetched.

    `links` is a web address with `{commit}` and `{path}`; if empty, it is derived from an https URL. `open_labels`
    are labels and other statements on access with which files stay open, such as `General`.
    """

    has_files: ClassVar[bool] = True

    kind: Literal["git_repository"]
    path: Path | None = None
    url: str = ""
    branch: str = ""
    links: str = ""
    token_env: EnvironmentName | None = None
    readers: Readers = (PUBLIC,)
    open_labels: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _is_somewhere(self) -> Self:
        if (self.path is None) == (not self.url):
            raise ValueError("set either `path` or `url`")
        return self

    @property
    def place(self) -> str:
        return self.url or (self.path.name if self.path else "")

    def open(self, host: Host) -> GitRepositorySource:
        repository = Repository(
            clone=self.path or host.settings.data_dir.absolute() / "repositories" / f"{self.name}.git",
            url=self.url,
            branch=self.branch,
            links=self.links,
            token=host.settings.secret(self.token_env, self.name) if self.token_env else "",
            readers=frozenset(self.readers),
            open_labels=self.open_labels,
        )
        return GitRepositorySource(self.name, repository)

    def files(self, host: Host) -> GitRepositorySource:
        return self.open(host)
