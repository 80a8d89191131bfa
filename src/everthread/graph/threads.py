"""A compiled graph whose runs hold the lock of their thread."""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Self
from uuid import uuid4

from langchain_core.messages import BaseMessage, convert_to_messages
from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import PutOp
from langgraph.types import Command, StateUpdate

from everthread.errors import SettingsError
from everthread.graph.forks import leaving
from everthread.graph.retries import Start, message_id, start
from everthread.ledger.record import now
from everthread.state import Context, Input, Output, State, namespaces
from everthread.state.marks import MARK
from everthread.state.messages import clean_content
from everthread.storage.newest import Standing, aending, astanding, ending, standing
from everthread.storage.open import Storage
from everthread.storage.pruning import Pruner, dial_metadata


class ThreadGraph(CompiledStateGraph[State, Context, Input, Output]):
    """A compiled graph that runs one run at a time on a thread.

    `invoke` and `ainvoke` go through `stream` and `astream`, so locking these two covers all four.
    """

    storage: Storage
    pruner: Pruner

    @classmethod
    def locked(cls, graph: CompiledStateGraph[State, Context, Input, Output], storage: Storage) -> "ThreadGraph":
        """Return the same graph with the locks of its storage."""
        made = cls.__new__(cls)
        made.__dict__.update(graph.__dict__)
        made.storage = storage
        made.pruner = Pruner(storage)
        return made

    def copy(self, update: dict[str, Any] | None = None) -> Self:
        """Return a copy with other attributes, locks included; `with_config` goes through it."""
        made = type(self).__new__(type(self))
        made.__dict__.update({**self.__dict__, **(update or {})})
        return made

    def stream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Iterator[Any]:
        """Stream a run while holding the thread's lock; arguments as in LangGraph.

        Raises:
            ThreadBusyError: another run kept the lock for longer than the timeout.
            SettingsError: the thread belongs to another user.
        """
        options, input, context = _durable(options), _whole(input), _context(options)
        thread_id, bound, store = _thread_id(self.config, config), self._bound(config), self.storage.store
        news, config = _news(input), _telling(config, context)
        with self.storage.locks.hold(thread_id):
            here = standing(self.storage, bound, message_id(input))
            if claim := _claim(here, thread_id, context, self.name):
                store.batch([claim])
            self._leave_branch(bound)
            begin = Start(input)
            if _is_new(input) and here.is_special:
                if here.ending == "unapplied":
                    # The last run died before its message was applied; a new input would take its place.
                    for _ in super().stream(None, config, **{**options, "interrupt_before": "*"}):
                        pass
                    config, bound = _latest(config), self._bound(_latest(config))
                begin = start(input, self.get_state(bound).values, here, thread_id)
                closing = begin.gap.writes(store.batch(begin.gap.reads(thread_id))) if begin.gap else []
                if writes := [*begin.operations, *closing]:
                    store.batch(writes)
            given = _named(begin.input, news if begin.input is input else None, bound)
            yield from super().stream(given, config, **options)
            if begin.ends_session and ending(self.storage.checkpointer, self._bound(_latest(config))) == "done":
                yield from super().stream({"end_session": True}, _latest(config), **options)
            self.pruner.after_run(thread_id, context.keep_checkpoints, context.ledger_turns)

    async def astream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> AsyncIterator[Any]:
        """Stream a run asynchronously while holding the thread's lock; see `stream`."""
        options, input, context = _durable(options), _whole(input), _context(options)
        thread_id, bound, store = _thread_id(self.config, config), self._bound(config), self.storage.store
        news, config = _news(input), _telling(config, context)
        async with self.storage.locks.ahold(thread_id):
            here = await astanding(self.storage, bound, message_id(input))
            if claim := _claim(here, thread_id, context, self.name):
                await store.abatch([claim])
            await self._aleave_branch(bound)
            begin = Start(input)
            if _is_new(input) and here.is_special:
                if here.ending == "unapplied":
                    async for _ in super().astream(None, config, **{**options, "interrupt_before": "*"}):
                        pass
                    config, bound = _latest(config), self._bound(_latest(config))
                begin = start(input, (await self.aget_state(bound)).values, here, thread_id)
                closing = begin.gap.writes(await store.abatch(begin.gap.reads(thread_id))) if begin.gap else []
                if writes := [*begin.operations, *closing]:
                    await store.abatch(writes)
            given = _named(begin.input, news if begin.input is input else None, bound)
            async for part in super().astream(given, config, **options):
                yield part
            if begin.ends_session and await aending(self.storage.checkpointer, self._bound(_latest(config))) == "done":
                async for part in super().astream({"end_session": True}, _latest(config), **options):
                    yield part
            await self.pruner.aafter_run(thread_id, context.keep_checkpoints, context.ledger_turns)

    def bulk_update_state(self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]) -> RunnableConfig:
        """Edit the state as LangGraph does, also when it means to leave a branch; `update_state` goes through it."""
        self._leave_branch(self._bound(config))
        return super().bulk_update_state(config, supersteps)

    async def abulk_update_state(
        self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]
    ) -> RunnableConfig:
        """Do what `bulk_update_state` does without blocking the event loop."""
        await self._aleave_branch(self._bound(config))
        return await super().abulk_update_state(config, supersteps)

    def _leave_branch(self, bound: RunnableConfig) -> None:
        """Note what all branches share, when an older checkpoint is gone on from; see `forks.leaving`."""
        if bound["configurable"].get("checkpoint_id"):
            newest = self.storage.checkpointer.get_tuple(_latest(bound))
            session = self.storage.store.get(namespaces.SESSIONS, _thread_id(None, bound))
            if write := leaving(bound, newest, self.get_state(bound).values, session):
                self.storage.store.batch([write])

    async def _aleave_branch(self, bound: RunnableConfig) -> None:
        """Do what `_leave_branch` does without blocking the event loop."""
        if bound["configurable"].get("checkpoint_id"):
            newest = await self.storage.checkpointer.aget_tuple(_latest(bound))
            session = await self.storage.store.aget(namespaces.SESSIONS, _thread_id(None, bound))
            if write := leaving(bound, newest, (await self.aget_state(bound)).values, session):
                await self.storage.store.abatch([write])

    def _bound(self, config: RunnableConfig | None) -> RunnableConfig:
        configurable = {**(self.config or {}).get("configurable", {}), **(config or {}).get("configurable", {})}
        return {"configurable": {"checkpoint_ns": "", **configurable}}


def _named(given: Any, news: list[BaseMessage] | None, bound: RunnableConfig) -> Any:
    """Return an input whose new messages have ids, when the thread cannot have any of them yet."""
    if news is None or bound["configurable"].get("checkpoint_id"):
        return given
    return {**given, "messages": news}


def _news(given: Any) -> list[BaseMessage] | None:
    """Return the messages of an input that ends with the user's words; None when the thread may have one of them.

    Each gets an id of its own. One made from its words would be that of the same words on a branch that a fork left,
    and what the state has must not differ from what a checkpoint gives back, so they are messages, and clean, already.

    Raises:
        SettingsError: they are nothing that LangChain reads as messages; saved, they would stop every later run, too.
    """
    if not isinstance(given, dict) or "messages" not in given:
        if isinstance(given, dict) and given and "end_session" not in given:
            raise SettingsError(f"nothing to do: send `messages` or `end_session`, not {', '.join(map(repr, given))}")
        return None
    told = given["messages"] if isinstance(given["messages"], list) else [given["messages"]]
    try:
        messages = convert_to_messages(told)
    except (ValueError, TypeError, NotImplementedError) as error:
        raise SettingsError(
            f"`messages` cannot be read: {error}; send a text, {{'role': 'user', 'content': 'a text'}}, "
            "a message of LangChain, or a list of these"
        ) from error
    if not told or None in map(_role, told) or _role(told[-1]) not in ("human", "user"):
        return None
    return [
        message.model_copy(update={"id": str(uuid4()), "content": clean_content(message.content)})
        for message in messages
    ]


def _role(message: Any) -> str | None:
    """Return who says a message in any of LangChain's spellings; None when it has an id or marks of ours."""
    if isinstance(message, BaseMessage):
        return None if message.id or MARK in message.additional_kwargs else message.type
    if isinstance(message, dict):
        return str(message.get("role")) if message.keys() == {"role", "content"} else None
    if isinstance(message, tuple) and len(message) == 2:
        return str(message[0])
    return "user" if isinstance(message, str) else None


def _durable(options: dict[str, Any]) -> dict[str, Any]:
    """Save each step before the next one starts, unless the caller wants otherwise: tools have side effects."""
    return {**options, "durability": options.get("durability") or "sync"}


def _context(options: dict[str, Any]) -> Context:
    """Return the dials of a run, whose context may be a mapping or missing."""
    context = options.get("context")
    return context if isinstance(context, Context) else Context.from_mapping(dict(context or {}))


def _telling(config: RunnableConfig | None, context: Context) -> RunnableConfig | None:
    """Let the checkpoints of a run tell of a dial that is not the default."""
    told = dial_metadata(context.keep_checkpoints)
    return {**(config or {}), "metadata": {**(config or {}).get("metadata", {}), **told}} if told else config


def _latest(config: RunnableConfig | None) -> RunnableConfig:
    """Return a config without the checkpoint that it names: of the newest one."""
    given = (config or {}).get("configurable", {})
    return {**(config or {}), "configurable": {key: given[key] for key in given if key != "checkpoint_id"}}


def _whole(given: Any) -> Any:
    """Say with every message whether the session ends with it.

    A run that died between its wish to end and the end left that wish in the state, and the next question
    would be taken for it.
    """
    if isinstance(given, dict) and given.get("messages") and "end_session" not in given:
        return {**given, "end_session": False}
    return given


def _claim(here: Standing, thread_id: str, context: Context, agent: str) -> PutOp | None:
    """Return the write that makes a thread the user's, ahead of its first checkpoint; None when it is theirs already.

    A run that died before its first step would leave a thread that anybody could go on with.

    Raises:
        SettingsError: it belongs to another user; nothing of theirs may enter it, and no approval either.
    """
    if here.session is None:
        at = now()
        record = {"thread_id": thread_id, "user_id": context.user_id, "agent": agent, "began": at, "last_activity": at}
        return PutOp(
            namespaces.SESSIONS, thread_id, {**record, "turns": 0, "consolidated_turns": 0, "shared": None}, index=False
        )
    if here.session.get("user_id") != context.user_id:
        raise SettingsError(
            f"thread {thread_id!r} belongs to another user than {context.user_id!r}; use a thread of their own"
        )
    return None


def _is_new(given: Any) -> bool:
    """Tell whether a run begins with an input, rather than resuming where the last one stopped."""
    return given is not None and not isinstance(given, Command)


def _thread_id(bound: RunnableConfig | None, config: RunnableConfig | None) -> str:
    for given in (config, bound):
        thread_id = (given or {}).get("configurable", {}).get("thread_id")
        if thread_id:
            return namespaces.checked("thread_id", str(thread_id))
    raise SettingsError('no thread: pass {"configurable": {"thread_id": "…"}} as config')
