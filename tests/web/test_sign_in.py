"""Keys, tokens, and a server without sign-in."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from everthread.cli import main
from everthread.errors import SettingsError
from everthread.web import ApiKeys, Authenticators, JwtKeys, LocalUser
from everthread.web.auth import new_key
from web_worker import SECRET, MakeWorker, token


def bearer(credential: str) -> dict[str, str]:
    return {"authorization": f"Bearer {credential}"}


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, str]:
    """A file with a key of Ada, and the key."""
    key, line = new_key("Ada Lovelace")
    file = tmp_path / "keys"
    file.write_text(f"# who may call\n\n{line}\n")
    return file, key


@pytest.mark.parametrize("header", ["authorization", "x-api-key"])
async def test_a_key_is_its_users(keys: tuple[Path, str], header: str) -> None:
    file, key = keys
    headers = bearer(key) if header == "authorization" else {header: key}

    identity = await ApiKeys(file).identify(headers)

    assert identity is not None
    assert (identity.user_id, identity.method) == ("Ada Lovelace", "key")
    assert key not in file.read_text() + repr(identity)


async def test_a_key_is_withdrawn_while_the_server_runs(keys: tuple[Path, str]) -> None:
    file, key = keys
    known = ApiKeys(file)

    file.write_text("# nobody\n")

    assert await known.identify(bearer(key)) is None


async def test_a_file_that_begins_with_a_byte_order_mark_is_read_without_it(keys: tuple[Path, str]) -> None:
    file, key = keys
    file.write_text(file.read_text().splitlines()[-1], encoding="utf-8-sig")

    identity = await ApiKeys(file).identify(bearer(key))

    assert identity is not None
    assert identity.user_id == "Ada Lovelace"


@pytest.mark.parametrize("headers", [{}, bearer(""), bearer("ek_wrong"), {"authorization": "Basic YTpi"}])
async def test_no_other_key_signs_in(keys: tuple[Path, str], headers: dict[str, str]) -> None:
    assert await ApiKeys(keys[0]).identify(headers) is None


@pytest.mark.parametrize("option", ["api-keys", "jwt-secret", "jwks"])
def test_a_file_that_is_no_text_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    file = tmp_path / "binary"
    file.write_bytes(b"\xa8\xff")

    code = main(["serve", "--port", "0", "--database", f"sqlite:///{tmp_path}/a.db", f"--{option}", str(file)])

    assert (code, "it is not UTF-8 text" in capsys.readouterr().err) == (2, True)


@pytest.mark.parametrize("line", ["ada", "ada secret", f"{'0' * 64}", f"ada {'g' * 64}", f"a\x00b {'0' * 64}"])
def test_a_line_that_is_none_is_refused(tmp_path: Path, line: str) -> None:
    file = tmp_path / "keys"
    file.write_text(line + "\n")

    with pytest.raises(SettingsError):
        ApiKeys(file)


def test_serve_key_prints_the_key_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "keys"

    assert main(["serve-key", "ada", "--api-keys", str(file)]) == 0
    assert main(["serve-key", "bob", "--api-keys", str(file)]) == 0

    first, second = capsys.readouterr().out.split()
    assert [line.split()[0] for line in file.read_text().splitlines()] == ["ada", "bob"]
    assert first != second
    assert first not in file.read_text()
    assert file.stat().st_mode & 0o077 == 0


async def test_serve_key_leaves_a_last_line_without_its_end_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    key, line = new_key("ada")
    file.write_text(line)

    assert main(["serve-key", "bob", "--api-keys", str(file)]) == 0

    identity = await ApiKeys(file).identify(bearer(key))
    assert identity is not None
    assert identity.user_id == "ada"


@pytest.mark.parametrize("user", ["", " ada", "a\nb", "#ada"])
def test_serve_key_refuses_a_user_that_fits_on_no_line(user: str) -> None:
    assert main(["serve-key", user]) == 2


async def test_a_token_is_its_subjects() -> None:
    identity = await JwtKeys(secret=SECRET).identify(bearer(token("ada")))

    assert identity is not None
    assert (identity.user_id, identity.method) == ("ada", "token")


def bad_tokens() -> dict[str, str]:
    claims = {"sub": "ada", "exp": time.time() + 60}
    return {
        "expired": token("ada", exp=time.time() - 1),
        "endless": jwt.encode({"sub": "ada"}, SECRET),
        "nobody's": jwt.encode({"exp": time.time() + 60}, SECRET),
        "unsigned": jwt.encode(claims, None, algorithm="none"),
        "of another secret": jwt.encode(claims, "another secret of more than 32 bytes"),
        "of another algorithm": jwt.encode(claims, SECRET * 2, algorithm="HS512"),
        "for another audience": token("ada", aud="somebody"),
        "not yet valid": token("ada", nbf=time.time() + 60),
        "broken": token("ada")[:-3],
        "nothing": "a.b.c",
    }


@pytest.mark.parametrize("kind", bad_tokens())
async def test_no_other_token_signs_in(kind: str) -> None:
    assert await JwtKeys(secret=SECRET).identify(bearer(bad_tokens()[kind])) is None


@pytest.mark.parametrize(
    ("claims", "is_known"), [({"aud": "app", "iss": "idp"}, True), ({"aud": "app"}, False), ({}, False)]
)
async def test_audience_and_issuer_are_checked(claims: dict[str, str], is_known: bool) -> None:
    known = JwtKeys(secret=SECRET, audience="app", issuer="idp")

    assert (await known.identify(bearer(token("ada", **claims))) is not None) is is_known


@pytest.fixture
def provider(tmp_path: Path) -> tuple[Path, Any]:
    """The key set of an identity provider, and its private key."""
    private = ec.generate_private_key(ec.SECP256R1())
    public = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(private.public_key()))
    file = tmp_path / "jwks.json"
    file.write_text(json.dumps({"keys": [{**public, "kid": "k-1", "use": "sig", "alg": "ES256"}]}))
    return file, private


async def test_a_token_of_an_identity_provider_signs_in(provider: tuple[Path, Any]) -> None:
    file, private = provider
    claims = {"sub": "ada", "exp": time.time() + 60}
    known = JwtKeys(jwks=str(file))

    good = await known.identify(bearer(jwt.encode(claims, private, "ES256", headers={"kid": "k-1"})))
    unknown = await known.identify(bearer(jwt.encode(claims, private, "ES256", headers={"kid": "k-2"})))

    assert good is not None
    assert good.user_id == "ada"
    assert unknown is None


async def test_an_identity_provider_is_asked_for_a_key_that_is_new(provider: tuple[Path, Any]) -> None:
    file, private = provider
    claims = {"sub": "ada", "exp": time.time() + 60}

    with served(file.read_bytes()) as (url, asked):
        known = JwtKeys(jwks=url)
        good = [await known.identify(bearer(jwt.encode(claims, private, "ES256", headers={"kid": "k-1"})))] * 2
        made_up = [
            await known.identify(bearer(jwt.encode(claims, private, "ES256", headers={"kid": f"k-{number}"})))
            for number in range(2, 9)
        ]

    assert [identity and identity.user_id for identity in good] == ["ada", "ada"]
    assert made_up == [None] * 7
    assert len(asked) == 1


async def test_an_identity_provider_that_is_away_is_no_refusal(worker: MakeWorker, provider: tuple[Path, Any]) -> None:
    signed = jwt.encode({"sub": "ada", "exp": time.time() + 60}, provider[1], "ES256", headers={"kid": "k-1"})
    with served(b"") as (url, _):
        pass

    client = worker(auth=JwtKeys(jwks=url)).client(authorization=f"Bearer {signed}")

    assert (await client.get("/me")).status_code == 503


@contextmanager
def served(body: bytes) -> Iterator[tuple[str, list[str]]]:
    """Serve a body on loopback; yield its address and the requests."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Stay silent."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/keys", asked
        server.shutdown()
        thread.join()


async def test_a_public_key_is_no_secret(provider: tuple[Path, Any]) -> None:
    file, _ = provider
    forged = jwt.encode({"sub": "ada", "exp": time.time() + 60}, file.read_text() * 2, "HS256", headers={"kid": "k-1"})

    assert await JwtKeys(jwks=str(file)).identify(bearer(forged)) is None


@pytest.mark.parametrize(
    "options", [{"secret": "short"}, {}, {"secret": SECRET, "jwks": "x"}, {"jwks": "nowhere"}, {"jwks": "http://idp/k"}]
)
def test_keys_that_are_not_safe_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(SettingsError):
        JwtKeys(**options)


async def test_the_first_way_that_knows_the_caller_counts(keys: tuple[Path, str]) -> None:
    file, key = keys
    ways = Authenticators(ApiKeys(file), JwtKeys(secret=SECRET))

    found = [await ways.identify(bearer(one)) for one in (key, token("bob"), "neither")]

    assert [identity and identity.user_id for identity in found] == ["Ada Lovelace", "bob", None]


@pytest.mark.parametrize("option", ["--jwt-audience", "--jwt-issuer"])
def test_what_tokens_must_say_is_refused_where_none_is_read(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["serve", "--port", "0", "--database", "nowhere://", option, "everthread"])

    assert (code, "give `--jwt-secret` or `--jwks` too" in capsys.readouterr().err) == (2, True)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_a_server_that_others_reach_wants_sign_in(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--host", host]) == 2
    assert "--api-keys" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "localhost:8000"}, 200),
        ({"host": "[::1]:8000"}, 200),
        ({"host": "localhost:8000", "origin": "http://localhost:8000"}, 200),
        ({"host": "evil.example"}, 403),
        ({"host": "127.0.0.1.evil.example:8000"}, 403),
        ({"host": "localhost:8000", "origin": "https://evil.example"}, 403),
        ({"host": "localhost:8000", "origin": "null"}, 403),
        ({"host": "localhost:8000", "sec-fetch-site": "cross-site"}, 403),
    ],
)
async def test_pages_of_other_sites_do_not_reach_a_server_without_sign_in(
    worker: MakeWorker, headers: dict[str, str], status: int
) -> None:
    client = worker(auth=LocalUser("me")).client()

    answered = await client.post("/threads", headers={"host": "127.0.0.1:8000", **headers})

    assert answered.status_code == (201 if status == 200 else status)


def test_a_port_that_is_taken_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code = main(["serve", "--port", port, "--database", f"sqlite:///{tmp_path}/a.db"])

    said = capsys.readouterr().err
    assert (code, len(said.splitlines())) == (1, 1)
    assert said.startswith(f"error: cannot listen on 127.0.0.1:{port}")
