"""Logins to MCP servers: the SDK's server behind an authorization server on loopback, through the production loop."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

pytest.importorskip("keyring")

from tests.file_keyring import use_file
from tests.frontend.scripted_host import ScriptedHost
from tests.mcp.authorization import (
    Answer,
    Asked,
    AuthorizationServer,
    Guarded,
    answered,
    authorization_server,
    browse,
    guarded_server,
    parameters,
)
from tests.mcp.harness import call, connected, eventually, session_with, standing, turns
from tests.runtime.session_harness import LiveSession
from tui_agent.config.mcp_servers import given_entry
from tui_agent.core import events
from tui_agent.tools.mcp.oauth import exchange, login
from tui_agent.tools.mcp.oauth.exchange import check_address
from tui_agent.tools.mcp.oauth.kept import KeptLogin
from tui_agent.tools.mcp.oauth.login import Login
from tui_agent.tools.mcp.status import LoginError, ServerStatus


@pytest.fixture(autouse=True)
def keyring_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return use_file(monkeypatch, tmp_path / "keyring.json")


@pytest.fixture
def issuer() -> Iterator[AuthorizationServer]:
    with authorization_server() as made:
        yield made


@pytest.fixture
def vault(issuer: AuthorizationServer) -> Iterator[Guarded]:
    with guarded_server(issuer) as made:
        yield made


def at(guarded: Guarded, **oauth: Any) -> dict[str, Any]:
    return {"vault": {"url": guarded.url, **({"oauth": oauth} if oauth else {})}}


async def stands(live: LiveSession, status: ServerStatus) -> str:
    """Wait until the server stands so; the reason."""
    await eventually(lambda: live.session.mcp.servers and standing(live, "vault").status is status)
    return standing(live, "vault").why


async def logged_in(live: LiveSession, *, device: bool = False) -> str:
    """Log in with a browser of this machine; the address that was opened."""
    invitation = await live.session.mcp.logins.begin("vault", device=device)
    await asyncio.to_thread(browse, invitation.address)
    await stands(live, ServerStatus.READY)
    return invitation.address


def results(live: LiveSession) -> list[str]:
    return [f"{event.type}: {event.content}" for event in live.events if isinstance(event, events.ToolResult)]


def notices(live: LiveSession) -> list[str]:
    return [event.text for event in live.of(events.Notice)]


async def test_a_server_that_wants_a_login_is_used_after_one(
    tmp_path: Path, keyring_file: Path, issuer: AuthorizationServer, vault: Guarded
) -> None:
    script = turns(call("vault__add", a=1, b=2), call("vault__token"))
    async with session_with(tmp_path, at(vault), script) as live:
        why = await stands(live, ServerStatus.LOGIN)
        assert why == "nobody has logged in; `agent-tui mcp login vault` logs in"
        await eventually(lambda: [each.status for each in live.of(events.ServerChanged)] == ["needs a login"])
        asked = parameters(await logged_in(live))
        assert asked["resource"] == vault.url
        assert asked["code_challenge_method"] == "S256"
        assert asked["scope"] == "read"
        assert notices(live)[-1] == "MCP server vault: logged in."
        await connected(live, "vault")
        await live.run()
        assert results(live)[0] == "tool_succeeded: 3"
        assert results(live)[1] == "tool_succeeded: it is [masked:vault.access_token]"
    secret = [*issuer.tokens, *issuer.refreshes]
    assert all(value in keyring_file.read_text() for value in secret)
    written = [file for file in tmp_path.rglob("*") if file.is_file() and file != keyring_file]
    assert [file for file in written if any(value.encode() in file.read_bytes() for value in secret)] == []
    [client] = issuer.clients.values()
    assert client["application_type"] == "native"
    assert issuer.times("/token", resource=vault.url) == 1

    (tmp_path / "later").mkdir()
    async with session_with(tmp_path / "later", at(vault), turns(call("vault__add", a=2, b=2))) as later:
        await connected(later, "vault")
        await later.run()
        assert results(later)[0] == "tool_succeeded: 4"
        assert await later.session.mcp.logins.log_out("vault")
        await stands(later, ServerStatus.LOGIN)
    assert json.loads(keyring_file.read_text()) == {}
    assert issuer.times("/revoke") == 1
    assert len(issuer.clients) == 1


async def test_a_token_is_renewed_before_it_ends_and_in_the_middle_of_a_session(
    tmp_path: Path, issuer: AuthorizationServer, vault: Guarded, keyring_file: Path
) -> None:
    script = turns(call("vault__add", a=1, b=2), call("vault__add", a=3, b=4))
    async with session_with(tmp_path, at(vault), script) as live:
        await stands(live, ServerStatus.LOGIN)
        await logged_in(live)
        issuer.tokens.clear()
        await live.run()
        assert results(live)[:2] == ["tool_succeeded: 3", "tool_succeeded: 7"]
        assert vault.calls == ["add", "add"]
        assert issuer.times("/token", grant_type="refresh_token", resource=vault.url) == 1
    keyring_file.write_text(re.sub(r"(renew_at[^:]*:)[\d.]+", r"\1 1.0", keyring_file.read_text()))
    async with session_with(tmp_path, at(vault), []) as later:
        await stands(later, ServerStatus.READY)
    assert issuer.times("/token", grant_type="refresh_token") == 2


async def test_a_login_that_is_over_fails_the_call_and_says_so(
    tmp_path: Path, issuer: AuthorizationServer, vault: Guarded
) -> None:
    async with session_with(tmp_path, at(vault), turns(call("vault__add", a=1, b=2))) as live:
        await stands(live, ServerStatus.LOGIN)
        first = parameters(await logged_in(live))
        issuer.tokens.clear()
        issuer.refreshes.clear()
        await live.run()
        assert (
            "The server vault takes no calls: its login was refused or is over. Go on without it; "
            "the operator can log in."
        ) in results(live)[0]
        assert await stands(live, ServerStatus.LOGIN)
        again = parameters(await logged_in(live))
        assert again["client_id"] == first["client_id"], "a client is registered once"
        assert again["redirect_uri"] == first["redirect_uri"]


async def test_a_login_lasts_while_the_authorization_server_is_away(
    tmp_path: Path, issuer: AuthorizationServer, vault: Guarded
) -> None:
    async with session_with(tmp_path, at(vault), turns(call("vault__add", a=1, b=2))) as live:
        await stands(live, ServerStatus.LOGIN)
        await logged_in(live)
        issuer.tokens.clear()
        issuer.instead["/token"] = lambda _: answered({"error": "temporarily_unavailable"}, 503)
        await live.run()
        assert results(live)[0].startswith("tool_failed")
        assert "access-" not in results(live)[0]
        await eventually(lambda: "temporarily_unavailable" in standing(live, "vault").why)
        assert "its login could not be renewed" in standing(live, "vault").why
        del issuer.instead["/token"]
        live.session.mcp.reconnect("vault")
        await stands(live, ServerStatus.READY)


async def test_a_scope_that_one_tool_needs_is_asked_for_at_the_next_login(
    tmp_path: Path, issuer: AuthorizationServer, vault: Guarded
) -> None:
    vault.challenges["add"] = "write"
    script = turns(call("vault__add", a=1, b=2), call("vault__token"))
    async with session_with(tmp_path, at(vault), [*script, *turns(call("vault__add", a=3, b=4))]) as live:
        await stands(live, ServerStatus.LOGIN)
        await logged_in(live)
        await live.run()
        assert (
            "The server vault refused the tool add: its login lacks the scopes write. "
            "The operator can log in again with them"
        ) in results(live)[0]
        assert results(live)[1].startswith("tool_succeeded"), "other tools go on"
        assert parameters(await logged_in(live))["scope"] == "read write"
        await eventually(lambda: notices(live)[-1] == "MCP server vault: logged in.")
        await stands(live, ServerStatus.READY)
        await live.session.submit("again")
        await live.ended()
        assert "tool_succeeded: 7" in results(live)


async def test_two_servers_of_one_host_have_a_login_each(tmp_path: Path, vault: Guarded) -> None:
    servers = {**at(vault), "other": {"url": f"{vault.url}?tenant=b"}}
    async with session_with(tmp_path, servers, []) as live:
        await stands(live, ServerStatus.LOGIN)
        await logged_in(live)
        live.session.mcp.reconnect("other")
        await eventually(lambda: standing(live, "other").status is ServerStatus.LOGIN)


@pytest.mark.parametrize("slash", ["", "/"])
async def test_a_slash_at_the_end_makes_no_other_issuer(
    tmp_path: Path, issuer: AuthorizationServer, slash: str
) -> None:
    """Google's servers name their issuer with one that its metadata do not have; others the other way round."""
    issuer.changed["issuer"] = issuer.url + ("" if slash else "/")
    with guarded_server(issuer, named=issuer.url + slash) as vault:
        async with session_with(tmp_path, at(vault), []) as live:
            await stands(live, ServerStatus.LOGIN)
            await logged_in(live)


async def test_without_a_keyring_a_login_ends_with_the_session(
    tmp_path: Path, vault: Guarded, keyring_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    async with session_with(tmp_path, at(vault), turns(call("vault__add", a=1, b=2))) as live:
        await stands(live, ServerStatus.LOGIN)
        await logged_in(live)
        assert notices(live)[-1] == (
            "MCP server vault: logged in, until this session ends: no keyring of this system could be used "
            "(NoKeyringError)."
        )
        await live.run()
        assert results(live)[0] == "tool_succeeded: 3"
    async with session_with(tmp_path, at(vault), []) as later:
        await stands(later, ServerStatus.LOGIN)
    assert not keyring_file.exists()


async def test_a_login_with_a_code_waits_until_it_is_entered(
    tmp_path: Path, issuer: AuthorizationServer, vault: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login, "_LEAST_INTERVAL", 0.01)
    monkeypatch.setattr(login, "_SLOWER", 0.01)
    slow = iter(["slow_down"])
    real = issuer.answer

    def hurried(asked: Asked) -> Answer:
        if asked.path == "/token" and (code := next(slow, "")):
            return answered({"error": code}, 400)
        return real(asked)

    monkeypatch.setattr(issuer, "answer", hurried)
    async with session_with(tmp_path, at(vault), []) as live:
        await stands(live, ServerStatus.LOGIN)
        invitation = await live.session.mcp.logins.begin("vault", device=True)
        assert invitation.code == "ABCD-EFGH"
        assert invitation.address == f"{issuer.url}/enter"
        await eventually(lambda: issuer.times("/token") > 2)
        issuer.entered.update(issuer.devices)
        await stands(live, ServerStatus.READY)
        issuer.tokens.clear()
        issuer.refreshes.clear()
        live.session.mcp.reconnect("vault")
        await stands(live, ServerStatus.LOGIN)
        issuer.instead["/token"] = lambda _: answered({"error": "access_denied"}, 400)
        await live.session.mcp.logins.begin("vault", device=True)
        await eventually(lambda: "refused: access_denied" in notices(live)[-1])
        assert len(issuer.clients) == 1


async def test_an_answer_that_is_not_of_this_login_is_turned_away_and_the_right_one_may_be_pasted(
    tmp_path: Path, vault: Guarded
) -> None:
    async with session_with(tmp_path, at(vault), []) as live:
        await stands(live, ServerStatus.LOGIN)
        logins = live.session.mcp.logins
        address = (await logins.begin("vault", device=False)).address
        right = await asyncio.to_thread(browse, address, follow=False)
        wrong = right.replace("state=", "state=x")
        assert await asyncio.to_thread(status_of, wrong) == 400
        with pytest.raises(LoginError, match="not the address that this login ends at"):
            logins.paste("vault", wrong)
        assert logins.waits("vault")
        logins.paste("vault", f"  {right}\n")
        await stands(live, ServerStatus.READY)
        with pytest.raises(OSError, match="refused"):
            await asyncio.to_thread(status_of, right)


async def test_the_console_shows_the_address_takes_the_pasted_one_and_logs_out(
    tmp_path: Path, vault: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    async with session_with(tmp_path, at(vault), []) as live:
        await stands(live, ServerStatus.LOGIN)
        host = ScriptedHost(live.session, "", "http://localhost/callback?code=1")
        await host.typed("/mcp")
        assert "/mcp login vault logs in." in "\n".join(host.reports["MCP servers"])
        [said] = await host.typed("/mcp login vault")
        opened, _, hint = said.splitlines()
        assert opened.startswith("Open this address in a browser, at 127.0.0.1")
        assert hint.endswith("write /mcp login vault again.")
        assert await host.typed("/mcp login vault") == ["The login to vault is given up."]
        [said] = await host.typed("/mcp login vault")
        [refused] = await host.typed("/mcp login vault")
        assert "not the address that this login ends at" in refused
        host.answers.append(await asyncio.to_thread(browse, said.splitlines()[1], follow=False))
        await host.typed("/mcp login vault")
        await stands(live, ServerStatus.READY)
        assert await host.typed("/mcp logout vault") == ["Logged out of vault."]
        await stands(live, ServerStatus.LOGIN)
        [code] = await host.typed("/mcp login vault --device")
        assert code.endswith("Enter the code ABCD-EFGH there.")
        [unknown] = await host.typed("/mcp login nobody")
        assert "no MCP server of that name was started" in unknown


async def test_a_port_that_is_taken_is_named(tmp_path: Path, vault: Guarded) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        async with session_with(tmp_path, at(vault, callbackPort=port), []) as live:
            await stands(live, ServerStatus.LOGIN)
            with pytest.raises(
                LoginError, match=f"the port {port}, which its entry names as callbackPort, is in use"
            ):
                await live.session.mcp.logins.begin("vault", device=False)
        taken.close()
        async with session_with(tmp_path, at(vault, callbackPort=port), []) as live:
            await stands(live, ServerStatus.LOGIN)
            assert parameters(await logged_in(live))["redirect_uri"] == f"http://localhost:{port}/callback"


def status_of(address: str) -> int:
    try:
        with urlopen(address, timeout=30) as answer:
            return int(answer.status)
    except HTTPError as error:
        with error:
            return error.code


# --- as which client -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "oauth", "client"),
    [
        ({"client_id_metadata_document_supported": True}, {"clientMetadataUrl": "https://example.org/client.json"},
         "https://example.org/client.json"),
        ({"registration_endpoint": None}, {"clientId": "known"}, "known"),
        ({}, {"clientMetadataUrl": "https://example.org/client.json"}, "client-0"),
    ],
    ids=["document", "registered before", "registered at the login"],
)  # fmt: skip
async def test_the_client_is_the_one_of_the_entry_or_is_registered(
    tmp_path: Path, issuer: AuthorizationServer, vault: Guarded, changed: Any, oauth: Any, client: str
) -> None:
    issuer.changed.update(changed)
    async with session_with(tmp_path, at(vault, **oauth), []) as live:
        await stands(live, ServerStatus.LOGIN)
        assert parameters(await logged_in(live))["client_id"] == client


async def test_a_client_of_the_entry_is_shown_to_no_other_issuer(
    tmp_path: Path, issuer: AuthorizationServer
) -> None:
    as_resource(issuer)
    known = {"clientId": "known", "clientSecret": "pass-word-9"}
    async with a_login(tmp_path, issuer.resource, **known) as first:
        await asyncio.gather(first.finish(), asyncio.to_thread(browse, (await first.begin()).address))
    [told] = [each.headers["Authorization"] for each in issuer.asked if each.path == "/token"]
    assert told == f"Basic {base64.b64encode(b'known:pass-word-9').decode()}"
    with authorization_server() as other:
        as_resource(issuer, authorization_servers=[other.url])
        async with a_login(tmp_path, issuer.resource, **known) as second:
            with pytest.raises(LoginError, match="where its clientId does not belong"):
                await second.begin()
        assert {each.path for each in other.asked} == {"/.well-known/oauth-authorization-server"}


# --- authorization servers and browsers that lie --------------------------------------------------------------


def as_resource(server: AuthorizationServer, **metadata: Any) -> None:
    """Let an authorization server be the MCP server too, one that refuses everything and names this metadata."""
    told = {"resource": server.resource, "authorization_servers": [server.url], **metadata}
    where = f'Bearer resource_metadata="{server.url}/about", scope="read"'
    server.instead["/mcp"] = lambda _: (401, {"WWW-Authenticate": where}, b"")
    server.instead["/about"] = lambda _: answered(told)


@asynccontextmanager
async def a_login(folder: Path, url: str, *, device: bool = False, **oauth: Any) -> AsyncIterator[Login]:
    entry = given_entry("vault", {"url": url, "oauth": oauth}, folder)
    made = Login(entry, KeptLogin(entry, folder, lambda _: None), device=device)
    try:
        yield made
    finally:
        await made.close()


METADATA = "/.well-known/oauth-authorization-server"
HTML = b"<html><script>alert(1)</script>"


def always(answer: Answer) -> Callable[[Asked], Answer]:
    return lambda _: answer


@pytest.mark.parametrize(
    ("changed", "instead", "says"),
    [
        ({"issuer": "http://127.0.0.1:1/other"}, {}, "are those of the issuer http://127.0.0.1:1/other, not of"),
        ({"code_challenge_methods_supported": None}, {}, "does not say that it protects codes"),
        ({"code_challenge_methods_supported": ["plain"]}, {}, "does not say that it protects codes"),
        ({"token_endpoint": "http://example.org/token"}, {}, "example.org/token, which is not protected by https"),
        ({"authorization_endpoint": "http://example.org/in"}, {}, "example.org/in, which is not protected by https"),
        ({"token_endpoint": "https://me:pw@example.org/"}, {}, "which is no place for it"),
        ({"registration_endpoint": None}, {}, "registers no clients by itself: register one there"),
        ({"registration_endpoint": "http://example.org/r"}, {}, "which is not protected by https"),
        ({"token_endpoint": 7}, {}, "says nowhere how to log in"),
        ({}, {METADATA: always((200, {}, HTML))}, "says nowhere how to log in"),
        ({}, {METADATA: always((302, {"Location": METADATA}, b""))}, "says nowhere how to log in"),
        ({}, {METADATA: always((200, {}, b" " * 1_100_000))}, "sends more than 1,000,000 bytes"),
        ({}, {METADATA: always((200, {"Content-Encoding": "gzip"}, b"\x1f"))}, "sends what nobody asked for"),
        ({}, {METADATA: always((503, {}, b""))}, "HTTP 503"),
        ({}, {"/about": always((500, {}, b""))}, "HTTP 500"),
        ({}, {"/register": always(answered({"error": "no", "error_description": "<b>\x1b[2J" + "x" * 999}, 403))},
         "does not register agent-tui: no (<b>"),
        ({}, {"/register": always((200, {}, HTML))}, "in a way that cannot be used"),
        ({}, {"/register": always(answered({"client_id": "c", "token_endpoint_auth_method": "client_secret_basic"}))},
         "in a way that cannot be used"),
        ({}, {"/about": always(answered({"resource": "https://bank.example/", "authorization_servers": ["https://x.example"]}))},
         "its metadata are those of https://bank.example/, another server"),
        ({}, {"/mcp": always((200, {}, b"{}")), "/about": always((404, {}, b"")), METADATA: always((404, {}, b""))},
         "it asks for no login"),
    ],
)  # fmt: skip
async def test_metadata_that_lie_end_a_login_before_anything_is_opened(
    tmp_path: Path, issuer: AuthorizationServer, changed: Any, instead: Any, says: str
) -> None:
    as_resource(issuer)
    issuer.changed.update(changed)
    issuer.instead.update(instead)
    async with a_login(tmp_path, issuer.resource) as begun:
        with pytest.raises(LoginError) as refused:
            await begun.begin()
    assert says in str(refused.value)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 700
    assert issuer.times("/token") == 0


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://example.org/mcp", "is not protected by https"),
        ("https://user:password@example.org/mcp", "is no place for it"),
    ],
)
async def test_a_login_goes_to_no_address_that_others_can_read(tmp_path: Path, url: str, says: str) -> None:
    async with a_login(tmp_path, url) as begun:
        with pytest.raises(LoginError, match=says) as refused:
            await begun.begin()
    assert "password" not in str(refused.value)


def test_a_server_elsewhere_sends_a_login_to_no_address_of_this_machine() -> None:
    for address in (
        "http://127.0.0.1:80/",
        "https://localhost/token",
        "https://[::1]/",
        "https://127.9.9.9/x",
    ):
        with pytest.raises(LoginError, match="no place for it"):
            check_address(address, "https://example.org/mcp")
    assert check_address("https://login.example/token", "https://example.org/mcp").host == "login.example"


@pytest.mark.parametrize(
    ("back", "says"),
    [
        ({"error": "access_denied", "error_description": "<b>not\x1b[2J</b>"}, "refused: access_denied (<b>not"),
        ({"code": "x", "iss": "https://evil.example"}, "not from the issuer that was asked"),
        ({"code": "x", "iss": None}, "not from the issuer that was asked"),
        ({"error": "access_denied", "error_description": "call 555", "iss": "https://evil.example"},
         "not from the issuer that was asked"),
        ({"code": "never given"}, "gives no token: invalid_grant (<b>no</b> such"),
    ],
)  # fmt: skip
async def test_an_answer_of_the_browser_that_cannot_be_right_ends_the_login(
    tmp_path: Path, issuer: AuthorizationServer, back: dict[str, Any], says: str
) -> None:
    as_resource(issuer)
    async with a_login(tmp_path, issuer.resource) as begun:
        asked = parameters((await begun.begin()).address)
        given = {"state": asked["state"], "iss": issuer.url, **back}
        query = urlencode({name: value for name, value in given.items() if value is not None})
        begun.paste(f"{asked['redirect_uri']}?{query}")
        with pytest.raises(LoginError) as refused:
            await begun.finish()
    assert says in str(refused.value)
    assert "555" not in str(refused.value)
    assert str(refused.value).isprintable()


SECRET = "very-secret-token"


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ((200, {}, HTML), "not of the form"),
        (answered({"access_token": 5, "refresh_token": SECRET}), "not of the form"),
        (answered({"access_token": SECRET, "token_type": "mac"}), "not of the form"),
        (answered({"access_token": SECRET}, 500), "gives no token: HTTP 500"),
        ((200, {}, SECRET.encode() * 100_000), "sends more than"),
        ((307, {"Location": "http://127.0.0.1:1/steal"}, b""), "gives no token: HTTP 307"),
    ],
)
async def test_rubbish_instead_of_a_token_is_named_without_its_values(
    tmp_path: Path, issuer: AuthorizationServer, answer: Answer, says: str
) -> None:
    as_resource(issuer)
    issuer.instead["/token"] = always(answer)
    async with a_login(tmp_path, issuer.resource) as begun:
        await asyncio.to_thread(browse, (await begun.begin()).address)
        with pytest.raises(LoginError, match=says) as refused:
            await begun.finish()
    assert SECRET not in str(refused.value)


async def test_a_token_endpoint_that_hangs_is_given_up(
    tmp_path: Path, issuer: AuthorizationServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_resource(issuer)

    def hang(_: Asked) -> Answer:
        issuer.release.wait()
        return 200, {}, b""

    issuer.instead["/token"] = hang
    async with a_login(tmp_path, issuer.resource) as begun:
        await asyncio.to_thread(browse, (await begun.begin()).address)
        monkeypatch.setattr(exchange, "_STEP", 0.1)
        with pytest.raises(LoginError, match=re.escape("no answer within 0.1 s")):
            await begun.finish()


async def test_a_login_that_nobody_makes_ends(
    tmp_path: Path, issuer: AuthorizationServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_resource(issuer)
    monkeypatch.setattr(login, "PATIENCE", 0.1)
    async with a_login(tmp_path, issuer.resource) as begun:
        await begun.begin()
        with pytest.raises(LoginError, match=re.escape("nobody logged in within 0.1 s")):
            await begun.finish()


async def test_a_code_is_not_offered_where_there_is_none(tmp_path: Path, issuer: AuthorizationServer) -> None:
    as_resource(issuer)
    issuer.changed["device_authorization_endpoint"] = None
    async with a_login(tmp_path, issuer.resource, device=True) as begun:
        with pytest.raises(LoginError, match="has no login with a code; log in with a browser"):
            await begun.begin()
    del issuer.changed["device_authorization_endpoint"]
    issuer.instead["/device"] = always(
        answered({"device_code": "d", "user_code": "u", "verification_uri": "file:///etc/passwd"})
    )
    async with a_login(tmp_path, issuer.resource, device=True) as begun:
        with pytest.raises(LoginError, match="no place for it"):
            await begun.begin()


def test_what_a_keyring_holds_of_another_address_is_not_used(tmp_path: Path, keyring_file: Path) -> None:
    async def loaded(url: str) -> object:
        return await KeptLogin(given_entry("vault", {"url": url}, tmp_path), tmp_path, lambda _: None).load()

    entry = given_entry("vault", {"url": "https://a.example/mcp"}, tmp_path)
    name = KeptLogin(entry, tmp_path, lambda _: None)._name
    for text in ("{", "[]", json.dumps({"server": "https://b.example/mcp"})):
        keyring_file.write_text(json.dumps({f"agent-tui {name}": text}))
        assert asyncio.run(loaded(entry.url)) is None
