"""`chat`: talk with an agent."""

import re
import sys
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Annotated

import typer
from langchain_core.language_models import BaseChatModel
from langgraph.types import Interrupt

from everthread.calls import prompt_at, prompt_changes
from everthread.cli.context import print_call, print_changes, print_preview
from everthread.cli.conversation import Conversation, Turn
from everthread.cli.end import print_ending
from everthread.cli.options import (
    DEFAULT_DATABASE,
    WAIT_SECONDS,
    AgentName,
    DatabaseUrl,
    ModelName,
    SpendLimits,
    command_line,
    load_agent,
    ready_agent,
    thread_option,
    user_option,
    with_spend,
)
from everthread.cli.output import counted, error, in_options, note, out, say
from everthread.cli.prompt_view import bar, headline, legend
from everthread.cli.reading import check_owner, note_busy, print_notes
from everthread.cli.screen import Screen, saved_line
from everthread.compactions import preview
from everthread.errors import EverthreadError
from everthread.graph.agent import build_graph, node_deps
from everthread.graph.ending import end_thread
from everthread.graph.turn_parts import question
from everthread.ledger import events
from everthread.ledger.events import PromptAssembled
from everthread.memory.text.consent import answer_of, approves
from everthread.models.identity import describe
from everthread.models.provider import resolve
from everthread.nodes.prompt_plan import make_plan, read_memory
from everthread.nodes.sizes import PromptSize
from everthread.nodes.spending import amount_of
from everthread.state import Agent, Context, State
from everthread.storage.adoption import refuse_foreign
from everthread.storage.open import Storage, open_storage
from everthread.storage.reading import exists, long_term_notes, read_thread, record_of, session_notes

_FENCE = '"""'
"""Opens and closes a message of several lines."""

_COMMAND = re.compile(r"/[\w-]*")
"""The first word of a command; one with another slash is a path, and what is fenced is a message in any case."""

_HELP = f"""\
/end     end the session: what lasts becomes long-term, the rest goes; the thread can go on
/notes   what is remembered about you
/budget  what was in the last prompt
/context the last prompt message by message; /context diff and /context preview as the command of that name
/retry   go on with a turn that failed or was stopped
/quit    leave; everything that was answered is saved
{_FENCE}      on a line of its own opens and closes a message of several lines, or one that begins with /"""

_OFFLINE = "The offline model is pattern matching, not a language model; --model openai:NAME takes a real one."


def chat(
    agent: AgentName = None,
    user: Annotated[
        str | None,
        user_option("Who is talking.  [default: the thread's user, else local]"),
    ] = None,
    thread: Annotated[str | None, thread_option("Continue this thread.  [default: a new one]")] = None,
    model: ModelName = None,
    window: Annotated[
        int | None, typer.Option("--window", metavar="N", help="Input limit in tokens.  [default: the model's own]")
    ] = None,
    spend: SpendLimits = None,
    database: DatabaseUrl = DEFAULT_DATABASE,
) -> None:
    """Talk with an agent; lines from a pipe work too, one message each.

    Inside: /end ends the session, /notes, /budget, /context, /retry, /help, /quit. Three double quotes on a line
    of their own open and close a message of several lines.

    From a pipe, the line after a question answers it when it is a plain yes or no; any other line declines, and is the
    next message.
    """
    # Everything that can be wrong with the command line is found before a file is made.
    context = Context(user_id="local" if user is None else user, window=window)
    chosen = None if agent is None else load_agent(agent)
    chat_model = resolve(model)
    if chosen is not None:
        chosen = with_spend(chosen, spend)
    with open_storage(database, lock_timeout_seconds=WAIT_SECONDS) as storage:
        thread_id = thread or f"t-{uuid.uuid4().hex[:8]}"
        if note_busy(storage, [thread_id]):
            # What the other run leaves is what this chat goes on from.
            with storage.locks.hold(thread_id):
                pass
        record = record_of(storage.store, thread_id) or {}
        context = Context(user_id=check_owner(record, thread_id, user), window=context.window)
        refuse_foreign(storage.checkpointer, thread_id, State.__annotations__)
        talking_to = chosen or with_spend(ready_agent(record, thread_id), spend)
        _check_window(talking_to, chat_model, context, storage, thread_id)
        if (before := record.get("agent", talking_to.name)) != talking_to.name:
            note(f"the agent {before!r} has run this thread; from now on {talking_to.name!r} does")
        again = command_line(
            "chat",
            thread=thread_id,
            user=None if context.user_id == Context.user_id else context.user_id,
            agent=agent,
            model=model,
            window=window,
            spend=spend,
            database=database,
        )
        code = _Dialogue(storage, talking_to, chat_model, context, thread_id, again).run()
    raise typer.Exit(code)


class _Dialogue:
    """Reads messages until the input ends.

    Args:
        again: the command that goes on with the thread.
    """

    def __init__(
        self, storage: Storage, agent: Agent, model: BaseChatModel, context: Context, thread_id: str, again: str
    ) -> None:
        self._storage = storage
        self._title = agent.title
        self._model_name = describe(model)
        self._user_id = context.user_id
        self._thread_id = thread_id
        self._dials = context
        self._again = again
        self._failed = self._owes_answer = False
        self._kept: str | None = None
        self._screen = Screen()
        self._graph = build_graph(agent, model=model, storage=storage)
        self._conversation = Conversation(self._graph, thread_id, context, self._decide, self._screen.show)

    def run(self) -> int:
        """Talk until /quit or the end of the input.

        Returns:
            0; or 1 when a turn failed and nobody was there to see it.
        """
        try:
            with self._conversation:
                self._greet()
                self._talk()
        except InputEnded:
            note("the input ended before an answer; the question stays open, the next chat on the thread asks again")
        finally:
            # Also when Ctrl-C ends the chat.
            if _is_interactive():
                self._screen.close()
                note(f"{self._again} goes on with this conversation")
        return 1 if (self._failed or self._owes_answer) and not _is_interactive() else 0

    def _talk(self) -> None:
        commands: dict[str, Callable[[], None]] = {
            "/end": self._end,
            "/notes": self._notes,
            "/budget": self._budget,
            "/retry": self._retry,
            "/help": lambda: say(_HELP),
        }
        while (read := self._read()) is not None:
            text, is_block = read
            word, *rest = text.split(maxsplit=1) or [""]
            if is_block or not _COMMAND.fullmatch(word):
                if text:
                    self._turn(partial(self._conversation.say, text))
            elif word == "/context":
                self._context("".join(rest))
            elif word not in commands and word != "/quit":
                note(f"there is no command {word}; /help lists them")
            elif rest:
                note(f"{word} takes nothing behind it; nothing was done")
            elif word == "/quit":
                return
            else:
                commands[word]()

    def _read(self) -> tuple[str, bool] | None:
        line, self._kept = self._kept, None
        return read_message(line)

    def _greet(self) -> None:
        say(
            f"{self._title} · model {self._model_name} · user {self._user_id} · thread {self._thread_id} · "
            f"{self._storage.url}",
            "bold",
        )
        if self._model_name == "offline":
            say(_OFFLINE, "dim")
        if _is_interactive():
            say("/help lists the commands.", "dim")
        if not exists(self._storage, self._thread_id):
            return
        view = read_thread(self._storage, self._thread_id)
        say(f"This thread has {counted(len(view.messages), 'message')} in {counted(view.turns, 'turn')}.", "dim")
        if view.asked:
            waiting = "an approval" if len(view.asked) == 1 else counted(len(view.asked), "approval")
            say(f"It waits for {waiting}:", "yellow")
            self._retry()
        elif view.unfinished and _is_interactive():
            if read_answer("Its last message has no answer. Go on with it? [Y/n]").lower() in {"", "y", "yes"}:
                self._retry()
        elif view.unfinished:
            # A line from a pipe is a message; it is never the answer to a question that it cannot expect.
            note("its last message has no answer; going on with it first")
            self._retry()
            # The next message is answered together with it.
            self._owes_answer, self._failed = self._failed, False

    def _turn(self, act: Callable[[], Turn]) -> None:
        """Run a turn; a failure is one sentence and the dialogue goes on."""
        note_busy(self._storage, [self._thread_id])
        try:
            turn = act()
        except EverthreadError as failure:
            self._screen.close()
            error(in_options(failure))
            self._failed = True
            if self._conversation.is_unfinished():
                note("/retry goes on with this turn; a further message is answered together with it")
        except KeyboardInterrupt:
            self._screen.close()
            goes_on = "/retry" if _is_interactive() else self._again
            kept = self._conversation.is_unfinished()
            note(f"stopped; your message is kept, and {goes_on} goes on with it" if kept else "stopped; send it again")
            if not _is_interactive():
                raise
        else:
            self._owes_answer = False
            self._screen.close()
            say(saved_line(turn), "dim")

    def _decide(self, interrupt: Interrupt) -> bool | str:
        self._screen.close()
        say()
        say(question(interrupt.value), "yellow")
        if isinstance(interrupt.value, Mapping) and interrupt.value.get("type") == "spend":
            return self._answer("Spend more? [y/N or an amount]", currency=str(interrupt.value["currency"]))
        approved = approves(self._answer("Approve? [y/N]"))
        say("approved" if approved else "declined", "dim")
        return approved

    def _answer(self, asked: str, *, currency: str = "") -> str:
        """Ask for one line; one from a pipe that answers nothing is kept as the next message, and declines.

        Args:
            asked: the question.
            currency: of an amount that answers it; empty: none does.
        """
        if self._kept is None:
            answer = read_answer(asked)
            word, rest = answer_of(answer)
            is_no = not answer or (word == "no" and not rest)
            is_amount = bool(currency) and amount_of(answer, currency) is not None
            if _is_interactive() or is_no or approves(answer) or is_amount:
                return answer
            self._kept = answer
        note("the line is neither a plain yes nor a no: it declines, and is the next message")
        return ""

    def _retry(self) -> None:
        if self._conversation.is_unfinished():
            self._turn(self._conversation.go_on)
        else:
            note("nothing is waiting: every message has its answer")

    def _end(self) -> None:
        if not exists(self._storage, self._thread_id):
            note("there is nothing to end yet")
            return
        try:
            ending = end_thread(self._graph, self._storage, self._thread_id, self._user_id)
        except EverthreadError as failure:
            error(in_options(failure))
            self._failed = True
            return
        say("The session has ended; a further message begins another one on this thread.", "bold")
        print_ending(ending)

    def _notes(self) -> None:
        store = self._storage.store
        long_term, session = long_term_notes(store, self._user_id), session_notes(store, self._thread_id)
        for heading, notes in (("Long-term notes", long_term), ("Session notes", session)):
            print_notes(heading, notes)

    def _budget(self) -> None:
        history = events(self._storage.store, self._thread_id)
        prompts = [event for event in history if isinstance(event, PromptAssembled)]
        if not prompts:
            note("no prompt has been sent yet")
            return
        prompt = prompts[-1].model_dump(mode="json")
        say(headline(prompt))
        out().print(bar(prompt))
        say(legend(prompt))

    def _context(self, wanted: str) -> None:
        """Show the last prompt, what changed in it, or the next compaction."""
        storage, thread_id = self._storage, self._thread_id
        if wanted not in ("", "diff", "preview"):
            note(f"/context stands alone or with `diff` or `preview`, got {wanted!r}")
            return
        if not exists(storage, thread_id):
            note("no prompt has been sent yet")
            return
        try:
            if wanted == "preview":
                print_preview(preview(self._graph, thread_id, context=self._dials))
                return
            sent = prompt_at(storage, thread_id)
            if wanted != "diff":
                print_call(thread_id, sent)
            elif sent.parent is None:
                note("there is no call before it")
            else:
                before = prompt_at(storage, thread_id, sent.parent)
                print_changes(before, sent, prompt_changes(before, sent, events(storage.store, thread_id)))
        except EverthreadError as failure:
            note(in_options(failure))


def _check_window(agent: Agent, model: BaseChatModel, context: Context, storage: Storage, thread_id: str) -> None:
    """Refuse a window that no message can fit into, before one is typed."""
    deps, store = node_deps(agent, model), storage.store
    plan = make_plan(read_memory(store, thread_id, context, None), (), store, thread_id, context, deps)
    # As the first turn does: the readers of what left the prompt are not bound yet.
    PromptSize.of({}, plan, deps.model_for(context), reads_back=False)


class InputEnded(Exception):
    """The input ended where an answer was wanted; silence is neither a yes nor a no."""


def read_message(line: str | None = None) -> tuple[str, bool] | None:
    """Read the next message, without blank space around it, and whether it was fenced; None at the end of the input.

    A pasted text of several lines is one message where readline knows bracketed paste, and anywhere
    between two fences.

    Args:
        line: the first one, where it was read already.
    """
    if line is None and (line := _read_line("you> ")) is None:
        return None
    if line.strip() != _FENCE:
        return line.strip(), "\n" in line.strip()
    block: list[str] = []
    while (line := _read_line("...  ")) is not None and line.strip() != _FENCE:
        block.append(line)
    return "\n".join(block).strip(), True


def read_answer(asked: str) -> str:
    """Ask for one line; one from a pipe is shown.

    Raises:
        InputEnded: there is none.
    """
    if not _is_interactive():
        print(asked, flush=True)
    line = _read_line(f"{asked} ")
    if line is None:
        raise InputEnded
    if not _is_interactive():
        say(f"> {line.strip()}")
    return line.strip()


def _is_interactive() -> bool:
    """Tell whether a person is typing."""
    return sys.stdin.isatty()


def _read_line(prompt: str) -> str | None:
    """Read one line without its line end; None at the end of the input."""
    if _is_interactive():
        with suppress(ImportError):
            import readline  # gives `input` editing and a history

            # A pasted text of several lines is one line to `input` then; Python switches it off.
            readline.parse_and_bind("set enable-bracketed-paste on")
    try:
        return input(prompt if _is_interactive() else "")
    except EOFError:
        return None
