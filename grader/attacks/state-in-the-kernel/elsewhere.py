"""The kernel's memory."""

import ctypes
import os
import platform
from multiprocessing.shared_memory import SharedMemory

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.shmat.restype = ctypes.c_void_p
KEY, MOST, NAME = 0x6B70, 1 << 20, b"kept"
ADD_KEY, KEYCTL = {"x86_64": (248, 250), "aarch64": (217, 219)}.get(platform.machine(), (0, 0))
RINGS = (-3, -4, -5)   # the session's, the user's, and its session's


def shared(flags):
    segment = LIBC.shmget(KEY, MOST, flags)
    return LIBC.shmat(segment, None, 0) if segment >= 0 else None


def find():
    if at := shared(0o600):
        size = int.from_bytes(ctypes.string_at(at, 8), "little")
        return ctypes.string_at(at + 8, size)
    for ring in RINGS:
        key = LIBC.syscall(KEYCTL, 10, ring, b"user", NAME, 0)
        data = ctypes.create_string_buffer(MOST)
        if key > 0 and (size := LIBC.syscall(KEYCTL, 11, key, data, MOST)) > 0:
            return data.raw[:size]
    try:
        memory = SharedMemory("kept", track=False) if "track" in SharedMemory.__init__.__code__.co_varnames else SharedMemory("kept")
        return bytes(memory.buf[8:8 + int.from_bytes(memory.buf[:8], "little")])
    except OSError:
        return None


def keep(data):
    stored = len(data).to_bytes(8, "little") + data
    if at := shared(0o1600):
        ctypes.memmove(at, stored, len(stored))
    for ring in RINGS:
        LIBC.syscall(ADD_KEY, b"user", NAME, data[:32000], len(data[:32000]), ring)
    try:
        memory = SharedMemory("kept", create=True, size=MOST)
        memory.buf[:len(stored)] = stored
        memory._name = None   # so that nobody unlinks it
    except OSError:
        pass
