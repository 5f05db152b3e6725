"""The harness: an outside world that is watched, programs that are killed, and a judge that reads the ledger.

`scene` puts the parts together: one home, one account, one program. Start reading there.
"""
