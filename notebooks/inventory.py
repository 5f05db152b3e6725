"""The state inventory of notebook 00: what is left of each piece of the starter's state, and why. Here, so that it is not on the page."""

GONE, SURVIVES = "gone", "survives"
FOUND = {
    "the run id": (GONE, "it stands on your terminal, but no process that is started later can look it up"),
    "the ticket": (GONE, "the file that you started from is still yours; that a run was begun with it, nobody knows"),
    "where it is in the plan": (GONE, "only the call stack knew, and it was never a value that one could keep"),
    "what the model read": (GONE, "a variable; and the model will not say the same a second time"),
    "the refund": (SURVIVES, "the payment service made it, and no kill of ours takes it back"),
    "the refund's id": (GONE, "the payment service has it too, but nothing that is left says which order to ask about"),
    "the mail's message id": (GONE, "made of chance in the middle of a call: it was not even a variable"),
    "what was said in the chat before": (GONE, "a list in a variable of the process"),
}


def feedback(mine, right=FOUND, answers=(GONE, SURVIVES)):
    """Print what is right and what is not in `mine`, {piece: one of `answers`}, each with the reason, as `right` has them."""
    for piece, (found, why) in right.items():
        answer = mine.get(piece)
        if answer not in answers:
            print(f"·  {piece}: not answered yet; write " + " or ".join(f'"{one}"' for one in answers))
        elif answer == found:
            print(f"✓  {piece}: {found}; {why}")
        else:
            print(f"✗  {piece}: it is not {answer}; {why}")
