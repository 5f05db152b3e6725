"""Files that are there after a power cut: synced before anything relies on them, and replaced by rename."""

import os
from pathlib import Path


def sync(path):
    """Return when a file's content, or a folder's entries, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder):
    """Return when all regular files below a folder are on the disk, and their names with them."""
    for path, _, names in os.walk(folder):
        for name in names:
            file = Path(path, name)
            if file.is_file() and not file.is_symlink():
                sync(file)
        sync(path)


def write_tree(folder, files):
    """Make a folder of `files`, {relative path: bytes}, and return when it is on the disk."""
    for name, content in files.items():
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    sync_tree(folder)


def replace_text(path, text):
    """Write a file so that, whenever this is killed, the old content or the new one is there."""
    fresh = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        fresh.write_text(text, encoding="utf-8")
        sync(fresh)
        fresh.replace(path)
        sync(path.parent)
    finally:
        fresh.unlink(missing_ok=True)


def move(source, target):
    """Rename, and return when both folders that it concerns are on the disk."""
    source.rename(target)
    sync(target.parent)
    sync(source.parent)
