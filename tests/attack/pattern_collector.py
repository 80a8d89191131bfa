"""Collect every pattern that the package compiles, with its place and where it fits; run as a program, it prints them.

`re` is wrapped before the package is imported, so a pattern that is put together inside a function is seen when the
function runs: the packs are loaded, cached functions without arguments are called, and the offline agents answer a few
messages. Patterns that are written out in a function are read from the source.
"""

import ast
import functools
import importlib
import inspect
import json
import os
import pkgutil
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_CALLS = ("compile", "search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer")
_compile = re.compile
_seen: dict[tuple[str, int], str] = {}
_where: dict[tuple[str, int], str] = {}
_places: set[str] = set()
_SOURCE = Path(__file__).parents[2] / "src"
_PREFIX = f"{_SOURCE}{os.sep}"

_TRAVEL = (
    "Find me a flight from Berlin to Rome from 3 to 9 May in economy for two people for 3 nights, at most 400 euros",
    "I prefer quiet hotels and I live in Berlin. I want the early one.",
    "cheapest",
    "yes, book it for Anna Berg and Ben Cole",
    "find a hotel in Rome near the centre, a compact car and trip insurance that costs 900 euros",
    "cancel it",
    "what do you know about me? forget that",
    "hello",
)
_SUPPORT = (
    "my printer shows an error and ping fails to host.example.com",
    "run a dns check of vpn.example.com",
    "it is still broken, what is the status of the mail server?",
    "open a ticket about this: the printer. It is urgent",
    "close ticket INC-ABCDEFGH please, it is solved",
    "list my open tickets",
)


def _watched(call: Callable[..., Any], name: str) -> Callable[..., Any]:
    @functools.wraps(call)
    def watched(pattern: Any, *args: Any, **options: Any) -> Any:
        caller = sys._getframe(1)
        if caller.f_code.co_filename.startswith(_PREFIX):
            number = 0 if name == "compile" else 2 if name in ("split",) else 3 if name in ("sub", "subn") else 1
            flags = options.get("flags", args[number] if len(args) > number else 0)
            place = f"{caller.f_code.co_filename.removeprefix(_PREFIX)}:{caller.f_lineno}"
            _places.add(place)
            _add(pattern, int(flags), place)
        return call(pattern, *args, **options)

    return watched


def _add(pattern: str | re.Pattern[str], flags: int, place: str) -> None:
    compiled = _compile(pattern, flags) if isinstance(pattern, str) else pattern
    _seen.setdefault((compiled.pattern, compiled.flags), place)


def _modules() -> Iterator[Any]:
    import everthread

    for module in pkgutil.walk_packages(everthread.__path__, "everthread."):
        if not module.name.endswith("__main__"):
            yield importlib.import_module(module.name)


def _caches(modules: list[Any]) -> None:
    for module in modules:
        for value in list(vars(module).values()):
            is_own = hasattr(value, "cache_info") and value.__module__ == module.__name__
            if is_own and not inspect.signature(value.__wrapped__).parameters:
                value()


def _packs() -> None:
    from everthread.memory.guard import values
    from everthread.memory.rules import BUILT_IN

    folder = Path(importlib.import_module("everthread.memory.rules").__file__ or "").parent
    for path in sorted(folder.glob("*.yaml")):
        for section, rules in BUILT_IN.pack(path.stem).sections.items():
            for rule in rules:
                patterns = [rule.pattern, *(one for one in rule.values.values() if isinstance(one, re.Pattern))]
                for pattern in patterns:
                    _seen[pattern.pattern, pattern.flags] = f"{path.stem}.yaml: {section}: {rule.name}"
                _where[rule.pattern.pattern, rule.pattern.flags] = rule.where
    values.load()


def _conversations() -> None:
    from everthread import Context, build_graph, open_storage
    from everthread.agents import AGENTS
    from everthread.models.provider import resolve

    for name, messages in (("travel", _TRAVEL), ("support", _SUPPORT)):
        with open_storage("sqlite://") as storage:
            graph = build_graph(AGENTS[name], model=resolve("offline"), storage=storage)
            for message in messages:
                config: Any = {"configurable": {"thread_id": name}}
                graph.invoke({"messages": message}, config, context=Context(distillation=("tool", "turn", "session")))
            graph.invoke({"end_session": True}, config, context=Context())


def _written_out() -> list[str]:
    """Add patterns that stand in the source; return the places of those that are put together."""
    unseen = []
    for path in sorted(_SOURCE.rglob("*.py")):
        if "\nimport re\n" not in (source := path.read_text("utf-8")):
            continue
        for node in ast.walk(ast.parse(source)):
            is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            if not is_call or not isinstance(node.func.value, ast.Name):  # type: ignore[attr-defined]
                continue
            if node.func.value.id != "re" or node.func.attr not in _CALLS:  # type: ignore[attr-defined]
                continue
            place = f"{path.relative_to(_SOURCE)}:{node.lineno}"  # type: ignore[attr-defined]
            first = node.args[0]  # type: ignore[attr-defined]
            named = [one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute) and one.attr.isupper()]
            flags = functools.reduce(lambda flags, flag: flags | getattr(re, flag), named, re.NOFLAG)
            if isinstance(first, ast.Constant):
                _add(first.value, int(flags), place)
            elif place not in _places:
                unseen.append(place)
    return unseen


def main() -> None:
    for name in _CALLS:
        setattr(re, name, _watched(getattr(re, name), name))
    modules = list(_modules())
    _caches(modules)
    _conversations()
    _packs()
    unseen = _written_out()
    patterns = [
        [pattern, flags & ~re.UNICODE, place, _where.get((pattern, flags), "anywhere")]
        for (pattern, flags), place in _seen.items()
    ]
    json.dump({"patterns": patterns, "unseen": unseen}, sys.stdout)


if __name__ == "__main__":
    main()
