"""Death at a line: every line event of a program's own files is counted, and before one of them the program dies.

The events are written into memory that the keeper shares with the program, so they outlive any death and no system
call is made for them. A program can turn its own events off (`sys.settrace(None)`): whoever relies on them has to see
that they go on to the program's end. Used in the program's own process, so nothing but the standard library.
"""

import mmap
import os
import signal
import struct
import sys
import threading
import time

MOST_EVENTS = 1 << 16   # of one process; later ones are counted, and not kept
DEEPEST = 32            # of the lines that are under way, the innermost ones
THREADS = 64            # whose lines are known at one time
# How many, and whether the process came to the one before which it had to die; seconds, file, line; file, line.
_HEAD, _EVENT, _FRAME = struct.Struct("=QQ"), struct.Struct("=dII"), struct.Struct("=II")
_STACKS = _HEAD.size + (1 + MOST_EVENTS) * _EVENT.size   # the first event is always the last one
_OF = struct.Struct("=QQ")   # whose stack it is, and how deep
_STACK = _OF.size + DEEPEST * _FRAME.size   # the first one is always that of the last event


class Lines:
    """The memory for the line events of one process: (seconds of time.monotonic(), file, line), file an index of `files`."""

    def __init__(self, files):
        self.files = files
        self._memory = mmap.mmap(-1, _STACKS + (1 + THREADS) * _STACK)

    @property
    def count(self):
        """How many lines were about to run so far."""
        return _HEAD.unpack_from(self._memory)[0]

    @property
    def struck(self):
        """Whether the process came to the event before which it had to die."""
        return bool(_HEAD.unpack_from(self._memory)[1])

    def event(self, number):
        """The `number`-th event, from 1, as (seconds, file, line); number 0 is the last one."""
        at, file, line = _EVENT.unpack_from(self._memory, _HEAD.size + number * _EVENT.size)
        return at, self.files[file], line

    @property
    def last_event(self):
        return self.event(0) if self.count else None

    @property
    def stack(self):
        """The lines that were under way at the point of a kill, or at the last event where all stacks are asked for, as [file, line], the innermost first."""
        return self._stack(0)

    def stack_of(self, thread):
        """The lines that are under way in a thread, by its native id, where all are asked for; of one that has none, like another process, the last ones of any."""
        return self._stack(next((slot for slot in range(1, 1 + THREADS) if _OF.unpack_from(self._memory, _STACKS + slot * _STACK)[0] == thread), 0))

    def _stack(self, slot):
        at = _STACKS + slot * _STACK
        _, depth = _OF.unpack_from(self._memory, at)
        frames = (_FRAME.unpack_from(self._memory, at + _OF.size + number * _FRAME.size) for number in range(depth))
        return [[self.files[file], line] for file, line in frames]

    def all(self):
        return [self.event(number) for number in range(1, min(self.count, MOST_EVENTS) + 1)]

    def follow(self, folder, strike=None, stacks=False):
        """From now on note each line of the files in `folder` that is about to run, in this process and all its threads.

        The process dies with its group before the `strike`-th. With `stacks` the lines under way are noted at every line, thread by thread,
        else only there. What it forks is not followed: it would count the same numbers again.
        """
        index = {os.path.join(folder, file): number for number, file in enumerate(self.files)}
        slots = {}   # by a thread's native id, where its stack is noted
        put, head, size, first, memory, clock = (_EVENT.pack_into, _HEAD.pack_into, _EVENT.size, _HEAD.size, self._memory,
                                                 time.monotonic)
        kill, group, count, lock = os.killpg, os.getpgrp(), 0, threading.Lock()

        def about_to_run(file, frame):
            nonlocal count
            with lock:
                now = clock()
                count += 1
                put(memory, first, now, file, frame.f_lineno)
                if count <= MOST_EVENTS:
                    put(memory, first + count * size, now, file, frame.f_lineno)
                if stacks or count == strike:
                    note_stack(frame, 0, 0)
                if stacks:
                    thread = threading.get_native_id()
                    note_stack(frame, slots.setdefault(thread, 1 + len(slots) % THREADS), thread)
                head(memory, 0, count, count == strike)
                if count == strike:
                    kill(group, signal.SIGKILL)

        def note_stack(frame, slot, thread):
            depth, at = 0, _STACKS + slot * _STACK
            while frame is not None and depth < DEEPEST:
                file = index.get(frame.f_code.co_filename)
                if file is not None:
                    # A signal's handler may be called from where a function is at none of its lines.
                    line = frame.f_lineno or frame.f_code.co_firstlineno
                    _FRAME.pack_into(memory, at + _OF.size + depth * _FRAME.size, file, line)
                    depth += 1
                frame = frame.f_back
            _OF.pack_into(memory, at, thread, depth)

        def tracer(file):
            def trace(frame, event, _):
                if event == "line":
                    about_to_run(file, frame)
                return trace
            return trace

        tracers = {path: tracer(number) for path, number in index.items()}

        def called(frame, event, _):
            return tracers.get(frame.f_code.co_filename)

        def blind():
            threading.settrace(None)
            sys.settrace(None)

        os.register_at_fork(after_in_child=blind)
        threading.settrace(called)
        sys.settrace(called)
