"""Play a recorded conversation: its runs of the graph, and the assistant and tools that answer from it."""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from pydantic import PrivateAttr

from everthread.errors import RecordError
from everthread.evals.records import Record
from everthread.models.replay import OnPrompt, ReplayModel
from everthread.models.scripted import Tools
from everthread.state import Agent

ENDING = "(The recording ends here.)"
"""Reply to the last tool results of a record that stops inside a turn, so that their prompt is checked too."""

Watch = Callable[[AIMessage, list[BaseMessage], Tools], None]
"""Called with each recorded reply, the prompt that it answers, and the prompt's tool schemas."""


@dataclass
class Exchange:
    """One run of the graph: what is sent, and what the model and the tools say in it."""

    input: list[BaseMessage] = field(default_factory=list)
    """Ends with the user's question; what the graph could not have produced itself stands before it."""
    replies: list[AIMessage] = field(default_factory=list)
    results: list[ToolMessage] = field(default_factory=list)


def exchanges(messages: Sequence[BaseMessage]) -> tuple[list[Exchange], list[BaseMessage]]:
    """Cut a recorded conversation into runs of the graph.

    A run begins with a message of the user and ends with the first assistant message without calls.
    What no run can produce (an assistant that speaks first or twice, a turn that another message of
    the user broke off) is sent ahead of the next message of the user.

    Returns:
        The runs, and the messages at the end that nothing recorded answers.
    """
    runs: list[Exchange] = []
    waiting: list[BaseMessage] = []
    place = 0
    while place < len(messages):
        waiting.append(messages[place])
        place += 1
        if not isinstance(waiting[-1], HumanMessage):
            continue
        end = next((at for at in range(place, len(messages)) if _ends_run(messages[at])), len(messages))
        answer = messages[place : end + 1]
        closed = bool(answer) and isinstance(answer[-1], AIMessage)
        if not answer or (not closed and end < len(messages)):
            continue
        runs.append(_exchange(waiting, answer, closed=closed))
        waiting, place = [], end + 1
    return runs, waiting


def _ends_run(message: BaseMessage) -> bool:
    return isinstance(message, HumanMessage) or (isinstance(message, AIMessage) and not message.tool_calls)


def _exchange(waiting: list[BaseMessage], answer: Sequence[BaseMessage], *, closed: bool) -> Exchange:
    replies = [message for message in answer if isinstance(message, AIMessage)]
    results = [message for message in answer if isinstance(message, ToolMessage)]
    return Exchange(waiting, replies if closed else [*replies, AIMessage(ENDING, id="everthread-ending")], results)


def played(run: Exchange, calls: int) -> list[BaseMessage]:
    """Return the replies and results of a run that stopped after so many calls, results in the order of calls."""
    results = RecordedResults()
    results.load(run.results)
    messages: list[BaseMessage] = []
    for reply in run.replies[:calls]:
        messages += [reply, *(results.take(str(call["id"])) for call in reply.tool_calls)]
    return messages


class RecordedResults:
    """Recorded results by call id, in the order they were recorded."""

    def __init__(self) -> None:
        self._results: defaultdict[str, deque[ToolMessage]] = defaultdict(deque)

    def load(self, results: Iterable[ToolMessage]) -> None:
        """Add the results of a run."""
        for result in results:
            self._results[result.tool_call_id].append(result)

    def take(self, call_id: str) -> ToolMessage:
        """Return the result of a call.

        Raises:
            RecordError: the call was not recorded.
        """
        if not self._results[call_id]:
            raise RecordError(f"no result was recorded for the call {call_id!r}")
        return self._results[call_id].popleft()


class _RecordedTool(BaseTool):
    """A tool with a recorded schema that answers each call with its recorded result, errors included."""

    _results: RecordedResults = PrivateAttr()

    def __init__(self, results: RecordedResults, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._results = results

    def invoke(
        self, input: str | dict[str, Any] | ToolCall, config: RunnableConfig | None = None, **kwargs: Any
    ) -> ToolMessage:
        """Return the recorded message itself: arguments that the tool refused are not validated again."""
        call_id = input.get("id") if isinstance(input, dict) else None
        return self._results.take(str(call_id)).model_copy(update={"id": None})

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("a recorded tool is called by `invoke`, with the id of its call")


_NO_INSTRUCTIONS = "Answer the user."
"""Of a record that has none."""


def recorded_agent(record: Record, results: RecordedResults | None = None) -> Agent:
    """Make the agent of a record: its instructions, and tools that answer with recorded results."""
    tools = list(_tools(record, results or RecordedResults()))
    return Agent(
        name="replay", title="Replay", instructions=record.toolkit.system.strip() or _NO_INSTRUCTIONS, tools=tools
    )


def _tools(record: Record, results: RecordedResults) -> Iterator[BaseTool]:
    """Make the toolkit's tools, and one with an open schema for each called function without a schema."""
    schemas = {tool["function"]["name"]: tool["function"] for tool in record.toolkit.tools}
    called = (call["name"] for message in record.messages for call in getattr(message, "tool_calls", []))
    for name in dict.fromkeys([*schemas, *called]):
        schema = schemas.get(name, {})
        yield _RecordedTool(
            results,
            name=name,
            description=schema.get("description") or "",
            args_schema=schema.get("parameters") or {"type": "object", "properties": {}},
        )


class RecordedModel(ReplayModel):
    """The replayed assistant, counted as a model of a given name and never asked to summarise: the rules do that."""

    model_name: str
    can_summarize: bool = False
    _watch: Watch | None = PrivateAttr(default=None)

    def __init__(self, model_name: str, on_prompt: OnPrompt, watch: Watch | None = None) -> None:
        super().__init__(on_prompt, model_name=model_name)
        self._watch = watch

    def next_reply(self, messages: list[BaseMessage], tools: Tools) -> AIMessage:
        """Return the recorded reply to a prompt, and show both to the watcher."""
        reply = super().next_reply(messages, tools)
        if self._watch is not None:
            self._watch(reply, messages, tools)
        return reply
