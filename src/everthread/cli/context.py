"""`context`: what a call of a thread was sent, how it differs from the call before, what the next compaction does."""

import os
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from everthread.calls import PromptChange, PromptPart, SentPrompt, prompt_at, prompt_changes
from everthread.cli.options import (
    DEFAULT_DATABASE,
    AgentName,
    AsJson,
    DatabaseUrl,
    ModelName,
    ThreadId,
    call_named,
    load_agent_or_graph,
    ready_agent,
)
from everthread.cli.output import counted, first_of, note, out, print_json, say, shortened
from everthread.cli.prompt_view import bar, headline, legend
from everthread.cli.reading import COLOURS, changed_lines, when
from everthread.compactions import Preview, preview
from everthread.errors import SettingsError
from everthread.graph.agent import build_graph
from everthread.graph.run import is_own
from everthread.graph.thread_checks import graph_on
from everthread.ledger import events
from everthread.state import Agent, Context
from everthread.storage.open import Storage
from everthread.storage.reading import reader_of, record_of, unrecorded
from everthread.storage.to_read import storage_to_read

_WIDTH = 96
_SIGNS = {"left": "-", "came": "+", "changed": "~"}


def context(
    thread: ThreadId,
    call: Annotated[
        str | None,
        typer.Option("--call", metavar="N", help="Number of the call, -2 for the last but one.  [default: the last]"),
    ] = None,
    diff: Annotated[bool, typer.Option("--diff", help="What changed since the call before it on its branch.")] = False,
    next_compaction: Annotated[
        bool, typer.Option("--preview", help="What the next compaction would do, with its price and what it saves.")
    ] = False,
    window: Annotated[
        int | None,
        typer.Option("--window", metavar="N", help="With --preview: input limit.  [default: of the last call]"),
    ] = None,
    agent: AgentName = None,
    model: ModelName = None,
    database: DatabaseUrl = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Show what a model call was sent, message by message.

    It is made again from transcript, store and ledger, also after pruning; what was erased or changed since is named.
    For --preview, --agent and --model name what the thread is run with; an agent with EverthreadMiddleware, or a graph
    of your own, by `module:attribute`.
    """
    if next_compaction and (call is not None or diff):
        raise SettingsError("`--preview` looks ahead from the newest state; leave out `--call` and `--diff`")
    if not next_compaction and (agent is not None or window is not None):
        raise SettingsError("`--agent` and `--window` are for a look ahead; add `--preview`")
    with storage_to_read(database) as storage:
        if next_compaction:
            plan = _preview(storage, thread, agent, model, window)
            print_json(plan.as_json()) if as_json else print_preview(plan)
            return
        sent = prompt_at(storage, thread, -1 if call is None else call_named(call))
        before = prompt_at(storage, thread, sent.parent) if diff and sent.parent is not None else None
        changes = prompt_changes(before, sent, events(storage.store, thread)) if before else []
    if as_json:
        print_json({**sent.as_json(), **({"changes": list(map(_as_json, changes))} if diff else {})})
    elif not diff:
        print_call(thread, sent)
    elif before is None:
        note(f"call {sent.number} of thread {thread!r} has no call before it in the ledger")
    else:
        print_changes(before, sent, changes)


def _preview(storage: Storage, thread: str, agent: str | None, model: str | None, window: int | None) -> Preview:
    record = record_of(storage.store, thread) or {}
    named = None if agent is None else load_agent_or_graph(agent)
    is_ours = reader_of(storage).is_ours(thread)
    if not is_ours and (named is None or isinstance(named, Agent)):
        if not record:
            raise unrecorded(thread)
        raise SettingsError(
            f"thread {thread!r} is one of EverthreadMiddleware, and only its app has the tools and prompt; name that "
            "app's agent by `--agent module:attribute`"
        )
    chosen = ready_agent(record, thread) if named is None else named
    if isinstance(chosen, Agent):
        graph = build_graph(chosen, model=model or "offline", storage=storage)
    else:
        # The variable is a default for agents by name; only an option that was typed is a mistake here.
        if model not in (None, os.environ.get("EVERTHREAD_MODEL")):
            raise SettingsError(f"`--model` is for agents by name: the graph {agent!r} has its model already")
        graph = graph_on(storage, chosen)
        if is_own(graph.graph) != is_ours:
            raise SettingsError(f"thread {thread!r} was not made by the graph that `--agent` names")
    if window is None:
        return preview(graph, thread)
    user = str(record.get("user_id") or "local")
    return preview(graph, thread, context=Context(user_id=user, window=window))


def print_call(thread: str, sent: SentPrompt) -> None:
    """Print one prompt: its size, its tools, and a line for each part."""
    _heading(thread, sent)
    prompt = sent.event.model_dump(mode="json")
    say(headline(prompt))
    out().print(bar(prompt, 60))
    for line in _wrapped(legend(prompt).split("  ")):
        say(line, "dim")
    if sent.tools is not None:
        for line in _wrapped([f"tools ({len(sent.tools)}):", *sent.tools], between=" "):
            say(line, "dim")
    say()
    sizes = sent.sizes()
    say(f"{'':>4}  {'tokens':>6}  {'tag':<9}  message", "bold")
    for place, (part, size) in enumerate(zip(sent.parts or (), sizes, strict=True), start=1):
        say(f"{place:>4}  {_size(size):>6}  {_line(part)}", "red" if part.missing else "")
    say("\nTokens of one message are by our own count, without the schemas of the tools.", "dim")
    _print_problems(sent)


def _heading(thread: str, sent: SentPrompt) -> None:
    parent = f" · after call {sent.parent}" if sent.parent is not None else ""
    model = f" · {sent.model}" if sent.model else ""
    title = f"thread {thread} · call {sent.number}{parent} · turn {sent.event.turn} · {when(sent.event.at)}{model}"
    say(shortened(title, _WIDTH), "bold")


def _print_problems(sent: SentPrompt) -> None:
    if sent.is_altered:
        say("Other middlewares changed this prompt on its way to the model; that is not shown.", "yellow")
    for problem in sent.problems:
        say(shortened(f"not as it was sent: {problem}", _WIDTH), "red")


def _line(part: PromptPart) -> str:
    shown = f"{part.missing} ({part.id})" if part.missing else f"{part.role}: {part.text}"
    return f"{part.tag:<9}  {shortened(shown, 70)}"


def _size(size: int | None) -> str:
    return "?" if size is None else f"{size:,}"


def _wrapped(words: Sequence[str], between: str = "  ") -> Iterator[str]:
    """Yield lines that are no wider than a page."""
    line = ""
    for word in words:
        if line and len(line) + len(between) + len(word) > _WIDTH:
            yield line
            line = "  "
        line = f"{line}{between}{word}" if line.strip() else f"{line}{shortened(word, _WIDTH - 2)}"
    if line.strip():
        yield line


def print_changes(before: SentPrompt, sent: SentPrompt, changes: Sequence[PromptChange]) -> None:
    """Print what came, left or changed between two calls; of what Everthread adds, which lines."""
    tokens, earlier = sent.event.tokens, before.event.tokens
    accuracy = sent.event.accuracy
    say(f"call {before.number} → call {sent.number} · {earlier:,} → {tokens:,} tokens ({accuracy} count)", "bold")
    moved = sent.event.head_moved
    cached = f"{sent.event.cacheable_tokens:,} tokens at the head are as they were"
    say(f"{cached}{f'; the rest moved: {moved}' if moved else ''}", "dim")
    for change in changes:
        part = change.after or change.before
        if part is None:
            continue
        sign = _SIGNS[change.kind]
        say(f"{sign} {_line(part)}", COLOURS[sign])
        if change.why:
            say(f"  {'':<9}  {shortened(f'({change.why})', 80)}", "dim")
        if change.kind == "changed":
            for line in _line_changes(change):
                say(f"    {shortened(line, 90)}", COLOURS[line[0]])
    if not changes:
        say("nothing changed", "dim")
    _print_problems(sent)


def _line_changes(change: PromptChange) -> list[str]:
    """Return the lines of a text that differ, the first of them."""
    if change.before is None or change.after is None or change.after.form == "shortened":
        return []  # of a masked result, head and tail are left of what was whole
    old, new = change.before.text.splitlines(), change.after.text.splitlines()
    return changed_lines(old, new)[:20]


def _as_json(change: PromptChange) -> dict[str, Any]:
    return {
        "kind": change.kind,
        "before": change.before and change.before.as_json(),
        "after": change.after and change.after.as_json(),
        "why": change.why,
    }


def print_preview(plan: Preview) -> None:
    """Print what the next compaction would do."""
    due = "due now" if plan.is_due else f"due in {plan.room:,} tokens"
    if plan.put_off:
        due = "due, and put off: it costs more than it saves, and there is room to wait"
    say(f"thread {plan.thread_id} · next compaction by `{plan.policy}`: {due}", "bold")
    if plan.is_empty:
        say("nothing can leave the prompt or be masked in it")
        return
    goes = "folded into the summary" if plan.policy == "summarize" else "to the transcript"
    say(f"messages   {plan.tokens_before:,} → {plan.tokens_after:,} of {plan.budget:,} tokens ({plan.accuracy} count)")
    if plan.evicted:
        say(f"leave      {counted(len(plan.evicted), 'message')}, {goes}: {_ids(plan.evicted)}")
    if plan.masked:
        say(f"masked     {counted(len(plan.masked), 'result')}: {_ids(list(plan.masked))}")
    if plan.recalled:
        say(f"recalled   what was recalled for {counted(len(plan.recalled), 'question')} goes")
    say(
        f"price      {plan.price:,} tokens at the full input price, estimated: {plan.reread:,} no longer cached"
        + (f", {plan.summarizer_tokens:,} for the summariser" if plan.summarizer_tokens else "")
    )
    say(f"saves      {plan.saves:,} until the one after it, estimated: {plan.saved:,} in each of {plan.calls:,} calls")
    if changes := changed_lines(plan.summary_before.splitlines(), plan.summary_after.splitlines()):
        by = "a model may say it otherwise" if plan.asks_model else "by rules"
        say(f"\nThe summary ({by})", "bold")
        for line in changes:
            say(f"  {shortened(line, 94)}", COLOURS[line[0]])


def _ids(names: Sequence[str]) -> str:
    return first_of([name if len(name) <= 14 else name[:12] + "…" for name in names], 3)
