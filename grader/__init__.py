"""From a folder of submissions to grades that one can defend."""
