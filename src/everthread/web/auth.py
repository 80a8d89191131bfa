"""Who is calling: API keys from a file, JSON Web Tokens, or one user on this machine."""

import asyncio
import hashlib
import json
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import jwt

from everthread.errors import EverthreadError, SettingsError
from everthread.state import namespaces

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
"""Names of this machine."""

_LEAST_SECRET_BYTES = 32
"""RFC 7518 wants a key for HS256 to be as long as its digest."""

_ASYMMETRIC = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_JWKS_SECONDS = 5.0
_REFETCH_SECONDS = 30.0
"""Between two fetches of an identity provider's keys, which are fetched when a token names an unknown one."""

_PREFIX = "ek_"
"""Begins every key, so that scanners for secrets can find one that leaked."""


@dataclass(frozen=True)
class Identity:
    """Who makes a request; in `request.state.identity`.

    Raises:
        SettingsError: the user's id is one that no database stores.
    """

    user_id: str
    method: str
    """`key`, `token` or `local`."""
    credential: str
    """Tells keys apart without being one; requests are counted by it."""

    def __post_init__(self) -> None:
        namespaces.checked("user_id", self.user_id)


class Authenticator(Protocol):
    """Finds out who calls."""

    async def identify(self, headers: Mapping[str, str]) -> Identity | None:
        """Return the caller; None when the headers show nobody that is known here.

        Args:
            headers: of the request, with names in lower case.
        """


class LocalUser:
    """Everybody who reaches the server is one user: for a server that only this machine reaches."""

    def __init__(self, user_id: str = "local") -> None:
        self._identity = Identity(user_id, "local", "local")

    async def identify(self, headers: Mapping[str, str]) -> Identity | None:
        """Return the one user."""
        return self._identity


class ApiKeys:
    """Keys from a file, a line for each: the user, and the SHA-256 of the key in hex.

    The file is read again when it changes, so a key is withdrawn by removing its line. A key has 256 random bits, so
    one digest is as good as a slow one.

    Raises:
        SettingsError: the file cannot be read, or a line is none.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_at: tuple[int, int, int] = (0, 0, 0)
        self._users: dict[str, str] = {}
        self._reload()

    async def identify(self, headers: Mapping[str, str]) -> Identity | None:
        """Return whose key the headers show: `Authorization: Bearer KEY`, or `X-Api-Key: KEY`."""
        key = headers.get("x-api-key") or _bearer(headers)
        if not key:
            return None
        self._reload()
        digest = _digest(key)
        user = self._users.get(digest)
        return None if user is None else Identity(user, "key", digest)

    def _reload(self) -> None:
        try:
            status = self._path.stat()
            state = (status.st_ino, status.st_mtime_ns, status.st_size)
            if state != self._read_at:
                self._users = dict(_keys(self._path))
                self._read_at = state
        except OSError as error:
            raise SettingsError(f"cannot read the keys {str(self._path)!r}: {error.strerror}") from error


def read_text(path: Path, what: str) -> str:
    """Return the text of a file.

    Raises:
        SettingsError: it cannot be read; `what` says what it is for.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SettingsError(f"cannot read the {what} {str(path)!r}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"cannot read the {what} {str(path)!r}: it is not UTF-8 text") from error


def _keys(path: Path) -> Sequence[tuple[str, str]]:
    """Return digest and user of each line of a file of keys."""
    pairs = []
    for number, line in enumerate(read_text(path, "keys").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        user, _, digest = line.strip().rpartition(" ")
        digest = digest.removeprefix("sha256:").lower()
        if not user.strip() or len(digest) != 64 or set(digest) - set("0123456789abcdef"):
            raise SettingsError(
                f"line {number} of the keys {str(path)!r} must be a user and the SHA-256 of a key; "
                "`everthread serve-key USER` makes one"
            )
        pairs.append((digest, Identity(user.strip(), "key", digest).user_id))
    return pairs


def new_key(user_id: str) -> tuple[str, str]:
    """Make a key for a user.

    Returns:
        The key, which nobody can find out again, and the line for the file of keys.

    Raises:
        SettingsError: the user's id does not fit into a line.
    """
    namespaces.checked("user_id", user_id)
    if user_id != user_id.strip() or len(user_id.splitlines()) != 1 or user_id.startswith("#"):
        raise SettingsError(f"a key's user is on one line, without blank space around it, got {user_id!r}")
    key = _PREFIX + secrets.token_urlsafe(32)
    return key, f"{user_id} {_digest(key)}"


class JwtKeys:
    """JSON Web Tokens in `Authorization: Bearer`; the claim `sub` is the user, and `exp` is required.

    Args:
        secret: for HS256, at least 32 bytes.
        jwks: a file or a URL with the public keys of an identity provider; give one of both.
        audience: what `aud` must name; None: a token must have none.
        issuer: what `iss` must be; None: anything.

    Raises:
        SettingsError: the secret is short, or the keys cannot be read.
    """

    def __init__(
        self,
        *,
        secret: str | None = None,
        jwks: str | None = None,
        audience: str | None = None,
        issuer: str | None = None,
    ) -> None:
        if (secret is None) == (jwks is None):
            raise SettingsError(
                "tokens are checked with a secret or with the keys of an identity provider: give exactly one of them"
            )
        if secret is not None and len(secret.encode()) < _LEAST_SECRET_BYTES:
            raise SettingsError(f"the secret for tokens must have at least {_LEAST_SECRET_BYTES} bytes")
        self._secret = secret
        self._options: dict[str, Any] = {"audience": audience, "issuer": issuer}
        self._client: jwt.PyJWKClient | None = None
        self._keys: dict[str | None, jwt.PyJWK] = {}
        self._next_fetch = 0.0
        if jwks is not None and "://" in jwks:
            _check_url(jwks)
            self._client = jwt.PyJWKClient(jwks, cache_jwk_set=False, timeout=_JWKS_SECONDS)
        elif jwks is not None:
            self._keys = _key_set(Path(jwks))

    async def identify(self, headers: Mapping[str, str]) -> Identity | None:
        """Return whom the token in the headers names; None when it is not valid."""
        token = _bearer(headers)
        if not token or token.count(".") != 2:
            return None
        try:
            key, algorithms = await self._key(token)
            claims = jwt.decode(token, key, algorithms, options={"require": ["exp", "sub"]}, **self._options)
            return Identity(claims["sub"], "token", f"sub:{claims['sub']}")
        except (jwt.PyJWTError, SettingsError):
            return None

    async def _key(self, token: str) -> tuple[Any, list[str]]:
        """Return the key for a token and the algorithms that it may be signed with; never those of another kind."""
        if self._secret is not None:
            return self._secret, ["HS256"]
        kid = jwt.get_unverified_header(token).get("kid")
        if self._client is not None and kid not in self._keys and time.monotonic() > self._next_fetch:
            # Set ahead of the fetch: tokens with made-up ids bring one fetch a while, and not one each.
            self._next_fetch = time.monotonic() + _REFETCH_SECONDS
            self._keys = await asyncio.to_thread(_fetched, self._client)
        if kid not in self._keys:
            raise jwt.InvalidKeyError("unknown key")
        found = self._keys[kid]
        if found.algorithm_name not in _ASYMMETRIC:
            raise jwt.InvalidAlgorithmError("not a public key")
        return found, [found.algorithm_name]


def _check_url(url: str) -> None:
    """Refuse an address whose answer somebody on the way could change.

    Raises:
        SettingsError: it is neither https nor on this machine.
    """
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOOPBACK):
        raise SettingsError(f"keys must come from https, or from this machine, got {url!r}")


def _key_set(path: Path) -> dict[str | None, jwt.PyJWK]:
    text = read_text(path, "key set")
    try:
        return _by_id(jwt.PyJWKSet.from_dict(json.loads(text)))
    except (ValueError, AttributeError, jwt.PyJWTError) as error:
        raise SettingsError(f"cannot read the key set {str(path)!r}: {error}") from error


def _fetched(client: jwt.PyJWKClient) -> dict[str | None, jwt.PyJWK]:
    try:
        return _by_id(client.get_jwk_set(refresh=True))
    except jwt.PyJWTError as error:
        raise EverthreadError(f"the identity provider does not show its keys: {error}") from error


def _by_id(found: jwt.PyJWKSet) -> dict[str | None, jwt.PyJWK]:
    """Return keys by their ids; a token that names none means the only one."""
    by_id: dict[str | None, jwt.PyJWK] = {key.key_id: key for key in found.keys}
    return {**by_id, None: found.keys[0]} if len(found.keys) == 1 else by_id


class Authenticators:
    """Several ways to sign in; the first that knows the caller counts."""

    def __init__(self, *ways: Authenticator) -> None:
        self._ways = ways

    async def identify(self, headers: Mapping[str, str]) -> Identity | None:
        """Return the caller; None when no way knows them."""
        for way in self._ways:
            if (identity := await way.identify(headers)) is not None:
                return identity
        return None


def _bearer(headers: Mapping[str, str]) -> str:
    scheme, _, value = headers.get("authorization", "").partition(" ")
    return value.strip() if scheme.lower() == "bearer" else ""


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
