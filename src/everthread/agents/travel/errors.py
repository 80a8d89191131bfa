"""What goes wrong with a request for travel, told so that the model knows what to ask."""

from langchain_core.tools import ToolException

from everthread.errors import EverthreadError


class TravelError(EverthreadError, ToolException):
    """A search or a booking cannot be done as asked; the message says why and what to ask or change.

    It is a `ToolException`, so a tool that raises it answers its call with the text instead of
    ending the run.
    """
