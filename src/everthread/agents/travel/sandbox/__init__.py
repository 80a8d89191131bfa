"""A sandbox of flights, hotels, cars and insurance, labelled as such wherever it is shown."""

from everthread.agents.travel.sandbox.inventory import SandboxInventory
from everthread.agents.travel.sandbox.label import LABEL

__all__ = ["LABEL", "SandboxInventory"]
