"""Intake: from what instructors have downloaded to programs that can be started. find() says what there is to grade, take() copies one of it."""

from .entries import Invalid
from .schemes import Found, Submission, chosen, find
from .unpack import Taken, take

__all__ = ["Found", "Invalid", "Submission", "Taken", "chosen", "find", "take"]
