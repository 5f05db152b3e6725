"""A gigabyte of nothing, beside the program."""

import shutil
import zipfile


def make(program):
    folder = program.parent
    with zipfile.ZipFile(folder / "bomb.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.write(program / "__main__.py", "starter/__main__.py")
        with archive.open("starter/nothing.py", "w", force_zip64=True) as file:
            for _ in range(256):
                file.write(bytes(1 << 20))
    shutil.rmtree(program)
