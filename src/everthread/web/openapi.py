"""The OpenAPI document, made from the route table."""

import inspect
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

import everthread
from everthread.web.operations import Operation
from everthread.web.schemas import ProblemDetails

_REFERENCE = "#/components/schemas/{model}"
_STREAM = (
    "Server-sent events: `run`, then `token`, `tool_call`, `tool_result`, `ledger`, `update` and `interrupt` as they "
    "come, and last `done` with a Run, or `error` with a problem."
)


def openapi(operations: Sequence[Operation]) -> dict[str, Any]:
    """Return the document of a route table, OpenAPI 3.1."""
    models: set[type[BaseModel]] = {ProblemDetails, *(model for one in operations for model in _models(one))}
    inputs = {model for one in operations for model in (one.body, one.query) if model is not None}
    ordered = sorted(models, key=lambda model: model.__name__)
    modes = [(model, "validation" if model in inputs else "serialization") for model in ordered]
    named, definitions = models_json_schema(modes, ref_template=_REFERENCE)  # type: ignore[arg-type]
    schemas = {model: schema for (model, _), schema in named.items()}
    paths: dict[str, dict[str, Any]] = {}
    for one in operations:
        paths.setdefault(one.path, {})[one.method.lower()] = _described(one, schemas, definitions.get("$defs", {}))
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Everthread",
            "version": everthread.__version__,
            "description": "Threads, runs, notes and the caller's data; a failure is one sentence.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "security": [{"bearer": []}, {"key": []}],
        "paths": paths,
        "components": {
            "schemas": definitions.get("$defs", {}),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "An API key, or a JSON Web Token."},
                "key": {"type": "apiKey", "in": "header", "name": "X-Api-Key"},
            },
        },
    }


def _models(one: Operation) -> list[type[BaseModel]]:
    returned = [one.returns] if inspect.isclass(one.returns) and issubclass(one.returns, BaseModel) else []
    return [*filter(None, (one.body, one.query)), *returned]


def _described(one: Operation, schemas: dict[Any, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    summary, _, rest = inspect.getdoc(one.endpoint).partition("\n\n")  # type: ignore[union-attr]
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in one.parameters
    ]
    if one.query is not None:
        fields = definitions[schemas[one.query]["$ref"].rpartition("/")[2]]
        required = fields.get("required", [])
        for name, schema in fields["properties"].items():
            parameters.append({"name": name, "in": "query", "required": name in required, "schema": schema})
    if one.streams and one.method == "GET":
        parameters.append({"name": "Last-Event-ID", "in": "header", "required": False, "schema": {"type": "string"}})
    described: dict[str, Any] = {
        "operationId": one.name,
        "summary": " ".join(summary.split()),
        **({"description": " ".join(rest.split())} if rest else {}),
        **({"parameters": parameters} if parameters else {}),
        "responses": _responses(one, schemas),
    }
    if one.body is not None:
        described["requestBody"] = {
            "required": bool(definitions[schemas[one.body]["$ref"].rpartition("/")[2]].get("required")),
            "content": {"application/json": {"schema": schemas[one.body]}},
        }
    if one.is_public:
        described["security"] = []
    return described


def _responses(one: Operation, schemas: dict[Any, Any]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    if one.returns is not None:
        content["application/json"] = {"schema": schemas.get(one.returns, {"type": "object"})}
    if one.streams:
        content["text/event-stream"] = {"schema": {"type": "string", "description": _STREAM}}
    responses = {str(one.status): {"description": HTTPStatus(one.status).phrase, "content": content}}
    if (one.streams and one.body is not None) or one.name == "cancel_run":
        responses["202"] = {
            "description": "It goes on in the background",
            "content": {"application/json": {"schema": schemas[one.returns]}},
        }
    statuses = {*one.problems}
    statuses |= set() if one.is_public else {401, 429, 503}
    statuses |= {404} if one.parameters else set()
    statuses |= {413, 415, 422} if one.body else set()
    statuses |= {422} if one.query else set()
    problem = {"application/problem+json": {"schema": schemas[ProblemDetails]}}
    for status in sorted(statuses):
        responses[str(status)] = {"description": HTTPStatus(status).phrase, "content": problem}
    return responses
