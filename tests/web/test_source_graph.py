"""The graph of sources: boxes from left to right, and lines between them."""

from everthread.ledger.lineage import LineageItem
from everthread.ledger.why import Explanation, Fact
from everthread.web.dashboard.source_graph import source_graph

MESSAGE, NOTE, LATER = (LineageItem(kind, name) for kind, name in (("message", "m"), ("note", "n"), ("note", "k")))


def account(
    item: LineageItem, *, comes_from: tuple[LineageItem, ...] = (), leads_to: tuple[LineageItem, ...] = ()
) -> Explanation:
    return Explanation(item.kind, item.id, f"about {item.id}", (Fact("in_prompt", "It is."),), comes_from, leads_to)


def test_sources_stand_to_the_left_of_what_came_from_them() -> None:
    accounts = [
        account(LATER, comes_from=(NOTE,)),
        account(NOTE, comes_from=(MESSAGE,)),
        account(MESSAGE, leads_to=(NOTE,)),
    ]
    graph = source_graph(accounts)

    assert graph is not None
    assert [one.title for one in sorted(graph.boxes, key=lambda one: one.x)] == ["about m", "about n", "about k"]
    assert len(graph.lines) == 2
    assert all(one.x + 210 <= graph.width and one.y + 46 <= graph.height for one in graph.boxes)


def test_a_circle_ends() -> None:
    graph = source_graph([account(NOTE, comes_from=(LATER,)), account(LATER, comes_from=(NOTE,))])

    assert graph is not None
    assert len(graph.lines) == 2


def test_without_links_there_is_no_graph() -> None:
    assert source_graph([account(NOTE), account(MESSAGE, leads_to=(LATER,))]) is None
