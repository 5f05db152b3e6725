"""The outside world as a server: a model, a payment service, a mail service; what they saw; what goes wrong."""

from .account import Account, Request
from .faults import Fault
from .server import Outside

__all__ = ["Account", "Fault", "Outside", "Request"]
