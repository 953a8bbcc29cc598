"""Each way out of the bot, seen at a real proxy (tinyproxy), to a server whose certificate a private authority signed."""

from __future__ import annotations

import asyncio
import os
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.fakes.teams_connector import rsa_key

pytestmark = pytest.mark.external

HOST = "127.0.0.2"  # of this machine, and in no list of exemptions
THROUGH = "127.0.0.3"  # the address from which the proxy asks
PROXY_PORT = 18888
CLIENTS = ("http", "login", "keys", "teams", "botbuilder", "slack", "slack-session", "mcp", "requests")


def certificates(folder: Path) -> tuple[Path, Path]:
    """Write the certificate of a private authority, and the key and certificate that it signed for HOST."""
    now = datetime.now(UTC)

    def certificate(name: str, issuer: str) -> x509.CertificateBuilder:
        named = [x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, each)]) for each in (name, issuer)]
        begun = x509.CertificateBuilder().subject_name(named[0]).issuer_name(named[1]).serial_number(1 + (name == HOST))
        key = rsa_key(name).public_key()
        begun = begun.public_key(key).not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
        by = x509.AuthorityKeyIdentifier.from_issuer_public_key(rsa_key(issuer).public_key())
        return begun.add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False).add_extension(
            by, critical=False
        )

    authority = certificate("authority", "authority").add_extension(x509.BasicConstraints(True, 0), critical=True)
    usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
    signed = authority.add_extension(usage, critical=True).sign(rsa_key("authority"), SHA256())
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address(HOST))])
    server = certificate(HOST, "authority").add_extension(names, critical=False).sign(rsa_key("authority"), SHA256())
    bundle, pair = folder / "authority.pem", folder / "server.pem"
    bundle.write_bytes(signed.public_bytes(Encoding.PEM))
    key = rsa_key(HOST).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    pair.write_bytes(key + server.public_bytes(Encoding.PEM))
    return bundle, pair


@asynccontextmanager
async def server(pair: Path | None, asked: list[tuple[str, str | None]]) -> AsyncIterator[int]:
    async def answer(request: web.Request) -> web.Response:
        asked.append((request.path.split("/")[1], request.remote))
        return web.json_response({"ok": True})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    context = None
    if pair is not None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(pair)
    await web.TCPSite(runner, HOST, 0, ssl_context=context).start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


@asynccontextmanager
async def proxy(folder: Path) -> AsyncIterator[None]:
    """Run tinyproxy, whose connections come from THROUGH."""
    settings = folder / "proxy.conf"
    lines = (f"Port {PROXY_PORT}", "Listen 127.0.0.1", "Allow 127.0.0.1", f"Bind {THROUGH}")
    settings.write_text("\n".join((*lines, "Timeout 30", "MaxClients 50", "")))
    process = await asyncio.create_subprocess_exec("tinyproxy", "-d", "-c", settings)
    try:
        async with asyncio.timeout(10):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", PROXY_PORT)
                except OSError:
                    await asyncio.sleep(0.05)
                    continue
                writer.close()
                break
        yield
    finally:
        process.terminate()
        await process.wait()


@pytest.mark.parametrize("scheme", ["https", "http"])
async def test_every_client_goes_through_the_proxy_and_trusts_the_private_authority(
    tmp_path: Path, scheme: str
) -> None:
    bundle, pair = certificates(tmp_path)
    asked: list[tuple[str, str | None]] = []
    async with server(pair if scheme == "https" else None, asked) as port, proxy(tmp_path):
        address = f"{scheme}://{HOST}:{port}"
        environment = os.environ | {
            "HTTPS_PROXY": f"http://127.0.0.1:{PROXY_PORT}",
            "HTTP_PROXY": f"http://127.0.0.1:{PROXY_PORT}",
            "SSL_CERT_FILE": str(bundle),
            "REQUESTS_CA_BUNDLE": str(bundle),
        }
        output = asyncio.subprocess.PIPE
        arguments = (sys.executable, "-m", "tests.external.ways_out", address)
        process = await asyncio.create_subprocess_exec(*arguments, env=environment, stdout=output)
        told, _ = await asyncio.wait_for(process.communicate(), 60)
    assert set(asked) == {(client, THROUGH) for client in CLIENTS}, told.decode()


async def test_without_the_private_authority_nothing_is_said(tmp_path: Path) -> None:
    _, pair = certificates(tmp_path)
    asked: list[tuple[str, str | None]] = []
    async with server(pair, asked) as port:
        arguments = (sys.executable, "-m", "tests.external.ways_out", f"https://{HOST}:{port}")
        process = await asyncio.create_subprocess_exec(*arguments, stdout=asyncio.subprocess.DEVNULL)
        assert await asyncio.wait_for(process.wait(), 60) == 0
    assert asked == []
