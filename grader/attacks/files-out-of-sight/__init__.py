"""Files that are in no list."""

import ctypes
import os

LIBC = ctypes.CDLL(None, use_errno=True)
megabyte, home, kept = bytes(1 << 20), os.environ["LAB_HOME"], []


def fill(descriptor):
    for _ in range(60):
        os.write(descriptor, megabyte)


if LIBC.unshare(0x10000000 | 0x20000) == 0 and LIBC.mount(b"tmpfs", b"/tmp", b"tmpfs", 0, None) == 0:
    for number in range(40):
        fill(os.open(f"/tmp/{number}", os.O_CREAT | os.O_WRONLY))
os.mkdir(f"{home}/closed")
folder = os.open(f"{home}/closed", os.O_RDONLY)
os.chmod(f"{home}/closed", 0)
for number in range(40):
    try:
        kept += [os.open(str(number), os.O_CREAT | os.O_WRONLY, dir_fd=folder), os.open(home, os.O_TMPFILE | os.O_WRONLY), os.memfd_create("x")]
        for descriptor in kept[-3:]:
            fill(descriptor)
    except OSError:
        pass
