"""The harness: an outside world that is watched, programs that are killed, and a judge that reads the ledger.

`program` puts the parts together: one home, one account, one program. Start reading there; `kills` kills it, and
`judge` reads the ledger.
"""
