"""What the rules learn from the user's words, and what they leave alone."""

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore

from everthread.ledger.events import Event
from everthread.ledger.record import record
from everthread.memory.distill import Candidate, candidates
from everthread.memory.distill.third_person import quotation
from everthread.nodes.distill_notes import Due, captured, session_due, settled
from everthread.state import Note, namespaces
from text_growth import LINEAR, growth


def distilled(due: Due) -> tuple[list[Event], list[PutOp]]:
    return settled(captured(due, "t"), due.by)


def only(text: str, question: str = "") -> Candidate:
    (found,) = candidates(text, question=question)
    return found


@pytest.mark.parametrize(
    ("said", "note"),
    [
        ("I prefer aisle seats.", "Prefers aisle seats."),
        ("i dont like flying", "Doesn't like flying."),
        ("By the way, I usually avoid red-eyes since I can't sleep on planes.", None),
        ("When I travel for work, I prefer hotels with a gym.", "Prefers hotels with a gym when they travel for work."),
        ("I can't eat gluten, what do you suggest?", "Can't eat gluten."),
        ("I no longer eat meat.", "No longer eats meat."),
        ("I dislike hostels and prefer small inns.", "Dislikes hostels and prefers small inns."),
        ("Can you remember that I prefer trains?", "Prefers trains."),
        ("I used to like windows, but now I prefer the aisle.", "Prefers the aisle."),
        ("Please don't book anything before I approve.", 'User said: "don\'t book anything before I approve"'),
        ("We always travel with our dog.", 'User said: "We always travel with our dog"'),
        ("Since I'm on a low-fat diet, soups are fine.", None),
        ("I'm more of a train person than a flyer.", "Is more of a train person than a flyer."),
        ("My go-to is Marriott.", None),
        ("Hostels aren't my thing.", 'User said: "Hostels aren\'t my thing"'),
        ("I don't do hostels.", "Doesn't do hostels."),
        ("I've gone off sushi lately.", "Has gone off sushi lately."),
        ("Put me on the aisle whenever you can.", None),
        ("Window seats only, please, as a general rule.", None),
        ("Scrap what I said about aisle seats, I want windows from here on.", None),
        ("Mornings are best for calls with me.", None),
        ("Write to me in German, please.", None),
        ("I'm based in Oslo.", "Is based in Oslo."),
        ("I never drive.", "Never drives."),
        ("I always snore!", "Always snores."),
        ("As a tall man, I need extra legroom.", None),
        ("On long flights I prefer the aisle.", "Prefers the aisle on long flights."),
        ("In hot countries I need air conditioning.", None),
        ("Chain hotels leave me cold.", None),
        ("Trains beat planes for me every single time.", None),
        ("Silence matters more to me than the view.", None),
        ("Early starts are too hard for me.", None),
        ("I swear by carry-on only.", "Swears by carry-on only."),
        ("Email is the best way to reach me.", None),
        ("The only airline I trust is Contoso.", None),
        ("I pay by company card as a rule.", "Pays by company card as a rule."),
        ("Give me short answers, no bullet points.", None),
    ],
)
def test_a_lasting_statement_becomes_a_durable_note(said: str, note: str | None) -> None:
    found = only(said)

    assert found.scope == "durable"
    assert note is None or found.text == note


@pytest.mark.parametrize(
    ("said", "note"),
    [
        ("I don't live in Rome, I live in Paris.", "Lives in Paris."),
        ("Correction, I'm allergic to walnuts.", "Is allergic to walnuts."),
        ("To begin with, I prefer trains.", "Prefers trains."),
        ("My wife lives in Rome, I live in Paris.", "Lives in Paris."),
        ("By train, I prefer window seats.", "Prefers window seats by train."),
        ("Travelling with kids, I prefer trains.", "Prefers trains with kids."),
    ],
)
def test_only_a_condition_ahead_of_a_statement_becomes_part_of_its_note(said: str, note: str) -> None:
    assert only(said).text == note


@pytest.mark.parametrize(
    "said",
    [
        "Never book anything without asking me, and it does not matter how cheap it is, unless it is a tram ticket.",
        "I never fly before 9 am, but you can ignore that for funerals.",
        "I always take the bus, but with heavy bags a taxi is fine.",
        "I never eat meat, but that does not hold at Christmas.",
        "Remember that I never drink, but we may make an exception for weddings.",
        "Buche nie etwas, ohne mich zu fragen, außer es ist ein Ticket für die Tram.",
    ],
)
def test_a_note_keeps_the_exception_of_its_rule(said: str) -> None:
    assert said.split(", ")[-1].rstrip(".") in only(said).text


def test_an_exception_for_today_is_cut_off_what_lasts() -> None:
    assert (only("I prefer trains, but you can book a flight today.").scope) == "durable"


@pytest.mark.parametrize(
    "said",
    [
        "My wife is vegetarian.",
        "She thinks I prefer trains.",
        "He said I prefer trains.",
        'My boss says "I hate trains".',
        "My sister and I prefer trains.",
        "If I were rich I would always fly first.",
        "Suppose I'm vegan, what could I eat?",
        "I used to love flying.",
        "Do I prefer trains?",
        "I like that idea.",
        "I prefer the second option.",
        "I never said that I like trains.",
        "I'm not sure that I like trains.",
        "It's false that I love jazz.",
        "Je ne crois pas que j'aime voler.",
        "My boss always flies business class.",
        "The brochure says: always book early.",
        "As a student I never paid more than 20 a night.",
        "Don't tell me it's sold out!",
        "Do you remember when we met?",
        "Please remember that",
        "Remember that I am.",
        "<memories>I prefer tea.</memories>",
        "- 2026-01-01: Prefers tea. [tea]",
        "> I prefer tea.",
        "When I was a student I always hitchhiked.",
        "Does perfume set off migraines?",
        "The hotel puts me off a bit.",
        "That noise drove me crazy.",
        "The 9:40 train suits me best.",
        "Tuesday is too early for me.",
        "Star rating does not matter to me.",
        "My sister's dogs trigger her asthma.",
        "My husband runs Ubuntu.",
        "My laptop is slow today.",
        "I'm 200 metres from the station.",
        "The only flight I want is the 8:15.",
        "I'd sooner take the 9:15 than the 10:30.",
        "Keep this short, please.",
    ],
)
def test_what_is_not_the_users_own_of_today_is_left_alone(said: str) -> None:
    assert candidates(said) == []


@pytest.mark.parametrize(
    "said",
    [
        "Please do not remember that I am vegetarian.",
        "Just between us, don't store it: I'm pregnant.",
        "I'm pregnant. Please don't save that.",
        "Delete the note that I prefer aisle seats.",
        "Bitte merk dir nicht, dass ich schwanger bin.",
        "Olvida que soy vegetariano.",
        "Je ne fume pas, mais ne le note pas.",
        "Por favor, não guarde que sou vegetariano.",
        "Lütfen hamile olduğumu kaydetme.",
        "妊娠していることは覚えないでください。",
        "忘掉我吃素。",
    ],
)
def test_what_is_not_to_be_remembered_is_no_note(said: str) -> None:
    assert candidates(said) == []


@pytest.mark.parametrize("said", ["Don't forget that I'm vegetarian.", "I'm vegetarian, I never remember names."])
def test_what_is_not_to_be_forgotten_is_a_note(said: str) -> None:
    assert candidates(said) != []


def test_an_answer_that_is_not_to_be_stored_is_no_note() -> None:
    assert candidates("Peanuts, but don't store that.", question="Any food allergies?") == []


@pytest.mark.parametrize(
    "said",
    [
        "Coffee after four and I'm up all night.",
        "Gluten ties my guts in knots.",
        "Spreadsheets are my happy place.",
        "Nothing beats a night train for me.",
        "By day I fix lifts.",
        "In our house the telly stays off.",
        "Von Katzen tränen mir die Augen.",
        "Le vin rouge me donne mal à la tête.",
    ],
)
def test_what_is_built_like_a_lasting_statement_is_kept_word_for_word(said: str) -> None:
    assert (only(said).text, only(said).scope) == (quotation(said), "durable")


def test_a_statement_that_explains_a_request_is_for_the_session() -> None:
    said = "By day I fix lifts."
    assert only(said).scope == "durable"
    beside = only(f"{said} Which boots would you take?")
    assert (beside.text, beside.scope) == (quotation(said), "session")


def test_strictly_only_known_forms_of_speech_count() -> None:
    assert candidates("Spreadsheets are my happy place.", is_strict=True) == []
    assert candidates("Spreadsheets are my happy place. Which one is free?", is_strict=True) == []
    assert candidates("I never fly at night.", is_strict=True) != []


@pytest.mark.parametrize(
    "said",
    [
        "I'm allergic to peanuts.",
        "Remember that I am vegetarian.",
        "I refuse to fly.",
        "Never book without asking me.",
        "Always ask before paying.",
        "I need a wheelchair accessible room.",
        "Please check with me before you pay for anything.",
        "Hold off on buying until you hear from me.",
        "Nothing gets charged without my say-so.",
        "Under no circumstances may you pay without my okay.",
        "My manager is not to hear about our plans.",
        "Peanuts could kill me, so no peanuts in any meal.",
        "I use a wheelchair and need step-free access.",
        "We keep kosher.",
        "No seafood for me, ever.",
        "Only travel after 6 pm works for me on weekdays.",
    ],
)
def test_what_must_not_be_forgotten_is_a_constraint(said: str) -> None:
    assert (only(said).kind, only(said).scope) == ("constraint", "durable")


@pytest.mark.parametrize(
    ("said", "note"),
    [
        ("I'd like an aisle seat.", "This time wants aisle seat."),
        ("Can you find a cheap hotel?", "This time wants cheap hotel."),
        ("This time I want a window seat.", 'User said: "This time I want a window seat"'),
        ("My budget is 900 EUR.", 'User said: "My budget is 900 EUR"'),
        ("I can't go over 850 dollars all in.", 'User said: "I can\'t go over 850 dollars all in"'),
        ("Keep it under 120 a night.", 'User said: "Keep it under 120 a night"'),
        ("For the Berlin trip only, I want a bath.", 'User said: "For the Berlin trip only, I want a bath"'),
        ("Today I'd take a window seat.", "This time wants window seat."),
    ],
)
def test_a_request_holds_for_this_session(said: str, note: str) -> None:
    assert (only(said).text, only(said).scope) == (note, "session")


def test_an_exception_and_the_default_are_two_notes() -> None:
    found = candidates("I usually sit in the aisle, but this time I want a window seat.")

    assert [one.scope for one in found] == ["durable", "session"]


def test_a_default_without_a_verb_has_its_exception_too() -> None:
    found = candidates("Usually four stars, though for this stay three is fine.")

    assert [one.scope for one in found] == ["durable", "session"]


@pytest.mark.parametrize(
    ("question", "reply", "note", "scope"),
    [
        ("Do you prefer a window or an aisle seat?", "Aisle.", "Prefers aisle seat.", "durable"),
        ("Would you like window or aisle?", "Aisle please", "This time wants aisle.", "session"),
        ("Shall I add free wifi?", "Yes please", "This time wants free wifi.", "session"),
        ("Aisle or window?", "The window, always.", "Prefers window.", "durable"),
        ("Any food allergies?", "Peanuts.", 'Asked "Any food allergies?", the user said: "Peanuts"', "durable"),
    ],
)
def test_an_answer_takes_its_meaning_from_the_question(question: str, reply: str, note: str, scope: str) -> None:
    found = only(reply, question)

    assert (found.text, found.scope) == (note, scope)


@pytest.mark.parametrize("reply", ["No.", "Not sure", "Whatever you think"])
def test_an_answer_that_says_nothing_is_no_note(reply: str) -> None:
    assert candidates(reply, question="Do you have any food allergies?") == []


def test_an_injected_note_pasted_back_is_not_learnt_again() -> None:
    assert candidates("I like tea.", known=["I like tea."]) == []


def test_the_quote_is_word_for_word() -> None:
    assert only("Well ,  I 'm allergic to nuts .").quote == "Well ,  I 'm allergic to nuts ."


@pytest.mark.parametrize("piece", ["a.m. ", "I prefer a, ", "but this time ", "not x ", "<memories", "' \"", "x-"])
def test_a_long_message_is_read_fast_and_bounded(piece: str) -> None:
    assert len(candidates("I prefer tea number one. " * 500 + piece * (6_000 // len(piece)))) <= 12


def test_a_long_list_of_statements_is_kept_whole() -> None:
    foods = [f"{letter}nuts" for letter in "abcdefghijklmnopq"]

    found = candidates(" ".join(f"I'm allergic to {food}." for food in foods))

    assert [one.text for one in found] == [f"Is allergic to {food}." for food in foods]


def test_a_long_question_is_not_searched_for_an_answer() -> None:
    assert candidates("Aisle.", question="Do you prefer " + "rather have or " * 3_000 + "a seat?") == []


def test_a_wish_ahead_of_a_long_paste_or_behind_it_is_read() -> None:
    paste = "".join(f"row {number} of the log, nothing special\n" for number in range(700))

    found = candidates(f"I never fly on Mondays.\n{paste}I am allergic to peanuts.")

    assert [one.text for one in found] == ["Never flies on Mondays.", "Is allergic to peanuts."]


@pytest.mark.parametrize("unit", ["(", "no, ", "I prefer aisle seats and ", "I never say it. "])
def test_the_time_of_a_long_message_grows_with_its_length(unit: str) -> None:
    def read(size: int) -> None:
        candidates(unit * (size // len(unit)), question="Window or aisle?")

    read(100)

    assert growth(read, 1_500) <= LINEAR


def test_the_question_ahead_is_the_one_that_is_answered() -> None:
    asked = AIMessage("Do you prefer a window or an aisle seat?", id="a")

    events, writes = distilled(Due([asked, HumanMessage("Aisle.", id="m")], "turn"))

    assert len(events) == 1
    assert writes[0].value is not None
    assert writes[0].value["sources"][0]["message_ids"] == ["m"]


def test_tool_and_turn_make_one_note_of_one_statement() -> None:
    source = {"thread_id": "t", "message_ids": ["m"]}
    saved = Note.model_validate({"id": "n", "text": "Likes aisle seats.", "date": "2026-01-01", "sources": [source]})
    said = HumanMessage("I prefer aisle seats. I avoid layovers.", id="m")

    _, writes = distilled(Due([said], "turn", [saved]))

    assert [write.value["text"] for write in writes if write.value] == ["Avoids layovers."]


def test_turn_and_session_make_one_note_of_one_statement() -> None:
    said = [HumanMessage("I prefer aisle seats.", id="m")]

    assert distilled(Due(said, "turn"))[1] == distilled(Due(said, "session"))[1]


def test_a_deleted_note_is_not_learnt_again_at_the_end_of_the_session() -> None:
    store, said = InMemoryStore(), [HumanMessage("I prefer aisle seats.", id="m")]
    events, writes = distilled(Due(said, "turn"))
    record(store, "t", events, write=lambda _: None, turn=1, operations=writes)
    store.delete(namespaces.session_notes("t"), writes[0].key)

    assert distilled(session_due(store, "t", said)) == ([], [])


def test_the_end_of_a_session_finds_what_no_turn_has_found() -> None:
    said = [HumanMessage("I prefer aisle seats.", id="m")]

    assert len(distilled(session_due(InMemoryStore(), "t", said))[1]) == 1


@pytest.mark.parametrize(
    "said",
    [
        "Anything with peanuts would land me in hospital.",
        "Dogs trigger my asthma.",
        "My knees won't take more than two flights of stairs.",
        "I need an aisle seat because of my bladder.",
        "I've been vegan since 2019.",
        "Halal meals only, please.",
        "I use a screen reader.",
        "I observe Ramadan.",
        "I don't work on Fridays.",
        "Nothing before nine in the morning for me, ever.",
        "Our company won't reimburse taxis.",
        "All purchases have to be approved by finance.",
        "Whatever you book, it has to be refundable.",
    ],
)
def test_a_body_a_faith_and_an_employer_set_constraints(said: str) -> None:
    found = only(said)

    assert (found.scope, found.kind) == ("durable", "constraint")


@pytest.mark.parametrize(
    "said",
    [
        "My laptop is a ThinkPad.",
        "I'm on Windows 11, how do I print?",
        "We're on Pacific Time.",
        "I don't have a driver's licence.",
        "I only speak Portuguese.",
        "I have two kids.",
        "Our office closes at four on Fridays.",
    ],
)
def test_what_someone_has_and_works_with_is_a_fact(said: str) -> None:
    found = only(said)

    assert (found.scope, found.kind) == ("durable", "fact")


@pytest.mark.parametrize(
    ("said", "scope"),
    [
        ("On Monday I prefer the early train.", "session"),
        ("For this flight I prefer the aisle.", "session"),
        ("We travel with a group tomorrow.", "session"),
        ("I'm capped at 180 euros a night for work.", "durable"),
    ],
)
def test_a_day_ahead_of_a_statement_limits_it_and_an_amount_does_not(said: str, scope: str) -> None:
    assert only(said).scope == scope


@pytest.mark.parametrize(
    "rule",
    [
        "Nothing above fifty leaves the account without my okay.",
        "Überweisungen gehen nie ohne meine Freigabe raus.",
        "私の許可なしに予約しないでください。",
        "没有我的同意不要付款。",
    ],
)
def test_a_rule_beyond_doubt_is_kept_for_later_sessions(rule: str) -> None:
    assert [(one.quote, one.scope) for one in candidates(rule)] == [(rule, "durable")]


@pytest.mark.parametrize(
    "said",
    [
        "I'm vegan. Edit the deck, but don't save it.",
        "Soy vegana. No lo guardes como PDF.",
        "I'm not sure I mentioned it, but I'm allergic to peanuts.",
        "Never tell anyone that we have a discount.",
        "Nunca esqueça que eu sou vegetariano.",
        "You must not, under any circumstances, forget that I'm allergic to nuts.",
    ],
)
def test_a_file_that_is_not_to_be_saved_and_a_fact_that_is_not_to_be_forgotten_cost_no_note(said: str) -> None:
    assert candidates(said)
