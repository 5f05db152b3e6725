"""The harness: an outside world that is watched, programs that are killed, and a judge that reads the ledger.

`program` puts the parts together: one home, one account, one program. Start reading there; `kills` kills it, and
`judge` reads the ledger.

    in the session's process                         each a process of its own
    a check, or a sweep (sweeps/)
      │ start, kill, ask                             sandbox.py: what confines them, where something does
      ▼
    Program (program.py) ── Kept (kept.py) ─socket─▶ forkserver.py   the library is loaded, nothing of the program's
      │                                                │ fork
      │                                                ▼
      │                                              keeper.py       watches one start after the other, kills it, buries it
      ▼                                                │ fork
    Account (outside/)                                 ▼
      what was asked for, and what was done ◀──HTTP─ becoming.py     becomes the program, as a new interpreter would

Outside of a sweep and of a sandbox the program is our own child: Spawned (spawned.py) is in the place of Kept.
"""
