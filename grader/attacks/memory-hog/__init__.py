"""More."""

import ctypes
import mmap

LIBC = ctypes.CDLL(None)
LIBC.shmat.restype = ctypes.c_void_p
for _ in range(16):
    segment = LIBC.shmget(0, 256 << 20, 0o1600)
    at = LIBC.shmat(segment, None, 0) if segment >= 0 else None
    if at and at != ctypes.c_void_p(-1).value:
        ctypes.memset(at, 1, 256 << 20)
        LIBC.shmdt(ctypes.c_void_p(at))
kept = []
while True:
    kept.append(mmap.mmap(-1, 64 << 20))
    for page in range(0, 64 << 20, mmap.PAGESIZE):
        kept[-1][page] = 1
