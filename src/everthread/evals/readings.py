"""Messages of recorded conversations that were read one by one: each states something lasting that no gold names.

Ids only; what was read and found to be no such statement is left out, and so counts against the distiller.
"""

READ: dict[str, frozenset[str]] = {
    "prefeval/travel_activities/0": frozenset({"m0002"}),
    "prefeval/travel_activities/11": frozenset({"m0008"}),
    "prefeval/travel_activities/18": frozenset({"m0004"}),
    "prefeval/travel_activities/19": frozenset({"m0004", "m0006"}),
    "prefeval/travel_activities/23": frozenset({"m0004", "m0006"}),
    "prefeval/travel_activities/26": frozenset({"m0000", "m0006"}),
    "prefeval/travel_activities/34": frozenset({"m0006"}),
    "prefeval/travel_activities/36": frozenset({"m0004"}),
    "prefeval/travel_activities/39": frozenset({"m0002"}),
    "prefeval/travel_activities/44": frozenset({"m0002", "m0008"}),
    "prefeval/travel_activities/46": frozenset({"m0002"}),
    "prefeval/travel_activities/50": frozenset({"m0010"}),
    "prefeval/travel_activities/56": frozenset({"m0002"}),
    "prefeval/travel_hotel/1": frozenset({"m0002"}),
    "prefeval/travel_hotel/22": frozenset({"m0000", "m0002"}),
    "prefeval/travel_hotel/23": frozenset({"m0002"}),
    "prefeval/travel_hotel/24": frozenset({"m0004"}),
    "prefeval/travel_hotel/41": frozenset({"m0002"}),
    "prefeval/travel_hotel/48": frozenset({"m0002"}),
    "prefeval/travel_hotel/49": frozenset({"m0006", "m0008"}),
    "prefeval/travel_restaurant/14": frozenset({"m0002"}),
    "prefeval/travel_restaurant/20": frozenset({"m0002"}),
    "prefeval/travel_restaurant/25": frozenset({"m0002"}),
    "prefeval/travel_restaurant/44": frozenset({"m0002"}),
    "prefeval/travel_restaurant/49": frozenset({"m0002"}),
    "prefeval/travel_restaurant/7": frozenset({"m0002"}),
    "prefeval/travel_transportation/0": frozenset({"m0002", "m0004"}),
    "prefeval/travel_transportation/10": frozenset({"m0004"}),
    "prefeval/travel_transportation/12": frozenset({"m0002"}),
    "prefeval/travel_transportation/18": frozenset({"m0002"}),
    "prefeval/travel_transportation/27": frozenset({"m0004"}),
    "prefeval/travel_transportation/29": frozenset({"m0002", "m0006"}),
    "prefeval/travel_transportation/41": frozenset({"m0004"}),
}
"""Record id to message ids."""
