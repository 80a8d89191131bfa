"""List where the code depends on names that other packages do not promise to keep.

    python scripts/private_names.py [FOLDER …]      # default: src; exits with 1 when it lists anything

A name with a leading underscore is private unless the code under the folder defines it itself. Beyond those, some names
are public in spelling only: `__dict__` and the like of objects that another package made, and the channels and
configuration keys that LangGraph makes up inside.
"""

import ast
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

INNARDS = frozenset({"__dict__", "__signature__", "__new__", "__code__", "__globals__", "__closure__"})
"""Attributes by which one changes or rebuilds what another package made."""

INNER_STRINGS = ("branch:to:", "__pregel_")
"""Beginnings of LangGraph's own channels and configuration keys."""

BY_STRING = frozenset({"getattr", "setattr", "hasattr", "delattr"})


class Use(NamedTuple):
    """One use of a name that nobody promised."""

    path: Path
    line: int
    name: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.name}"


def uses_in(folders: Sequence[Path]) -> list[Use]:
    """Return every use in the Python files of some folders, which count as one code base."""
    paths = sorted(path for folder in folders for path in folder.rglob("*.py"))
    trees = {path: ast.parse(path.read_text(encoding="utf-8"), str(path)) for path in paths}
    own = {name for tree in trees.values() for node in ast.walk(tree) for name in _defined(node)}
    return [
        Use(path, line, name)
        for path, tree in trees.items()
        for node in ast.walk(tree)
        for line, name in _private_uses(node, own)
    ]


def _defined(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node defines: functions, classes, variables, attributes and fields."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            yield name


def _private_uses(node: ast.AST, own: set[str]) -> Iterator[tuple[int, str]]:
    match node:
        case ast.ImportFrom():
            names = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
            foreign = [name for name in names if _is_private(name) and name not in own]
            yield from ((node.lineno, f"{node.module}: {name}") for name in foreign)
        case ast.Import():
            parts = [(alias.name, part) for alias in node.names for part in alias.name.split(".")]
            yield from ((node.lineno, module) for module, part in parts if _is_private(part))
        case ast.Attribute(attr=name) if name in INNARDS or (_is_private(name) and name not in own):
            yield node.lineno, f".{name}"
        case ast.Call(func=ast.Name(id=function), args=[_, ast.Constant(value=str(name)), *_]) if function in BY_STRING:
            if name in INNARDS or (_is_private(name) and name not in own):
                yield node.lineno, f"{function}(…, {name!r})"
        case ast.Constant(value=str(text)) if text.startswith(INNER_STRINGS):
            yield node.lineno, repr(text)
        case ast.keyword(arg=str(name)) if name.startswith("__"):
            yield node.value.lineno, f"{name}="


def _is_private(name: str) -> bool:
    return name.startswith("_") and name.strip("_") != "" and not (name.startswith("__") and name.endswith("__"))


def main(arguments: Sequence[str]) -> int:
    """Print every use; 1 when there is any."""
    uses = uses_in([Path(name) for name in arguments or ["src"]])
    for use in uses:
        print(use)
    if uses:
        print(f"{len(uses)} uses of names that nobody promised: use a public one, or write your own", file=sys.stderr)
    return 1 if uses else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
