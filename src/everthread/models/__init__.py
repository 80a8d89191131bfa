"""Chat models: by `provider:name`, scripted and replayed; the offline model is in `everthread.agents.offline`."""

from everthread.models.identity import describe, model_name
from everthread.models.provider import resolve
from everthread.models.replay import ReplayModel
from everthread.models.scripted import ScriptedModel
from everthread.models.wrapped import input_limit

__all__ = ["ReplayModel", "ScriptedModel", "describe", "input_limit", "model_name", "resolve"]
