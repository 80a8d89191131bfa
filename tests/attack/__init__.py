"""Attacks: what goes wrong in the world, done on purpose, many times, and counted.

`make test` runs the short form, in seconds. `make attack` runs the long one, twenty times as many tries, and prints a
table of all attacks. How a test joins in:

    from attack.scale import tries

    def test_…(attack_row: AttackRow) -> None:
        wrong = [fault for number in range(tries(100)) for fault in attacked(number)]
        attack_row("what is attacked", tries(100), len(wrong))
        assert wrong == []
"""
