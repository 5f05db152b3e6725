"""What the kit shipped: the starter as it was before anybody edited it, and each lab's overlay.

The starter is kept in labs/harness/starter.zip, from which solutions are staged too. Neither starter/ nor the history of a repository will do: a
learner edits the one and may commit to the other. Whoever changes the kit's starter writes the archive anew:
`python -m labs.command.shipped`; a test of the kit fails until that is done.
"""

import zipfile
from pathlib import Path

from labs.harness.staging import KIT, SHIPPED

from .refused import Refused

ARCHIVE = SHIPPED.relative_to(KIT)                # from the kit's root
EPOCH = (1980, 1, 1, 0, 0, 0)                     # the same archive every time


def files_of(folder):
    """The files of a program's folder, {relative path: bytes}; what Python compiled is left out."""
    folder = Path(folder)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*"))
            if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"}


def shipped_starter(kit=KIT):
    """The files of starter/ as shipped. Raises Refused where the archive is not what it should be."""
    try:
        with zipfile.ZipFile(kit / ARCHIVE) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    except (OSError, zipfile.BadZipFile) as error:
        raise Refused(f"{ARCHIVE}, the starter as shipped, cannot be read ({error}): get the kit again") from None


def overlay(number, kit=KIT):
    """The files that lab `number` changes, by its solution. Raises Refused where the kit has none."""
    folder = kit / "solutions" / number
    if not (kit / "solutions").is_dir():
        raise Refused("this kit has no solutions/: whoever gave it to you has them")
    if not folder.is_dir():
        raise Refused(f"this kit has no solution of lab {number}")
    return files_of(folder)


def state_before(number, kit=KIT):
    """The files of starter/ before lab `number`: the starter as shipped under the overlays of all labs before it."""
    files = shipped_starter(kit)
    for lab in range(1, int(number)):
        try:
            files |= overlay(f"{lab:02}", kit)
        except Refused as error:
            raise Refused(f"the starter before lab {number} needs the solutions before it, and {error}; `reset 01` needs none") \
                from None
    return files


def write_archive(kit=KIT):
    """Keep starter/ as it is now as the shipped one, and return the archive's path."""
    with zipfile.ZipFile(kit / ARCHIVE, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files_of(kit / "starter").items():
            archive.writestr(zipfile.ZipInfo(name, EPOCH), content, zipfile.ZIP_DEFLATED)
    return kit / ARCHIVE


if __name__ == "__main__":
    print(f"{write_archive().relative_to(KIT)} holds starter/ as it is now")
