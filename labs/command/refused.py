"""How the command says that it cannot do what it was asked for."""


class Refused(Exception):
    """Nothing was done; the message is one line that says why and what would help. `code` is the exit code."""

    def __init__(self, message, code=2):
        super().__init__(" ".join(str(message).split()))
        self.code = code
