"""What a batch of submissions can be graded with, besides this machine alone."""
