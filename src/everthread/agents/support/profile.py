"""What trusted systems know about the person who asks for support."""

from typing import Annotated, Literal
from zoneinfo import ZoneInfo, available_timezones

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

Text = Annotated[str, StringConstraints(min_length=1, max_length=120, strip_whitespace=True)]

DeviceType = Literal["laptop", "desktop", "phone", "tablet", "monitor", "dock", "printer", "headset", "other"]

Channel = Literal["chat", "email", "phone", "in_person"]


def _known_zone(name: str) -> str:
    # A system without a time zone database knows no zone at all; then any name of the right form is taken.
    if available_timezones():
        try:
            ZoneInfo(name)
        except (KeyError, ValueError, OSError):
            raise ValueError(f"unknown time zone {name!r}; use an IANA name such as 'Europe/Berlin'") from None
    return name


class Device(BaseModel):
    """A device that the person was given."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: DeviceType
    model: Text
    os: Text | None = None
    """Operating system with version, such as `Windows 11 24H2`; None for a device without one."""
    asset_tag: Text | None = None


class SupportProfile(BaseModel):
    """Profile of a person in IT support; comes from the directory and the asset register, never from a chat."""

    model_config = ConfigDict(extra="forbid", frozen=True, title="Support profile")

    employee_id: Text = Field(description="Number or name in the directory.")
    name: Text = Field(description="How to address the person.")
    department: Text | None = None
    role: Text | None = None
    location: Text | None = Field(None, description="Site or country, not a postal address.")
    time_zone: Annotated[str, AfterValidator(_known_zone)] | None = Field(
        None, description="IANA name, such as `Europe/Berlin`."
    )
    devices: tuple[Device, ...] = Field((), description="Devices that the person was given.")
    vip: bool = Field(False, description="Whether tickets of this person take precedence.")
    preferred_contact: Channel | None = Field(
        None, description="Kind of channel; numbers and addresses stay in the directory."
    )
    language: Annotated[str, Field(pattern=r"^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$")] | None = Field(
        None, description="BCP 47 tag, such as `en` or `pt-BR`."
    )
