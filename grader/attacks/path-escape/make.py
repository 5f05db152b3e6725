"""A tar that would write above itself."""

import io
import shutil
import tarfile


def make(program):
    with tarfile.open(program.parent / "escape.tar", "w") as archive:
        archive.add(program, "starter")
        for name in ("../../../../../../tmp/killproof-escaped", "/tmp/killproof-escaped", "starter/../../killproof-escaped"):
            member = tarfile.TarInfo(name)
            member.size = 4
            archive.addfile(member, io.BytesIO(b"out\n"))
    shutil.rmtree(program)
