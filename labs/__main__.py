"""The learner's command: `python -m labs …`."""

from typing import Annotated

import typer

app = typer.Typer(add_completion=False, no_args_is_help=True, help="killproof: flows that survive being killed.",
                  pretty_exceptions_enable=False)


@app.callback()
def labs():
    pass


@app.command()
def outside(port: Annotated[int, typer.Option(min=1, max=65535, help="Where to listen, on 127.0.0.1.")] = 8765,
            pace: Annotated[float, typer.Option(min=0, max=4, help="Seconds before a request acts, and again before it is "
                                                "answered: time for you to kill the program.")] = 2.0):
    """Run the model, the payment service and the mail service; print all that they see; show the customer's inbox as a page."""
    from .by_hand import run_outside
    raise typer.Exit(run_outside(port, pace))


@app.command()
def demo():
    """Kill the starter between steps two and three, then the finished flow at the same place. See who is refunded twice."""
    from .demo import run_demo
    raise typer.Exit(run_demo())


def main():
    app(prog_name="labs")


if __name__ == "__main__":
    app(prog_name="python -m labs")
