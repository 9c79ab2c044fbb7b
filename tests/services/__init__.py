"""Stand-ins for the services of model vendors, good enough for the real command-line agents."""

from tests.services.script import Seen, ToolCall, Turn
from tests.services.server import StandIn

__all__ = ["Seen", "StandIn", "ToolCall", "Turn"]
