"""Ways for a program to die."""
