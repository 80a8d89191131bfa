"""The dialogue of `chat`: messages, commands, approvals, failures."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass

from langchain_core.language_models import BaseChatModel
from langgraph.types import Interrupt

from everthread.agents import agent_named, travel
from everthread.cli.approval import is_yes, question
from everthread.cli.conversation import Conversation, Turn
from everthread.cli.endings import end_thread, print_ending
from everthread.cli.lines import FENCE, InputEnded, is_interactive, read_answer, read_message
from everthread.cli.notes import note_text
from everthread.cli.options import DEFAULT_DATABASE
from everthread.cli.output import counted, error, note, out, say
from everthread.cli.prompt_view import bar, headline, legend
from everthread.cli.reading import exists, long_term_notes, read_thread, record_of, session_notes
from everthread.cli.screen import Screen, saved_line
from everthread.errors import EverthreadError, NotFoundError
from everthread.graph.agent import build_graph
from everthread.ledger import events
from everthread.ledger.events import PromptAssembled
from everthread.models.provider import describe, resolve, tokenizer_name
from everthread.nodes.inject_memory import resolve as resolve_memory
from everthread.nodes.wiring import Wiring
from everthread.state import Agent, Context
from everthread.storage.open import Storage
from everthread.tools.read_tool_output import read_tool_output

__all__ = ["Dialogue", "Setting"]

_HELP = f"""\
/end     end the session: what lasts becomes long-term, the rest goes; the thread can go on
/notes   what is remembered about you
/budget  what was in the last prompt
/retry   go on with a turn that failed or was stopped
/quit    leave; everything that was answered is saved
{FENCE}      on a line of its own opens and closes a message of several lines"""

_OFFLINE = "The offline model is pattern matching, not a language model; --model openai:NAME takes a real one."


@dataclass(frozen=True)
class Setting:
    """What the command line asked for, checked."""

    agent: Agent | None
    user: str | None
    thread: str | None
    model: BaseChatModel
    window: int | None

    @classmethod
    def checked(
        cls, agent: str | None, user: str | None, thread: str | None, model: str | None, window: int | None
    ) -> "Setting":
        """Check everything that needs no database.

        Raises:
            SettingsError: an agent, a model, a user or a window that cannot be.
        """
        Context(user_id="local" if user is None else user, window=window)
        return cls(None if agent is None else agent_named(agent), user, thread or None, resolve(model), window)

    def opened(self, storage: Storage) -> "Session":
        """Fill in what the thread knows: its agent and its user.

        Raises:
            NotFoundError: the thread belongs to another user.
            BudgetError: the window is too small for what is in every prompt.
        """
        thread_id = self.thread or f"t-{uuid.uuid4().hex[:8]}"
        record = record_of(storage.store, thread_id) or {}
        owner = record.get("user_id")
        if self.user is not None and owner not in (None, self.user):
            raise NotFoundError(f"user {self.user!r} has no thread {thread_id!r}; it belongs to user {owner!r}")
        agent = self.agent or (agent_named(record["agent"]) if "agent" in record else travel)
        context = Context(user_id=str(self.user or owner or "local"), window=self.window)
        _check_window(agent, self.model, context, storage, thread_id)
        return Session(storage, agent, self.model, context, thread_id)


@dataclass(frozen=True)
class Session:
    """A thread that is open for talking."""

    storage: Storage
    agent: Agent
    model: BaseChatModel
    context: Context
    thread_id: str


class Dialogue:
    """Reads messages until the input ends."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._screen = Screen()
        self._failed = False
        self._graph = build_graph(session.agent, model=session.model, storage=session.storage)
        self._conversation = Conversation(
            self._graph,
            session.thread_id,
            session.context,
            watcher=self._screen,
            decide=self._decide,
        )

    def run(self) -> int:
        """Talk until /quit or the end of the input.

        Returns:
            0; or 1 when a turn failed and nobody was there to see it.
        """
        try:
            self._greet()
            self._talk()
        except InputEnded:
            note("the input ended before an answer; the question stays open, the next chat on the thread asks again")
        if is_interactive():
            url = self._session.storage.url
            where = "" if url == DEFAULT_DATABASE else f" --database {url}"
            note(f"everthread chat --thread {self._session.thread_id}{where} goes on with this conversation")
        return 1 if self._failed and not is_interactive() else 0

    def _talk(self) -> None:
        commands = {"/end": self._end, "/notes": self._notes, "/budget": self._budget, "/retry": self._retry}
        while (text := read_message()) is not None and text != "/quit":
            if text in commands:
                commands[text]()
            elif text == "/help":
                say(_HELP)
            elif text.startswith("/") and " " not in text and "\n" not in text:
                note(f"there is no command {text}; /help lists them")
            elif text:
                self._turn(lambda text=text: self._conversation.say(text))  # type: ignore[misc]

    def _greet(self) -> None:
        session = self._session
        name = describe(session.model)
        say(
            f"{session.agent.title} · model {name} · user {session.context.user_id} · thread {session.thread_id} · "
            f"{session.storage.url}",
            "bold",
        )
        if name == "offline":
            say(_OFFLINE, "dim")
        if is_interactive():
            say("/help lists the commands.", "dim")
        if not exists(session.storage, session.thread_id):
            return
        view = read_thread(session.storage, session.thread_id)
        say(f"This thread has {counted(len(view.messages), 'message')} in {counted(view.turns, 'turn')}.", "dim")
        if view.asked:
            say("It waits for an approval:", "yellow")
            self._retry()
        elif view.unfinished and is_interactive():
            if read_answer("Its last message has no answer. Go on with it? [Y/n]") in {"", "y", "yes"}:
                self._retry()
        elif view.unfinished:
            # A line of a pipe is a message: none is taken for an answer to a question that it cannot expect.
            note("its last message has no answer; going on with it first")
            self._retry()

    def _turn(self, act: Callable[[], Turn]) -> None:
        """Run a turn; a failure is told in one sentence and the dialogue goes on."""
        try:
            turn = act()
        except EverthreadError as failure:
            self._screen.close()
            error(str(failure))
            self._failed = True
            if self._conversation.is_unfinished():
                note("/retry goes on with this turn; a further message is answered together with it")
        except KeyboardInterrupt:
            if not is_interactive():
                raise
            self._screen.close()
            note("stopped; your message is kept, and /retry goes on with it")
        else:
            self._screen.close()
            say(saved_line(turn), "dim")

    def _decide(self, interrupt: Interrupt) -> bool:
        self._screen.close()
        say()
        say(question(interrupt.value), "yellow")
        approved = is_yes(read_answer("Approve? [y/N]"))
        say("approved" if approved else "declined", "dim")
        return approved

    def _retry(self) -> None:
        if self._conversation.is_unfinished():
            self._turn(self._conversation.go_on)
        else:
            note("nothing is waiting: every message has its answer")

    def _end(self) -> None:
        session = self._session
        if not exists(session.storage, session.thread_id):
            note("there is nothing to end yet")
            return
        try:
            ending = end_thread(self._graph, session.storage, session.thread_id, session.context.user_id)
        except EverthreadError as failure:
            error(str(failure))
            self._failed = True
            return
        say("The session has ended; a further message begins another one on this thread.", "bold")
        print_ending(ending)

    def _notes(self) -> None:
        store = self._session.storage.store
        lasting = long_term_notes(store, self._session.context.user_id)
        session = session_notes(store, self._session.thread_id)
        for heading, found in (("Long-term notes", lasting), ("Session notes", session)):
            say(heading, "bold")
            for told in found:
                say(f"  {note_text(told)}" + ("  (this session only)" if told.scope == "session" else ""))
            if not found:
                say("  none", "dim")

    def _budget(self) -> None:
        made = events(self._session.storage.store, self._session.thread_id)
        prompts = [event for event in made if isinstance(event, PromptAssembled)]
        if not prompts:
            note("no prompt has been sent yet")
            return
        told = prompts[-1].model_dump(mode="json")
        say(headline(told))
        out().print(bar(told))
        say(legend(told))


def _check_window(agent: Agent, model: BaseChatModel, context: Context, storage: Storage, thread_id: str) -> None:
    """Refuse a window that no message can fit into, before one is typed."""
    wiring = Wiring(
        agent=agent,
        model=model,
        summarizer=model,
        resolve=resolve,
        name_of=tokenizer_name,
        read_tool_output=read_tool_output,
    )
    memory, _ = resolve_memory(storage.store, thread_id, context, wiring.counter(context))
    # As the first turn does: the reader of handles is not bound yet.
    wiring.budget({"memory": memory}, context, reads_back=False)
