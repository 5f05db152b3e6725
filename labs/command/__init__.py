"""What the learner's command does: one module for each thing that it can be asked for."""
