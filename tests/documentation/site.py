"""A hook of MkDocs: brings the pages at the root of the repository into the site, and mends the links between both."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGES = ("BENCHMARKS.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md")
NAMED = "|".join(re.escape(page) for page in PAGES)


def on_files(files: Any, config: Any) -> Any:
    """Return the files of the site, with the pages at the root."""
    file = import_module("mkdocs.structure.files").File  # of the group `docs`, which not every checkout has
    for page in PAGES:
        files.append(file.generated(config, page, abs_src_path=str(ROOT / page)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return the page with links to pages of the site, and without links to other files of the repository."""
    if page.file.src_uri in PAGES:
        text = re.sub(r"\]\(docs/", "](", markdown)
    else:
        text = re.sub(rf"\]\(\.\./({NAMED})", r"](\1", markdown)
    return re.sub(
        r"\[([^\]]+)\]\((?!https?:|#)(?![\w-]+\.md)(?!images/|examples/|plumbline\.schema)[^)]+\)", r"\1", text
    )
