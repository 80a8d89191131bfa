"""Show tool schemas as a model reads them: TypeScript with OpenAI, JSON with most others."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

Tool: TypeAlias = "BaseTool | Mapping[str, Any] | Callable[..., Any]"
"""What `bind_tools` takes: a LangChain tool, an OpenAI tool as a dictionary, a function or a class."""

_DEEPEST: Final = 6
"""Below this depth a type is shown as `any`."""


def openai_schema(tool: Tool) -> Mapping[str, Any]:
    """Return a tool as OpenAI's API takes it; a provider's own tool stays as it is."""
    if isinstance(tool, Mapping) and "function" in tool:
        return tool
    from langchain_core.utils.function_calling import convert_to_openai_tool  # slow to import, and seldom needed

    try:
        return convert_to_openai_tool(tool)
    except ValueError:
        if isinstance(tool, Mapping):
            return tool  # such as a search of the provider's own
        raise


def render_tools(schemas: Sequence[Mapping[str, Any]]) -> str:
    """Return the TypeScript in which OpenAI shows tools to its models.

    Args:
        schemas: OpenAI tools, with or without the `function` envelope; one that is neither is shown as JSON.

    Source: the reference renderer in openai/harmony, with references and alternatives written out.
    """
    lines = ["# Tools", "", "## functions", "", "namespace functions {", ""]
    for schema in schemas:
        function = schema.get("function", schema)
        if "name" not in function:
            lines += [compact_json(schema), ""]
            continue
        lines += _comment(function.get("description"), "")
        parameters = function.get("parameters") or {}
        if parameters.get("properties"):
            definitions = parameters.get("$defs") or parameters.get("definitions") or {}
            lines += [f"type {function['name']} = (_: {{", *_properties(parameters, definitions, 0), "}) => any;", ""]
        else:
            lines += [f"type {function['name']} = () => any;", ""]
    return "\n".join([*lines, "} // namespace functions"])


def compact_json(value: object) -> str:
    """Return compact JSON, which is how the provider writes arguments, however they were sent."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=str, skipkeys=True)


def _properties(schema: Mapping[str, Any], definitions: Mapping[str, Any], depth: int) -> list[str]:
    indent, lines = "  " * depth, []
    for name, value in schema["properties"].items():
        value = value if isinstance(value, Mapping) else {}
        lines += _comment(value.get("title"), indent) + _comment(value.get("description"), indent)
        optional = "" if name in (schema.get("required") or ()) else "?"
        default = f" // default: {compact_json(value['default'])}" if "default" in value else ""
        lines.append(f"{indent}{name}{optional}: {_type(value, definitions, depth)},{default}")
    return lines


def _type(schema: object, definitions: Mapping[str, Any], depth: int) -> str:
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return "any"
    if "$ref" in schema:
        target = str(schema["$ref"]).rpartition("/")[2]
        # Inside its own definition a name is unknown, so that a schema that refers to itself comes to an end.
        return _type(definitions.get(target), {k: v for k, v in definitions.items() if k != target}, depth)
    for union in ("anyOf", "oneOf", "allOf"):
        if union in schema:
            return " | ".join(_type(one, definitions, depth) for one in schema[union])
    if "enum" in schema:
        return " | ".join(map(compact_json, schema["enum"]))
    if "const" in schema:
        return compact_json(schema["const"])
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(_type({**schema, "type": one}, definitions, depth) for one in kind)
    if kind == "array":
        return _type(schema.get("items"), definitions, depth) + "[]"
    if schema.get("properties"):
        return "\n".join(["{", *_properties(schema, definitions, depth + 1), "  " * depth + "}"])
    return {"integer": "number", None: "any"}.get(kind, str(kind))


def _comment(text: object, indent: str) -> list[str]:
    return [f"{indent}// {line}" for line in text.split("\n")] if isinstance(text, str) and text else []
