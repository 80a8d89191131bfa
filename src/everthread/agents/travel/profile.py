"""What trusted systems know about a traveller."""

import datetime
import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

_CURRENCIES = """
AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLP CNY
COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS
INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP
MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR
SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VES VND VUV
WST XAF XCD XCG XOF XPF YER ZAR ZMW ZWG
"""
"""Active codes of ISO 4217 that people pay with."""

_LONGEST = 120
"""Characters of one value: the profile is in every prompt."""

_NUMBERS = re.compile(r"passport|card|ssn|social_security|identity", re.IGNORECASE)


def _one_line(text: str) -> str:
    if not text.isprintable():
        raise ValueError("must be one line of plain text, without line breaks or control characters")
    return text


Text = Annotated[
    str, StringConstraints(min_length=1, max_length=_LONGEST, strip_whitespace=True), AfterValidator(_one_line)
]


class TravelProfile(BaseModel):
    """Profile of a traveller; comes from the customer system, never from a chat."""

    model_config = ConfigDict(extra="forbid", frozen=True, title="Travel profile")

    customer_id: Text | None = Field(default=None, description="Number or name in the customer system.")
    name: Text | None = Field(default=None, description="How to address the traveller.")
    age: int | None = Field(default=None, ge=0, le=120, description="Age in whole years; not the date of birth.")
    home_city: Text | None = Field(default=None, description="Where trips begin unless the traveller says otherwise.")
    currency: str | None = Field(default=None, description="ISO 4217 code that the traveller thinks in, such as `EUR`.")
    passport_expiry: datetime.date | None = Field(
        default=None, description="Day until which the passport is valid, YYYY-MM-DD; never its number."
    )
    airline_status: Text | None = Field(default=None, description="Airline loyalty status, such as `Gold`.")
    airline_loyalty_id: Text | None = Field(default=None, description="Membership id with the airline.")
    hotel_status: Text | None = Field(default=None, description="Hotel loyalty status, such as `Titanium`.")
    hotel_loyalty_id: Text | None = Field(default=None, description="Membership id with the hotel group.")
    seat_preference: Literal["aisle", "window", "middle"] | None = Field(
        default=None, description="Usual seat; a session note can differ for one trip."
    )
    tone: Text | None = Field(default=None, description="How the traveller likes to be written to, such as `concise`.")
    visas: tuple[Text, ...] = Field(
        default=(), max_length=20, description="Countries or areas with a valid visa, such as `Schengen`."
    )
    insurance_coverage: Text | None = Field(
        default=None, description="Travel insurance the traveller already has and what it covers."
    )
    rental_car_coverage: Text | None = Field(
        default=None, description="Cover for rental cars, such as `primary collision damage waiver`."
    )

    @model_validator(mode="before")
    @classmethod
    def _refuse_document_numbers(cls, values: Any) -> Any:
        if isinstance(values, dict):
            for name in values:
                if name not in cls.model_fields and _NUMBERS.search(str(name)):
                    raise ValueError(f"`{name}` does not belong in a profile; leave document and card numbers out")
        return values

    @field_validator("currency")
    @classmethod
    def _known_currency(cls, code: str | None) -> str | None:
        if code is None:
            return None
        if code.strip().upper() not in _CURRENCIES.split():
            raise ValueError(f"unknown currency {code!r}; use an ISO 4217 code such as 'USD' or 'EUR'")
        return code.strip().upper()

    @field_validator("seat_preference", mode="before")
    @classmethod
    def _any_case(cls, seat: Any) -> Any:
        return seat.strip().lower() if isinstance(seat, str) else seat
