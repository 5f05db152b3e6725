"""A support flow in three steps: triage a ticket with a model, refund, reply."""
