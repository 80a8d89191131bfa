"""What every option of the sandbox carries."""

LABEL = "sandbox inventory, not a real offer"
"""Shown wherever an option or a booking is."""

CURRENCY = "USD"
"""All prices of the sandbox."""
