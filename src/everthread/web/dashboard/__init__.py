"""The page: what the model saw, call by call, in a browser; server templates, and nothing from outside."""

from everthread.web.dashboard.routes import VIEWS, page_routes
from everthread.web.dashboard.views import PREFIX, View

__all__ = ["PREFIX", "VIEWS", "View", "page_routes"]
