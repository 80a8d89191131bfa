"""`show`: every message of a thread, and the versions of its summary."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from everthread.cli.options import DEFAULT_DATABASE, AsJson, DatabaseUrl, ThreadId, agent_of, command_line
from everthread.cli.output import counted, hanging, note, print_json, say
from everthread.cli.reading import COLOURS, changed_lines, explained, print_notes, when
from everthread.state import namespaces
from everthread.state.marks import marks
from everthread.state.records import items
from everthread.state.stored import StoredMessage, message_text
from everthread.storage.reader import Reader, open_reader
from everthread.storage.reading import ThreadView, read_thread, role_of, with_summary
from everthread.storage.unreadable import readable

_MAX_CHARACTERS = 2_000
"""Characters of one message that people see; `--json` has all of them."""

_IDENTIFIER = "identifier "


def show(
    thread: ThreadId,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, metavar="N", help="Only the newest N messages.  [default: all]")
    ] = None,
    summaries: Annotated[
        bool, typer.Option("--summaries", help="Every stored version of its summary, with what changed.")
    ] = False,
    database: DatabaseUrl = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Show every message of a thread.

    Also those that are no longer in its prompt, or on a branch that the thread has left; --json marks each with
    `in_prompt` and `on_left_branch`.
    """
    with open_reader(database) as reader, explained(reader, thread):
        view = read_thread(reader, thread)
        versions = _versions(reader, view) if summaries else []
    if summaries:
        _print_summaries(versions, thread, as_json=as_json)
    elif as_json:
        print_json(view.as_json(limit))
    else:
        _print_thread(view, limit, database)


def _print_thread(view: ThreadView, limit: int | None, database: str) -> None:
    record = view.record or {}
    say(
        f"thread {view.thread_id} · user {record.get('user_id', 'unknown')} · agent {record.get('agent', 'unknown')} · "
        f"{counted(view.turns, 'turn')} · {counted(len(view.messages), 'message')}, "
        f"{len(view.working_set)} of them in the prompt",
        "bold",
    )
    if view.summary:
        covered = counted(int(view.summary.get("covers", 0)), "message")
        say(f"summary {view.summary.get('version')} covers {covered}", "dim")
    for message in view.newest(limit):
        _print_message(view, message)
    if view.notes:
        say()
        print_notes("Session notes", view.notes)
    if not view.asked and not view.unfinished:
        return
    goes_on = f"`{_chat(view, database)}`" if view.is_ours else "the app whose thread it is"
    if view.asked:
        say(f"\n{counted(len(view.asked), 'approval')} open: {goes_on} asks for it", "yellow")
    else:
        say(f"\nthe last turn has no answer: {goes_on} goes on with it", "yellow")


def _chat(view: ThreadView, database: str) -> str:
    """Return the command that goes on with a thread."""
    # Taken when called: it brings LangChain, which the rest of `show` does without.
    from everthread.graph.agent import ready_agents

    is_ready = agent_of(view.record or {}).name in ready_agents()
    agent = None if is_ready else "module:attribute"
    return command_line("chat", thread=view.thread_id, agent=agent, database=database)


def _print_message(view: ThreadView, message: StoredMessage) -> None:
    place = ""
    if str(message.id) in view.left_ids:
        place = "on a branch that the thread has left"
    elif str(message.id) not in view.working_set:
        place = "only in the transcript"
    elif view.is_masked(message):
        place = "shortened in the prompt"
    heading = [role_of(message), str(message.name or ""), when(str(marks(message).get("at", ""))), place]
    say()
    say(" · ".join(filter(None, heading)), "bold" if message.type == "human" else "dim")
    text = "\n".join(filter(None, (message_text(message), *(f"[{one}]" for one in message.attachments))))
    if (more := len(text) - _MAX_CHARACTERS) > 0:
        text = f"{text[:_MAX_CHARACTERS]}\n[… {more:,} more characters; --json has them …]"
    for line in text.splitlines():
        say(f"  {line}")


def _versions(reader: Reader, view: ThreadView) -> list[dict[str, Any]]:
    """Return the stored versions of a thread's summary, oldest first, each with what it changed.

    Pruning removes the versions of pruned checkpoints; all lines of the oldest one that is left came with it.
    """
    # Taken when called: it brings LangChain, which the rest of `show` does without.
    from everthread.window.compaction import render_summary

    sections = agent_of(view.record or {}).summary_sections
    versions = []
    before = ""
    stored = sorted(items(reader, namespaces.summaries(view.thread_id)), key=lambda item: str(item.key))
    for item, summary in readable(stored, with_summary):
        text = render_summary(summary, sections)
        versions.append(
            {
                "version": summary.version,
                "writer": summary.writer,
                "covers": summary.covers,
                "current": item.value == view.summary,
                "text": text,
                "changes": changed_lines(_units(before), _units(text)),
            }
        )
        before = text
    return versions


def _units(text: str) -> list[str]:
    story, _, index = text.partition("## Identifiers seen earlier\n")
    lines = [line for line in story.splitlines() if line.strip()]
    return [*lines, *(f"{_IDENTIFIER}{identifier}" for identifier in index.split())]


def _print_summaries(versions: Sequence[dict[str, Any]], thread_id: str, *, as_json: bool) -> None:
    """Print what each version changed, and the newest one in full."""
    if versions and (gone := versions[0]["version"] - 1):
        note(
            f"{counted(gone, 'older version')} went with the checkpoints that were pruned; `keep_checkpoints` says "
            "how many turns are kept"
        )
    if as_json:
        print_json(versions)
        return
    if not versions:
        note(f"thread {thread_id!r} has no summary: nothing has left its prompt")
        return
    for one in versions:
        mark = " · in the prompt" if one["current"] else ""
        writer = "by rules" if one["writer"] == "extractive" else f"by the {one['writer']}"
        say(f"\nversion {one['version']} · {writer} · covers {counted(one['covers'], 'message')}{mark}", "bold")
        for sign, text in _gathered(one["changes"]):
            hanging(f"  {sign} ", text, COLOURS[sign])
        if not one["changes"]:
            say("  no line changed", "dim")
    say("\nThe newest version as the prompt shows it", "bold")
    for line in versions[-1]["text"].splitlines():
        hanging("  - " if line.startswith("- ") else "  ", line.removeprefix("- "))


def _gathered(changes: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the sign and the text of each change, identifiers on one line: most changes are theirs."""
    identifiers: dict[str, list[str]] = {sign: [] for sign in "+-"}
    for line in changes:
        sign, text = line[0], line[2:]
        if text.startswith(_IDENTIFIER):
            identifiers[sign].append(text.removeprefix(_IDENTIFIER))
        else:
            yield sign, text.removeprefix("- ")
    for sign, some in identifiers.items():
        if some:
            yield sign, f"{counted(len(some), 'identifier')}: {', '.join(some)}"
