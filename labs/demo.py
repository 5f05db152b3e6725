"""The demonstration: two flows killed at the same place, and what the customer gets from each."""

from rich.console import Console
from rich.text import Text

from .harness import descendants
from .harness.judge import handled_once
from .harness.kills.boundary import killed_at
from .harness.outside import Outside
from .harness.program import Program
from .harness.scratch import scratch
from .harness.staging import KIT, SHIPPED, stage
from .harness.story import effect_line, money
from .harness.tickets import make_ticket


def run_demo():
    """Show both, or the first alone in a kit without solutions. Returns 0 where they did what they are there to show, 1 otherwise."""
    console = Console(highlight=False, soft_wrap=True)
    finished = max(KIT.glob("solutions/[0-9][0-9]"), default=None)
    descendants.adopt_orphans()
    with scratch() as folder, Outside(folder / "outside.sock", seed="demo") as server:
        def program(path, name):
            return Program(stage(path, folder / name), folder / f"{name}-home", server, server.open_account())

        console.print("One support ticket, three steps: triage it with a model, refund, reply.\n")
        fragile = program(SHIPPED, "starter")
        console.print("[bold]1 · starter/[/]  everything is in memory")
        twice = _fragile(console, fragile, make_ticket("demo"))
        fragile.discard()
        if not finished:
            console.print("\nMake it one that survives this: [bold]labs/01/README.md[/]")
            return 0 if twice else 1
        durable = program(finished, "finished")
        console.print(f"\n[bold]2 · solutions/{finished.name}/[/]  everything that must survive is written down before it is needed")
        once = _durable(console, durable, make_ticket("demo"))
        durable.discard()
    console.print("\nMake the first one into the second: [bold]labs/01/README.md[/]")
    return 0 if twice and once else 1


def _fragile(console, program, ticket):
    run = _kill_before_the_mail(console, program, ticket)
    _begin(console, program, f"resume {run.line()[:8]}…", lambda: program.resume(run.line()))
    console.print("     nothing was written down, so there is only one way to answer the customer:")
    _begin(console, program, "start ticket.json", lambda: program.start(ticket))
    refunds = program.outside.refunds
    amounts = " and ".join(money(refund["amount_cents"]) for refund in refunds)
    console.print(f"   [bold red]✗ {len(refunds)} refunds for one order: {amounts}[/]")
    return len(refunds) == 2


def _durable(console, program, ticket):
    run = _kill_before_the_mail(console, program, ticket)
    record = program.status(run.line())
    console.print(f"   [dim]$ python -m starter status {run.line()[:8]}…[/]")
    effects = ", ".join(f"{step} {effect['state']}" for step, effect in record["effects"].items())
    console.print(f"     step {record['step']}, finished: {' and '.join(record['results'])}; effects: {effects}")
    _begin(console, program, f"resume {run.line()[:8]}…", lambda: program.resume(run.line()))
    try:
        handled_once(program, run.line(), ticket)
    except AssertionError as error:
        console.print(f"   [bold red]✗ {error}[/]")
        return False
    refund, = program.outside.refunds
    console.print(f"   [bold green]✓ one model call, one refund of {money(refund['amount_cents'])}, one mail[/]")
    return True


def _kill_before_the_mail(console, program, ticket):
    run, _ = killed_at(program, "mail", "before", lambda: program.start(ticket))
    console.print(f"   [dim]$ python -m starter start ticket.json[/]\n     run {run.line()[:8]}…")
    _effects(console, program, 0)
    console.print("     the mail request arrives, is held, and [bold]kill -9[/] ✂")
    return run


def _begin(console, program, shown, begin):
    seen = len(program.outside.requests)
    console.print(f"   [dim]$ python -m starter {shown}[/]")
    process = begin().wait()
    _effects(console, program, seen)
    if process.code:
        console.print(Text(f"     exit code {process.code}: {process.stderr.strip()}", "yellow"))


def _effects(console, program, seen):
    for request in program.outside.requests[seen:]:
        if line := effect_line(request):
            console.print(Text(f"     {line}", "red" if "ONE MORE" in line else ""))
        elif request.kind == "model":
            console.print(f"     the model is asked ({request.tokens} tokens)")
        elif request.kind == "mail_lookup":
            found = request.made.body["mails"]
            console.print(f"     the mail service is asked whether it has the mail: {'yes' if found else 'no'}")
