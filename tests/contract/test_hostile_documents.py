"""No document may freeze a process, end an ingestion, or be shown to others than it names."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from adapters.sources import parsing
from adapters.sources.folder import FolderSource
from core.model.conversation import PUBLIC
from core.model.document import Document
from core.ports import LeftOut
from tests.damaged_documents import damaged_documents_read
from tests.fakes.documents import VAULT, everything, pdf, slow_page


async def read(folder: Path, **files: str | bytes) -> tuple[dict[str, frozenset[str]], dict[str, str]]:
    """Return the readers of each document in a folder with these files, and why each other one is left out."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    found = await everything(FolderSource("docs", folder))
    return (
        {each.id.removeprefix("docs/"): each.readers for each in found if isinstance(each, Document)},
        {each.path: each.reason for each in found if isinstance(each, LeftOut)},
    )


# --- readers ---------------------------------------------------------------------------------------------------------

NOT_UNDERSTOOD = {
    "a comment before it.md": "<!-- draft -->\n---\nreaders: channel:vault\n---\nUnseal.",
    "a heading before it.md": "# Vault\n\n---\nreaders: channel:vault\n---\nUnseal.",
    "TOML.md": '+++\nreaders = ["channel:vault"]\n+++\nUnseal.',
    "JSON.md": '{\n  "title": "x",\n  "readers": ["channel:vault"]\n}\nUnseal.',
    "JSON in a line.md": '{"title": "x", "readers": ["channel:vault"]}\nUnseal.',
    "semicolons.md": ';;;\n"readers": "channel:vault"\n;;;\nUnseal.',
    "a comment at the fence.md": "--- # ours\nreaders: channel:vault\n---\nUnseal.",
    "no end.md": "---\nreaders: channel:vault\n\nUnseal.",
    "no end, and long.md": "---\n" + "tag: x\n" * 500 + "readers: channel:vault\n\nUnseal.",
    "indented.md": "  ---\n  readers: channel:vault\n  ---\nUnseal.",
    "four dashes.md": "----\nreaders: channel:vault\n----\nUnseal.",
    "no fence.md": "readers: channel:vault\n\nUnseal.",
    "bold.md": "# Vault\n\n**Readers:** channel:vault\n\nUnseal.",
    "a table.md": "# Vault\n\n| Readers | channel:vault |\n| --- | --- |\n\nUnseal.",
    "in a code block.md": "```yaml\n---\nreaders: channel:vault\n---\n```\nUnseal.",
    "invisible characters in it.md": "# Vault\n\nread\u200bers\u200b: channel:vault\n\nUnseal.",
    "twice.md": "---\nreaders: channel:vault\nreaders: public\n---\nUnseal.",
    "twice in two cases.md": "---\nreaders: channel:vault\nReaders: public\n---\nUnseal.",
    "after the end.md": "---\ntitle: x\n---\nreaders: channel:vault\n---\nUnseal.",
    "nested.md": "---\nplumbline:\n  readers: channel:vault\n---\nUnseal.",
    "a merge key.md": "---\nbase: &base\n  readers: channel:vault\n<<: *base\n---\nUnseal.",
    "a block of text.md": "---\ntitle: |\n  x\n  readers: channel:vault\n---\nUnseal.",
    "commented out.md": "---\ntitle: x\n# readers: channel:vault\n---\nUnseal.",
    "misspelt.md": "---\nraeders: channel:vault\n---\nUnseal.",
    "singular.md": "---\nreader: channel:vault\n---\nUnseal.",
    "audience.md": "---\naudience: channel:vault\n---\nUnseal.",
    "access.md": "---\naccess: [channel:vault]\n---\nUnseal.",
    "private.md": "---\nprivate: true\n---\nUnseal.",
    "a number.md": "---\nreaders: 5\n---\nUnseal.",
    "null.md": "---\nreaders: null\n---\nUnseal.",
    "empty.md": "---\nreaders: []\n---\nUnseal.",
    "a mapping.md": "---\nreaders: [channel: vault]\n---\nUnseal.",
    "a tag.md": "---\nreaders: !!set {vault}\n---\nUnseal.",
    "somebody unknown.md": "---\nreaders: the vault team\n---\nUnseal.",
    "UTF-16 without a mark.md": "---\nreaders: channel:vault\n---\nUnseal.".encode("utf-16-le"),
    "UTF-32.md": "---\nreaders: channel:vault\n---\nUnseal.".encode("utf-32"),
    "plain.txt": "Vault\n\nreaders: channel:vault\n\nUnseal.",
    "property.html": '<meta property="readers" content="channel:vault"><p>Unseal.</p>',
    "a meta without content.html": '<meta name="readers" value="channel:vault"><p>Unseal.</p>',
    "a misspelt meta.html": '<meta name="reader" content="channel:vault"><p>Unseal.</p>',
    "a meta in a comment.html": '<!-- <meta name="readers" content="channel:vault"> --><p>Unseal.</p>',
    "two meta.html": '<meta name=readers content="channel:vault"><meta name=readers content=public><p>Unseal.</p>',
    "a comment.html": "<!--\nreaders: channel:vault\n-->\n<p>Unseal.</p>",
    "UTF-7.html": b'<meta charset="utf-7"><p>\xff</p>\n+AHI-eaders: channel:vault',
    "a first page.pdf": pdf("Readers: channel:vault", "Unseal."),
}
UNDERSTOOD = {
    "lines end with CR.md": "---\rreaders: channel:vault\r---\rUnseal.",
    "lines end with CR LF.md": "---\r\nreaders: channel:vault\r\n---\r\nUnseal.",
    "lines end with NEL.md": "---\x85readers: channel:vault\x85---\x85Unseal.",
    "lines end with LS.md": "---\u2028readers: channel:vault\u2028---\u2028Unseal.",
    "two byte order marks.md": "\ufeff\ufeff---\nreaders: channel:vault\n---\nUnseal.",
    "nothing visible before it.md": "\u200b---\nreaders: channel:vault\n---\nUnseal.",
    "another case.md": "---\nREADERS : channel:vault\n---\nUnseal.",
    "an alias.md": "---\nours: &ours [channel:vault]\nreaders: *ours\n---\nUnseal.",
    "a long one.md": "---\n" + "tag: x\n" * 2_000 + "readers: channel:vault\n---\nUnseal.",
    "UTF-16.md": "---\nreaders: channel:vault\n---\nUnseal.".encode("utf-16"),
    "front matter.html": "---\nreaders: channel:vault\n---\n<p>Unseal.</p>",
}
OPEN = {
    "a sentence.md": "# Reading\n\nOur readers: few.\n\nThis page tells readers how: read it. Readers of it learn.",
    "far below.md": "# Settings\n" + "\nMore.\n" * 300 + "\nreaders: channel:vault\n",
    "what it says itself.md": "---\naudience: public\nprivate: false\nreaders: public\n---\n# Settings\n\nreaders: channel:vault",
    "other systems.html": '<meta name="audience" content="all"><meta name="description" content="for readers"><p>Hi.</p>',
    "a rule.md": "---\n\n# Title\n\nText.",
}


async def test_readers_that_are_not_understood_make_no_document_public(tmp_path: Path) -> None:
    found, left_out = await read(tmp_path, **NOT_UNDERSTOOD)
    assert found == {}
    assert left_out.keys() == NOT_UNDERSTOOD.keys()


RESTRICTED = {
    "nested.md": "---\nmetadata: {owner: vault, access: {level: staff}}\n---\nUnseal.",
    "nested readers.md": "---\nplumbline: {readers: [channel:vault]}\n---\nUnseal.",
    "an anchor below.md": "---\nx: &who {viewers: [vault]}\npage: {meta: [*who]}\n---\nUnseal.",
    "a merge key.md": "---\nx: &who {visibility: private}\n<<: *who\n---\nUnseal.",
    "an anchor that restricts elsewhere.md": "---\ntags: &who [vault]\nallowed_groups: *who\n---\nUnseal.",
    "groups.md": "---\nallowed-groups: [vault]\n---\nUnseal.",
    "camel.md": "---\nviewPermissions: vault\n---\nUnseal.",
    "level.md": "---\nsecurity_level: 3\n---\nUnseal.",
    "classified.md": "---\nclassification: internal\n---\nUnseal.",
    "internal.md": "---\ninternal: true\n---\nUnseal.",
    "not public.md": "---\npublic: no\n---\nUnseal.",
    "nobody.md": "---\naccess: none\n---\nUnseal.",
    "visible.md": "---\nvisible_to: vault\n---\nUnseal.",
    "login.md": "---\nlogin_required: yes\n---\nUnseal.",
    "twice.md": "---\nvisibility: private\nvisibility: public\n---\nUnseal.",
    "an empty list.md": "---\nviewers: []\n---\nUnseal.",
    "a script.md": "import X from 'x'\n\nexport const meta = {\n  title: 'x',\n  audience: 'vault',\n}\n\nUnseal.",
    "a script in a line.md": "export const frontmatter = { title: 'x', isPublic: false };\n\nUnseal.",
    "TOML.md": '+++\ntitle = "x"\n[extra]\nvisibility = "private"\n+++\nUnseal.',
    "JSON.md": '{\n "a": {"b": 1\n },\n "restrictedTo": ["vault"]\n}\nUnseal.',
    "AsciiDoc.txt": "= Vault\n:toc:\n:access-level: staff\n\nUnseal.",
    "RST.txt": "Vault\n=====\n\n:Author: x\n:Confidentiality: staff\n\nUnseal.",
    "a field above.md": "Title: Vault\nVisibility: staff\n\nUnseal.",
    "a comment.md": "<!-- visibility: private -->\n# Vault\n\nUnseal.",
    "a comment of a link.md": "[//]: # (access: staff)\n# Vault\n\nUnseal.",
    "below the title.md": "# Vault\n\n---\nowner: vault\nvisibility: private\n---\n\nUnseal.",
    "a meta.html": '<meta name="visibility" content="private"><p>Unseal.</p>',
    "a property.html": '<meta property="article:allowed_groups" content="vault"><p>Unseal.</p>',
}
"""Statements on access that are no valid `readers`: each is meant, and none is understood."""

OF_ACCESS = """
password: heron; passphrase: heron; encrypt: true; encrypted: yes; staff_only: true; subscribers-only: yes; only: [ops]
only_for: ops; tlp: red; TLP: "TLP:AMBER+STRICT"; nda: true; security: restricted; marking: CONFIDENTIAL; status: private
label: Strictly Confidential; tags: [confidential]; data_class: restricted; handling: need-to-know; secret: true
use: internal use only; note: do_not_distribute; sharing: private; shareable: false; requires_login: true; requiresAuth: true
authentication: required; authorization: [ops]; rbac: {anonymous: none}; groups: [payments]; hidden_from: [guests]
not_for: contractors; dissemination: limited; gated: true; paywall: true; unlisted: true; guests: false
vertraulich: ja; zugriff: intern; Zielgruppe: intern; lecteurs: equipe; confidencial: si; Confidentialité: haute
can_view: [leads]; whoMayRead: leads; seen-by: leads; members: [leads]; page_members: leads; roles: [lead]; acl: [leads]
distribution: leads; recipients: board; circulation: board; security_label: 2; sensitivityLabel: Finance; intended_for: leads
published: false; publish: no; draft: true; isDraft: yes; status: draft; page_state: unpublished; stage: embargoed; listed: false
isAccessibleForFree: False; conditions-of-access: staff; protective_marking: OFFICIAL; tags: [Confidential - Finance]
label: Acme Confidential; marking: For internal use only; note: not for external distribution; visibility: all leads
"""
NOT_OF_ACCESS = """
password_policy: strict; encryption: aes-256; append-only: yes; title: Restricted areas; status: stable
tlp: clear; encrypted: false; secret: shop-db; category: secrets; type: internal; linux_distribution: debian; scope: eu
summary: Confidential data is not stored here; group: databases; role: primary; hidden: false; hide_toc: true
login_url: https://a.example; external: true; handling: retry; share: 5%; guests: true; nda: no; mode: active
visibility: all staff; access: Open to all employees; acl: public; viewers: [everyone]; published: 2026-02-01; published: true
status: published; status: in review; draft: false; version: draft-2; isAccessibleForFree: https://schema.org/True
accessMode: textual; accessibility: AA; members_count: 4; reviewers: [ops]; lifecycle: production; tags: [security, access]
"""

UNRESTRICTED = {
    "ordinary.md": "---\ntitle: x\nslug: /a\nsidebar_position: 3\nsidebar: {label: Access, order: 1}\ntags: [access, private]\n"
    "description: 'Who may read: all'\ndraft: false\nhide_title: true\nread_time: 4\nauthors: [vault]\nlayout: page\n---\nHi.",
    "things.md": "---\naccess_log: /var/log/a\npublic_url: https://a.example\nprivate-key-path: /a\naccessibility: AA\n---\nHi.",
    "said to be open.md": "---\npublic: true\nprivate: false\nvisibility: Public\naccess: {level: everyone}\nrestricted: no\n---\nHi.",
    "prose.md": "# Runbook\n\nAudience: on-call engineers\n\nAccess: ask the team. Permissions: see below (access: admin).",
    "a rule.md": "# Runbook\n\nText.\n\n---\n\nYou need access: ask.\n\n---\n\nText.",
    "code.md": "# Runbook\n\n```yaml\npermissions:\n  contents: read\n```\n\n```js\nexport const a = { private: 1 }\n```",
    "a page.html": '<meta name="viewport" content="x"><meta property="og:title" content="Access"><p>Hi.</p>',
}

PLACES = {
    "a definition list.html": "<h1>Vault</h1><dl><dt>Audience</dt><dd>vault leads</dd></dl><p>Unseal.</p>",
    "a definition list in Markdown.md": "# Vault\n\n<dl>\n<dt>Can view</dt><dd>vault leads</dd>\n</dl>\n\nUnseal.",
    "a table.html": "<table><tr><td>Audience</td><td>leads</td></tr><tr><td>Owner</td><td>x</td></tr></table><p>Unseal.</p>",
    "a table with headers.html": "<table><tr><th>Owner</th><td>x</td></tr><tr><th>Access</th><td>leads</td></tr></table>",
    "a table with a title.md": "# Vault\n\n| Field | Value |\n|---|---|\n| Permissions | leads |\n\nUnseal.",
    "a table of one row.md": "# Vault\n\n| Access | leads |\n|---|---|\n\nUnseal.",
    "columns.md": "# Vault\n\n| Owner | Can view | Status |\n|---|---|---|\n| x | leads | active |\n\nUnseal.",
    "bold.md": "# Vault\n\n**Owner:** x\n**Audience:** leads\n\nUnseal.",
    "one bold.md": "# Vault\n\n**Classification:** Finance\n\nUnseal.",
    "a bold readers.html": "<h1>Vault</h1><p><b>Readers:</b> vault leads</p><p>Unseal.</p>",
    "a restriction in prose.md": "# Vault\n\nAccess: leads only\n\nUnseal.",
    "breaks.html": "<h1>Vault</h1><p>Owner: x<br>Audience: leads<br/>Updated: today</p><p>Unseal.</p>",
    "breaks.md": "# Vault\n\nOwner: x<br>Audience: leads\n\nUnseal.",
    "bars.md": "# Vault\n\n**Owner:** x | **Audience:** leads\n\nUnseal.",
    "a list.txt": "Vault\n\n- Owner: x\n- Audience: leads\n\nUnseal.",
    "JSON-LD.html": '<script type="application/ld+json">{"@type": "Article", "isAccessibleForFree": false}</script><p>Unseal.',
    "JSON-LD in lines.html": '<script type="application/ld+json">\n{"@id": "x",\n"conditionsOfAccess": "Staff"}</script>Unseal.',
    "JSON-LD in a list.html": '<script type="application/ld+json">[{"audience": "leads"}]</script><p>Unseal.</p>',
    "an attribute.html": '<body data-readers="leads"><p>Unseal.</p>',
    "an attribute within.html": '<main><article data-can-view="leads"><p>Unseal.</p></article></main>',
    "microdata.html": '<p itemprop="audience">leads</p><p>Unseal.</p>',
    "a footer.html": "<p>Unseal.</p><footer>Acme 2026<br><b>Confidential</b></footer>",
    "beside.html": "<aside><dl><dt>Audience</dt><dd>leads</dd></dl></aside><p>Unseal.</p>",
    "a mark.md": "# Vault\n\n**CONFIDENTIAL**\n\nUnseal.",
    "a quoted mark.md": "# Vault\n\n> Internal use only\n\nUnseal.",
    "a mark.txt": "Vault\n\nCONFIDENTIAL - Finance\n\nUnseal.",
    "a mark.pdf": pdf("Confidential", "Unseal."),
    "a first line.pdf": pdf("Classification: Finance", "Unseal."),
}
"""Places of a page that speak of access, for each format; each is meant, and none is understood."""
NOT_OF_THE_PAGE = {
    "people.md": "# Vault\n\n| Role | Person |\n|---|---|\n| On-call | Asha |\n| Manager | Mateo |\n\nUnseal.",
    "roles.md": "# Vault\n\n| Roles | Members |\n|---|---|\n| Lead | Asha |\n\nUnseal.",
    "permissions.md": "# Vault\n\n| Permission | Description |\n|---|---|\n| read | can view |\n| write | can edit |\n",
    "an audience in bold.md": "# Vault\n\n**Audience:** on-call engineers\n\nUnseal.",
    "needs.md": "# Vault\n\n## Prerequisites\n\n- Access: cluster-admin\n- Permissions: edit\n\nUnseal.",
    "an ordinary head.md": "# Vault\n\n**Owner:** payments\n**Status:** draft\n**Severity:** high\n\nUnseal.",
    "open to all.md": "# Vault\n\n| Owner | x |\n|---|---|\n| Visibility | All staff |\n\nUnseal.",
    "a title.md": "# Confidential computing\n\nRestricted profiles are strict.",
    "below prose.md": "# Vault\n\nThis is how.\n\n| Owner | x |\n|---|---|\n| Access | by badge |\n\nUnseal.",
    "a site.html": '<header><a href="/">Home</a></header><div data-view="x" data-role="main">Unseal.</div><footer>2026</footer>',
    "for search engines.html": '<meta name="distribution" content="Global"><div data-visibility="visible">Hi.</div>',
    "JSON-LD.html": '<script type="application/ld+json">{"accessMode": "textual", "isAccessibleForFree": true}</script><p>Hi.',
}


def pages(properties: str) -> dict[str, str]:
    """Return a page for each property."""
    each = [line for row in properties.strip().splitlines() for line in row.split("; ")]
    return {f"{number}.md": f"---\nowner: vault\n{line}\n---\nUnseal." for number, line in enumerate(each)}


async def test_a_property_that_speaks_of_access_in_any_words_withholds_the_page(tmp_path: Path) -> None:
    found, _ = await read(tmp_path, **pages(OF_ACCESS))
    assert [pages(OF_ACCESS)[name] for name in found] == []


async def test_a_property_that_speaks_of_something_else_leaves_the_page_open(tmp_path: Path) -> None:
    _, left_out = await read(tmp_path, **pages(NOT_OF_ACCESS))
    assert [pages(NOT_OF_ACCESS)[name] for name in left_out] == []


async def test_whatever_speaks_of_access_and_is_not_understood_makes_no_document_public(tmp_path: Path) -> None:
    found, left_out = await read(tmp_path, **RESTRICTED)
    assert found == {}
    assert left_out.keys() == RESTRICTED.keys()


async def test_ordinary_properties_and_prose_hide_no_document(tmp_path: Path) -> None:
    found, left_out = await read(tmp_path, **UNRESTRICTED)
    assert left_out == {}
    assert found == dict.fromkeys(UNRESTRICTED, frozenset({PUBLIC}))


async def test_a_place_of_a_page_that_speaks_of_access_withholds_it(tmp_path: Path) -> None:
    found, left_out = await read(tmp_path, **PLACES)
    assert found == {}
    assert left_out.keys() == PLACES.keys()


async def test_what_speaks_of_access_to_something_else_leaves_the_page_open(tmp_path: Path) -> None:
    found, left_out = await read(tmp_path, **NOT_OF_THE_PAGE)
    assert left_out == {}
    assert found == dict.fromkeys(NOT_OF_THE_PAGE, frozenset({PUBLIC}))


async def test_a_label_that_the_source_calls_open_leaves_the_page_open_and_no_other(tmp_path: Path) -> None:
    for name, label in (("ours", "Internal"), ("theirs", "Finance")):
        (tmp_path / f"{name}.md").write_text(f"---\nclassification: {label}\n---\nUnseal.")
    source = FolderSource("docs", tmp_path, readers=frozenset({VAULT}), open_labels=("internal",))
    found = [(each.id, each.readers) for each in await everything(source) if isinstance(each, Document)]
    assert found == [("docs/ours.md", {VAULT})]


async def test_readers_are_not_missed_for_how_a_file_is_encoded(tmp_path: Path) -> None:
    found, _ = await read(tmp_path, **UNDERSTOOD)
    assert found == dict.fromkeys(UNDERSTOOD, frozenset({VAULT}))


async def test_documents_that_only_speak_of_readers_are_not_hidden(tmp_path: Path) -> None:
    found, left_out = await read(tmp_path, **OPEN)
    assert (found, left_out) == (dict.fromkeys(OPEN, frozenset({PUBLIC})), {})


# --- what no library can parse ---------------------------------------------------------------------------------------


def _encrypted_in_an_unusual_way() -> bytes:
    return pdf("x").replace(b"trailer\n<<", b"trailer\n<< /Encrypt << /Filter /Odd /V 9 >> /ID [(a) (b)]")


UNREADABLE = {
    "idna.html": b'<meta charset="idna"><p>\xff</p>',
    "filter.pdf": pdf("x", contents="/Filter /Odd"),
    "JBIG2.pdf": pdf("x", contents="/Filter /JBIG2Decode"),
    "encryption.pdf": _encrypted_in_an_unusual_way(),
}


async def test_a_file_that_no_library_can_parse_does_not_end_the_ingestion(tmp_path: Path) -> None:
    found, left_out = await read(tmp_path, **UNREADABLE, **{"odd.html": "<![foo[bar]]>", "zebra.md": "Fine."})
    assert found.keys() == {"zebra.md"}, "the odd one has no text"
    assert left_out.keys() == UNREADABLE.keys()


async def test_a_page_that_cannot_be_read_does_not_take_the_others_of_its_file_along(tmp_path: Path) -> None:
    content = pdf("One.", "Two.")
    at = content.rindex(b"<< /Length") + 2
    found, left_out = await read(tmp_path, **{"till.pdf": content[:at] + b" /Filter /Odd" + content[at:]})
    assert (list(found), list(left_out)) == (["till.pdf#page=1"], ["till.pdf, page 2"])


async def test_a_name_that_is_no_text_does_not_end_the_ingestion(tmp_path: Path) -> None:
    (tmp_path / "b\udcff.md").write_text("Text.")
    found, left_out = await read(tmp_path, **{"good.md": "Fine."})
    assert (list(found), list(left_out)) == (["good.md"], [r"'b\udcff.md'"])


# --- limits ----------------------------------------------------------------------------------------------------------


@pytest.mark.external  # a process computes for its whole budget
async def test_a_file_does_not_take_longer_than_its_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "PROCESSOR_SECONDS", 0.5)
    found, left_out = await read(tmp_path, **{"a.html": slow_page(), "b.md": "Fine."})
    assert list(found) == ["b.md"]
    assert "seconds of processor time" in left_out["a.html"]


@pytest.mark.external  # a process starts
async def test_a_file_does_not_take_more_memory_than_its_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parsing, "MEMORY", 100 << 20)
    found, left_out = await read(tmp_path, **{"a.html": slow_page(), "b.md": "Fine."})
    assert list(found) == ["b.md"]
    assert "100 MiB" in left_out["a.html"]


async def test_nobody_waits_for_a_process_that_does_not_reply(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "WAITING_SECONDS", 0.2)
    _, left_out = await read(tmp_path, **{"a.html": slow_page()})
    assert left_out == {"a.html": "The file cannot be read within 0 seconds."}


async def test_an_ingestion_that_is_stopped_does_not_wait_for_a_file(tmp_path: Path) -> None:
    reading = asyncio.create_task(read(tmp_path, **{"a.html": slow_page()}))
    await asyncio.sleep(0.3)
    since = time.process_time()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert time.process_time() - since < 1


async def test_a_process_that_parses_sees_no_secret_of_the_bot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-not-to-be-seen")
    parsing.end_waiting_processes()
    await read(tmp_path, **{"a.md": "Fine."})
    [process] = parsing._waiting
    shown = await asyncio.to_thread(Path(f"/proc/{process._process.pid}/environ").read_bytes)
    assert b"xoxb" not in shown


async def test_damaged_documents_end_no_ingestion_and_are_public_only_where_they_name_nobody(tmp_path: Path) -> None:
    await damaged_documents_read(tmp_path, range(100))
