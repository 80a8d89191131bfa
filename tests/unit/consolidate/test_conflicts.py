"""Which note takes the place of which."""

import pytest

from everthread.memory.consolidate.conflicts import relation
from everthread.memory.distill.third_person import quotation
from everthread.state import Note


def note(text: str, **values: object) -> Note:
    return Note.model_validate({"id": text, "text": text, "date": "2026-01-01", **values})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Prefers aisle seats.", "Prefers window seats."),
        ("Seat: aisle.", "Prefers window seats."),
        ("Avoids window seats.", "Prefers window seats."),
        ("Prefers aisle seats, not window seats.", "Prefers window seats, not aisle seats."),
        ("Lives in Berlin.", "Moved to Munich."),
        ("Works at Acme.", "Works for Globex now."),
        ("Is vegetarian.", "Is vegan now."),
        ("Budget is 900 EUR.", "Budget is 1,200 EUR."),
        ("The weekly target is 1,200 words.", "The weekly target was raised to 1,350 words."),
        ("The deadline is on May 20.", "The deadline was moved to May 25."),
        ("Hotel area: north.", "Hotel area: any."),
        ("The cuisine of the restaurant is Thai.", "The cuisine of the restaurant is Greek."),
        ("Prefers Thai for the restaurant food.", "Prefers Greek for the restaurant food."),
        ("Hates red-eye flights.", "Likes red-eye flights."),
        ("Eats meat.", "No longer eats meat."),
        ("Wants 4 tickets.", "Wants 5 tickets."),
        ("Prefers morning flights.", "Prefers evening flights."),
        ("Usually stays at the Meridian.", "Usually stays at the Aurora now."),
        ("The budget is $50.", "Changed the budget from $50 to $60."),
        ("North is the user's choice for the hotel area.", "South is the user's choice for the hotel area."),
        ("Always flies business class.", "Flies economy these days."),
        ("My budget is 900.", "I can spend 700."),
        ("At most 150 euros a night.", "Up to 200 euros a night is fine."),
        ("Maximum 150 a night for hotels.", "Hotels can cost 180 a night now."),
        ("Prefers aisle seats.", "I've come to prefer the window."),
        ("Flies economy.", "Only business class these days."),
        ("Works at Acme.", "Started at Globex last month."),
        ("Home airport is FRA.", "I fly out of Munich now."),
        ("Wants a twin room.", "King bed, please, from now on."),
        ("Prefers 4-star hotels.", "Five stars from now on."),
        ("Wants prices in dollars.", "Show prices in euros from now on."),
        ("Three checked bags.", "Two checked bags are enough now."),
        ("Flights before 9 am are fine.", "No flights before 9 am any more."),
        ("Uses a Windows laptop.", "Switched to a Mac."),
        ("Needs parking at the hotel.", "No longer needs parking."),
        ("Wants hotel area north.", "Wants hotel area south."),
        ("Wants departure date March 3.", "Wants departure date the 7th."),
        ("Budget for hotels is 120 euros a night.", "Can spend up to 160 euros a night on hotels now."),
        ("Drinks coffee in the morning.", "Has switched from coffee to tea in the morning."),
        ("Laptop runs Windows 11.", "Laptop was replaced by a MacBook."),
        ("Prefers to fly in the morning.", "Prefers to fly in the evening."),
        ("Pays with Visa.", "Has switched from Visa to Amex."),
        ("Has one dog.", "Has two dogs now."),
        ("Email is the best way to be contacted.", "Wants to be contacted by text instead."),
        ("Server db1 has 32 GB.", "Server db1 has 64 GB."),
        ("Gate is B12.", "Gate is B14."),
        ("Budget for Rome is 900.", "Budget for Rome is 1,200."),
        ("Mein Budget ist 900 Euro.", "Mein Budget ist jetzt 1200 Euro."),
        ("Mein Budget für die Reise ist 900 Euro.", "Mein Budget für die Reise ist jetzt 1200 Euro."),
        ("Mein Budget für Hotels liegt bei 900 Euro.", "Mein Budget für Hotels ist 1200 Euro."),
        ("Mon budget est de 900 euros pour le voyage.", "Mon budget pour le voyage est maintenant de 1200 euros."),
        ("Mon budget est de 900 euros en tout.", "Mon budget est de 1200 euros."),
        ("Write emails in German.", "Write emails in English."),
        ("Needs 2 rooms for 3 nights.", "Needs 3 rooms for 4 nights."),
        ("The budget for 2 people is EUR900.", "The budget for 2 people is EUR1200."),
    ],
)
def test_another_value_of_one_subject_replaces(old: str, new: str) -> None:
    assert relation(note(old), note(new)) == "replaces"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Ich bin Vegetarier.", "Ich bin kein Vegetarier mehr."),
        ("Ich mag Flugreisen.", "Ich mag Flugreisen nicht mehr."),
        ("Ich habe ein Auto.", "Ich habe kein Auto mehr."),
        ("Soy vegetariano.", "Ya no soy vegetariano."),
        ("Tengo un perro.", "Ya no tengo perro."),
        ("Je suis végétarien.", "Je ne suis plus végétarien."),
        ("J'aime les trains.", "Je n'aime plus les trains."),
        ("Sou vegetariano.", "Já não sou vegetariano."),
        ("Como carne.", "Não como mais carne."),
        ("Vejetaryenim.", "Artık vejetaryen değilim."),
        ("Et yiyorum.", "Artık et yemiyorum."),
        ("私はベジタリアンです。", "もうベジタリアンではありません。"),
        ("肉を食べます。", "もう肉は食べません。"),
        ("我吃素。", "我不再吃素了。"),
        ("我是素食者。", "我不是素食者了。"),
    ],
)
def test_a_denial_replaces_what_it_denies_in_any_language(old: str, new: str) -> None:
    assert relation(note(quotation(old)), note(quotation(new))) == "replaces"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Ich habe ein Auto.", "Ich habe keinen Hund."),
        ("Soy vegetariano.", "No soy fumador."),
        ("J'aime les trains.", "Je n'aime pas les bus."),
        ("Et yiyorum.", "Balık yemiyorum."),
        ("Vejetaryenim.", "Artık sporcu değilim."),
        ("えびが好きです。", "そばが好きではありません。"),
        ("我吃肉。", "我不吃鱼。"),
    ],
)
def test_a_denial_of_something_else_replaces_nothing(old: str, new: str) -> None:
    assert relation(note(quotation(old)), note(quotation(new))) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Likes sushi.", "Likes pizza."),
        ("Allergic to nuts.", "Allergic to shellfish."),
        ("Speaks German.", "Speaks French."),
        ("Usually stays at the Meridian.", "Usually stays at the Aurora."),
        ("Plays chess.", "Plays golf now."),
        ("Rome is the user's favorite for the honeymoon city.", "Rome is too far for the user."),
        ("Rome is far.", "Rome is expensive."),
        ("Prefers aisle seats.", "Prefers vegetarian meals."),
        ("Prefers aisle seats on flights.", "Prefers vegetarian meals on flights."),
        ("Prefers aisle seats on long flights.", "Prefers window seats on short flights."),
        ("Hotel area: north.", "Restaurant area: east."),
        ("Check in date: May 3.", "Check out date: May 9."),
        ("Prefers 2 for the number of hotel guests.", "Prefers 5 for the number of hotel nights."),
        ("Flight budget is 900 EUR.", "Hotel budget is 200 EUR."),
        ("Visited Japan in 2019.", "Visited Japan in 2023."),
        ("Paid 120 euros for the Rome hotel.", "Paid 140 euros for the Rome hotel."),
        ("Prefers to fly in the morning on workdays.", "Prefers to fly in the evening on weekends."),
        ("Prefers flying to Rome in the morning.", "Prefers flying to Oslo in the evening."),
        ("Lives near Visa Square.", "Has switched from Visa to Amex."),
        ("Does not pay with Visa.", "Has switched from Visa to Amex."),
        ("Has a dog.", "Has two cats now."),
        ("Budget is 900 EUR.", "A budget hotel is fine."),
        ("Wife is vegetarian.", "Is vegan."),
        ("Likes window seats.", "Hates middle seats."),
        ("Works from home on Fridays.", "Works at Acme."),
        ("Met Ann on May 3 at 10:00.", "Has dinner with Bob on May 9 at 19:00."),
        ("Never book before I approve.", "Prefers to book early."),
        ("Improved at chess from 60% to 85%.", "Improved at quizzes from 75% to 92%."),
        ("Prefers aisle seats.", "Wants a room with a window."),
        ("Prefers aisle seats.", "Lives in the middle of the city."),
        ("Flies economy.", "Prefers business hotels and flies often."),
        ("Flies economy.", "First flight of the day suits best."),
        ("Prefers to be contacted by email.", "Calls from the post office are fine."),
        ("Prefers to be contacted by email.", "Wants reminders by text."),
        ("Cheap hotels are fine.", "Hotel budget is 150 a night."),
        ("Lives in Berlin.", "Moved to the second floor."),
        ("Flies out of Munich.", "Flies from Berlin to Rome in May."),
        ("Budget is 900 for June.", "Budget is 1,200 for August."),
        ("Hotels cost at most 150 a night.", "Can spend 60 a day on food."),
        ("Wants city tours.", "Wants city maps."),
        ("Wants a hotel name tag.", "Wants a hotel name sign."),
        ("Has a Mac at home.", "Has a Windows PC at work."),
        ("Likes five-star reviews.", "Likes four-star hotels."),
        ("Needs car seats for the kids.", "No longer needs a car."),
        ("Name is Ada.", "Call me only in the afternoon."),
        ("Budget for Rome is 900.", "Budget for Oslo is 1,200."),
        ("Das Budget für Rom ist 900.", "Das Budget für Oslo ist 1200."),
        ("Le budget pour Rome est de 900.", "Le budget pour Oslo est de 1200."),
        ("Write emails in German.", "Write reports in English."),
    ],
)
def test_notes_on_different_things_are_both_kept(old: str, new: str) -> None:
    assert relation(note(old), note(new)) is None


def test_a_text_too_long_to_be_a_note_replaces_nothing() -> None:
    assert relation(note("1" * 50_000), note("$" + "1" * 50_000)) is None


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("Allergy: peanuts", "Allergy: shellfish", None),
        ("Rule: never book without approval", "Rule: never cancel without approval", "doubt"),
        ("Preference: aisle seats", "Preference: vegetarian meals", "doubt"),
        ("Medication: aspirin in the morning", "Medication: ibuprofen in the evening", None),
        ("Medication: aspirin", "Medication: ibuprofen", "doubt"),
        ("Food: no pork", "Food: no shellfish", "doubt"),
        ("Regel: nie ohne Freigabe buchen", "Regel: nie vor 9 anrufen", "doubt"),
        ("Seat: aisle on long flights", "Seat: window on short flights", None),
        ("Seat: aisle on long flights", "Seat: window on long flights", "replaces"),
        ("Hotel area: in the north", "Hotel area: in the south", "replaces"),
        ("Home address: 12 Main Street in Berlin", "Home address: 5 Oak Street in Hamburg", "replaces"),
        ("Address: 5 Oak Street in Bonn for invoices", "Address: 9 Elm Street in Bonn for parcels", None),
        ("Meeting time: Monday at 9:30", "Meeting time: Tuesday at 10:30", "replaces"),
        ("Pickup time: 1 pm", "Pickup time: 2 in the afternoon", "replaces"),
        ("Hotel pricerange: cheap", "Hotel pricerange: moderate", "replaces"),
        ("Hotel parking: yes", "Hotel parking: no", "replaces"),
        ("Sprache: Deutsch", "Sprache: Englisch", "replaces"),
        ("Asiento: pasillo", "Asiento: ventana", "replaces"),
        ("Alergia: nueces", "Alergia: mariscos", "doubt"),
        ("Restaurant food: Thai", "Restaurant food: Greek", "replaces"),
    ],
)
def test_under_a_heading_only_the_value_of_a_property_is_replaced(old: str, new: str, expected: str | None) -> None:
    assert relation(note(old), note(new)) == expected


def test_a_liking_beside_a_preference_is_a_doubt() -> None:
    assert relation(note("Prefers aisle seats."), note("Likes window seats.")) == "doubt"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Server db1 has 32 GB.", "Server db2 has 64 GB."),
        ("Server db1 has 32 GB.", "Server db2 has 32 GB."),
        ("Room 12 has 3 beds.", "Room 14 has 2 beds."),
        ("Sprint 12 ends on May 3.", "Sprint 13 ends on May 17."),
        ("Gate B12 closes at 18:00.", "Gate B14 closes at 19:00."),
    ],
)
def test_numbers_of_things_with_other_names_are_a_doubt(old: str, new: str) -> None:
    assert relation(note(old), note(new)) == "doubt"


def test_a_subject_that_is_known_but_not_certain_is_a_doubt() -> None:
    old, new = note("Wants a sauna.", subject="wellness"), note("Wants a massage.", subject="wellness")

    assert relation(old, new) == "doubt"
