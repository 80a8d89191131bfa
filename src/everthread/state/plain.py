"""`everthread.plain` under the name that it had."""

from everthread.plain import CONTROL, plain

__all__ = ["CONTROL", "plain"]
