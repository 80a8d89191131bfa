"""Limits over HTTP and on the page: a run asks, and is granted more or refused."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from langchain_core.messages import AIMessage
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata

from everthread import Spend
from small_agent import AGENT
from web_worker import MakeWorker, Worker, new_thread, say

PRICES = "date: 2026-01-02\nmodels:\n  offline: { input: 1000, output: 4000 }\n"


def reply(text: str = "Hello, Ada.") -> AIMessage:
    return AIMessage(text, usage_metadata=UsageMetadata(input_tokens=100, output_tokens=10, total_tokens=110))


@pytest.fixture
def limited(worker: MakeWorker, tmp_path: Path) -> Callable[..., Worker]:
    def make(*replies: Any, **limits: float) -> Worker:
        file = tmp_path / "prices.yaml"
        file.write_text(PRICES, encoding="utf-8")
        return worker(*replies, agents=(replace(AGENT, spend=Spend(prices=file, **limits)),))

    return make


async def asked(client: httpx.AsyncClient) -> tuple[str, dict[str, Any]]:
    thread = await new_thread(client)
    run = (await say(client, thread, message_id="m-1", context={"window": 4_000})).json()
    assert run["status"] == "interrupted"
    (interrupt,) = run["interrupts"]
    return thread, interrupt


async def answered(client: httpx.AsyncClient, thread: str, interrupt: dict[str, Any], answer: Any) -> dict[str, Any]:
    sent = {"answers": {interrupt["id"]: answer}, "context": {"window": 4_000}}
    done = await client.post(f"/threads/{thread}/resume", json=sent)
    assert done.status_code == 200
    return dict(done.json())


async def test_a_run_asks_before_a_limit_and_says_what_the_call_costs(limited: Callable[..., Worker]) -> None:
    one = limited(user_day=0.05)

    _, interrupt = await asked(one.client())

    assert interrupt["value"]["type"] == "spend"
    assert interrupt["value"]["next_call"]["most"] > 0.05
    assert "0.00 of 0.05 USD are spent today, and the next call costs up to" in interrupt["value"]["summary"]
    assert one.model.prompts == []


@pytest.mark.parametrize("answer", [True, 20, "20"])
async def test_resume_grants_more(limited: Callable[..., Worker], answer: Any) -> None:
    one = limited(reply(), thread=0.05)
    client = one.client()
    thread, interrupt = await asked(client)

    run = await answered(client, thread, interrupt, answer)

    assert (run["id"], run["status"], run["reply"]) == ("m-1", "done", "Hello, Ada.")
    assert len(one.model.prompts) == 1


@pytest.mark.parametrize("answer", [False, "no"])
async def test_a_refusal_ends_the_turn_with_a_reply_and_no_call(limited: Callable[..., Worker], answer: Any) -> None:
    one = limited(thread=0.05)
    client = one.client()
    thread, interrupt = await asked(client)

    run = await answered(client, thread, interrupt, answer)

    assert run["status"] == "done"
    assert run["reply"].startswith("I stopped here: 0.00 of 0.05 USD are spent in this thread")
    assert one.model.prompts == []


async def test_a_client_cannot_set_a_limit(limited: Callable[..., Worker]) -> None:
    client = limited(thread=0.05).client()
    thread = await new_thread(client)

    assert (await say(client, thread, context={"spend": None})).status_code == 422


async def test_the_page_grants_an_amount(limited: Callable[..., Worker]) -> None:
    one = limited(reply(), thread=0.05)
    client = one.client()
    thread, interrupt = await asked(client)
    page = (await client.get(f"/dashboard/threads/{thread}/chat")).text
    token = page.split('name="token" value="')[1].split('"')[0]
    form = {"token": token, f"answer:{interrupt['id']}": "yes", f"words:{interrupt['id']}": "20"}

    sent = await client.post(f"/dashboard/threads/{thread}/chat/answers", data=form)
    await one.until(lambda: not one.app.state.service.runs.is_live(thread))

    assert "0.00 of 0.05 USD are spent in this thread" in page
    assert sent.status_code == 303
    assert len(one.model.prompts) == 1


async def test_a_call_shows_what_it_cost_net_of_the_cache(limited: Callable[..., Worker]) -> None:
    read = UsageMetadata(
        input_tokens=100, output_tokens=10, total_tokens=110, input_token_details=InputTokenDetails(cache_read=80)
    )
    one = limited(AIMessage("Hello.", usage_metadata=read), user_day=20.0)
    thread = await new_thread(client := one.client())
    await say(client, thread, context={"window": 4_000})
    timeline = (await client.get(f"/dashboard/threads/{thread}")).text

    shown = (await client.get(re.findall(r'href="([^"]+/calls/[^"]+)"', timeline)[0])).text

    assert "by the provider&#39;s report 20 tokens read anew, 80 from its cache, 10 written" in shown
    assert re.search(r"0\.\d{4} USD", shown)


async def test_the_page_shows_what_was_spent_to_its_owner_alone(limited: Callable[..., Worker]) -> None:
    one = limited(reply(), user_day=20.0)
    client = one.client()
    thread = await new_thread(client)
    await say(client, thread, context={"window": 4_000})

    own = (await client.get("/dashboard/spend")).text
    others = (await one.client("bob").get("/dashboard/spend")).text

    assert "<b>0.1400 USD</b> today, in 1 call." in own
    assert "test asks at 20.00 a day." in own
    assert "Hello." in own
    assert "Nothing was spent today." in others
    assert thread not in others
