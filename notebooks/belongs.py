"""The inventory of notebook 07: what of an agent's state belongs in its record, how, and why. Here, so that it is not on the page."""

import inventory

VALUE, REFERENCE, NO = "value", "reference", "no"
FOUND = {
    "the messages so far": (VALUE, "the model remembers nothing: the next call is made of them, and no second call would give the same ones"),
    "the plan, and where it is in it": (VALUE, "if the model made the plan, nobody can make the same one again"),
    "facts that tools found out": (VALUE, "in named fields: they were true when they were found, and later steps rest on them"),
    "an approval that it waits for": (VALUE, "the wait may last days, and outlives every process: what is asked, of whom, and under which key"),
    "tokens and money spent so far": (VALUE, "a budget that begins anew at each start is no budget"),
    "keys of what was begun outside": (VALUE, "without them nobody can ask whether it happened"),
    "the video that the customer sent": (REFERENCE, "its address and its hash: it is large, it never changes, and its store keeps it"),
    "what was said in earlier chats": (REFERENCE, "it is memory, with an owner and an end of its own; the run must end well without it"),
    "the API key of the payment service": (REFERENCE, "its name alone: a record is read by many, and a secret may be changed meanwhile"),
    "the open connection to the model": (NO, "it dies with the process; the next one opens its own"),
    "half a sentence that is being streamed": (NO, "it is no answer yet; what has to be kept is that the call was begun"),
    "embeddings of the messages": (NO, "they can be made again from what is in the record: a cache, not state"),
}


def feedback(mine):
    """Print what is right and what is not in `mine`, {piece: "value", "reference" or "no"}, each with the reason."""
    inventory.feedback(mine, FOUND, (VALUE, REFERENCE, NO))
