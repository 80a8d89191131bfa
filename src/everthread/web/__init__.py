"""The HTTP API: threads, runs, notes and the caller's data, for any number of workers on one database."""

from everthread.web.app import create_app
from everthread.web.auth import ApiKeys, Authenticator, Authenticators, Identity, JwtKeys, LocalUser
from everthread.web.limits import Limits

__all__ = ["ApiKeys", "Authenticator", "Authenticators", "Identity", "JwtKeys", "Limits", "LocalUser", "create_app"]
