"""Which notes say the same."""

import pytest

from everthread.memory.consolidate.duplicates import says_the_same


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Prefers aisle seats.", "User prefers aisle seats"),
        ('User said: "I prefer aisle seats"', "Prefers aisle seats."),
        ("Prefers vegetarian food.", "Prefers vegitarian food."),
        ("Prefers vegetarian food.", "Prefers vegeatrian food."),
        ("Wants breakfast included.", "Wants breakfst included."),
        ("Wants 4 tickets.", "wants four tickets"),
        ("Hates cilantro.", "Does not like cilantro."),
        ("Check in: 11th of March", "Check in: March 11th"),
        ("Likes red-eye flights.", "Likes a red eye flight."),
        ("Budget is $1,200.", "Budget is 1200 USD."),
        ("Speaks German and French.", "Speaks French and German."),
        ("Prefers the Hilton in Rome.", "In Rome prefers the Hilton."),
        ("Ich trinke morgens immer Kaffee.", "Morgens trinke ich immer Kaffee."),
        ("Por la mañana siempre tomo café.", "Siempre tomo café por la mañana."),
        ("Je prends toujours un café le matin.", "Le matin, je prends toujours un café."),
        ("Meets Bob on Monday and Amy on Friday.", "Meets Amy on Friday and Bob on Monday."),
        ("Phone: +49 170 1234567", "Phone: 49 170 1234567"),
        ("Budget is 10-15 EUR.", "Budget is 10 -15 EUR."),
        ("Wants pre- and post-trip reports.", "Wants pre and post-trip reports."),
    ],
)
def test_other_wording_says_the_same(one: str, other: str) -> None:
    assert says_the_same(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Flies from Berlin to Paris.", "Flies from Paris to Berlin."),
        ("Prefers trains to planes.", "Prefers planes to trains."),
        ("Check in date: May 3.", "Check out date: May 3."),
        ("Visits Austria often.", "Visits Australia often."),
        ("Likes Boston.", "Likes Austin."),
        ("Is comfortable with heights.", "Is uncomfortable with heights."),
        ("Wants 4 beds.", "Wants 5 beds."),
        ("Likes meat.", "Does not like meat."),
        ("Wants the window, not the aisle.", "Wants the aisle, not the window."),
        ("Prefers aisle seats.", "Prefers aisle seats on long flights."),
        ("Prefers smoking rooms.", "Prefers non-smoking rooms."),
        ("Stays in hotels.", "Stays in hostels."),
        ("Studies astronomy.", "Studies astrology."),
        ("Tom owes Ann 50.", "Ann owes Tom 50."),
        ("Anna's boss is Tom.", "Tom's boss is Anna."),
        ("Prefiero el té al café.", "Prefiero el café al té."),
        ("Ich mag Tee lieber als Kaffee.", "Ich mag Kaffee lieber als Tee."),
        ("Je préfère le thé au café.", "Je préfère le café au thé."),
        ("猫が犬を追う", "犬が猫を追う"),
        ("Coffee in the morning, tea in the evening.", "Tea in the morning, coffee in the evening."),
        ("Café por la mañana, té por la tarde.", "Té por la mañana, café por la tarde."),
        ("Je suis végétarien.", "Je suis maintenant végétalien."),
        ("Programs in C.", "Programs in C++."),
        ("Keeps it at -5 degrees.", "Keeps it at 5 degrees."),
        ("Has blood type O+.", "Has blood type O-."),
    ],
)
def test_a_number_a_denial_a_direction_or_a_case_makes_another_note(one: str, other: str) -> None:
    assert not says_the_same(one, other)
