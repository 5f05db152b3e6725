"""What a failed check leaves behind: a folder with the whole story.

    story.txt         what was told on the terminal
    timeline.svg      the same as a picture, drawn from the events
    killmap.html      after a sweep: the program's source, each line with what came of the kills there
    events.jsonl      what happened, one JSON object a line, in order of time; the fields: events.py
    01-start.stdout   what each process wrote, by its number and its verb; 01-start.stderr likewise
    lab-home/         the files of LAB_HOME as they were left
    left-out.txt      what of all this could not be kept, and why; only where there is something to say

The session's own folder, above those of its checks, has session.json (what was tested), results.jsonl (how each item
ended, failed or not; a sweep has none), and a lock for as long as the session lasts.
"""

import fcntl
import itertools
import json
import os
import re
import shutil
import stat
import time
from contextlib import contextmanager, suppress
from pathlib import Path

from . import timeline
from .events import events_of

KEPT = 10             # sessions, and those that still run
HOME_ENTRIES = 1000  # files and folders
HOME_BYTES = 8 << 20  # of all files together
HOME_DEPTH = 20       # folders within folders


class Evidence:
    """The evidence of one session, in a folder of its own under `root`; `latest` there links to it."""

    def __init__(self, root):
        self.root = Path(root)
        self.folder = self.root / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
        self._lock = None

    def keep(self, name, lines, program=None, title="", why="", pages=None):
        """Write down a failed check: its story's lines, and what happened to the program.

        Returns what to look at first, a path from the folder that `root` is in, or None where nothing can be written.
        `title` and `why` are the sentences over the timeline, `pages` more files by name. Whatever is wrong with what is to be kept, this raises
        nothing: the verdict matters more than its evidence.
        """
        try:
            self._begin()
            folder = _fresh(self.folder, name)
            (folder / "story.txt").write_text("\n".join(lines) + "\n", encoding="utf-8", errors="replace")
        except OSError:
            return None
        left_out = []
        for page, text in (pages or {}).items():
            with suppress(OSError):
                _write(folder / page, text)
        if program:
            events = []
            for keep in (lambda: events.extend(events_of(program)),
                         lambda: _keep_events(folder, events),
                         lambda: _keep_output(folder, program),
                         lambda: left_out.extend(_Home(program.home, folder / "lab-home").left_out),
                         lambda: events and _write(folder / "timeline.svg", timeline.draw(events, title, why))):
                try:
                    keep()
                except Exception as error:
                    left_out.append(f"something, because of {error!r}")
        if left_out:
            with suppress(OSError):
                _write(folder / "left-out.txt", "\n".join(left_out) + "\n")
        first = "timeline.svg" if (folder / "timeline.svg").exists() else "story.txt"
        # Not by way of `latest`: the next session takes that link away.
        return Path(self.root.name, self.folder.name, folder.name, first)

    def keep_page(self, name, text):
        """Keep a page that is about the whole session. Returns its path as keep() does."""
        try:
            self._begin()
            _write(self.folder / name, text)
        except OSError:
            return None
        return Path(self.root.name, self.folder.name, name)

    def about(self, about):
        """Keep what the session is `about` (session.json), if it can be."""
        with suppress(OSError):
            self._begin()
            if not (self.folder / "session.json").exists():
                (self.folder / "session.json").write_text(json.dumps(about), encoding="utf-8")

    def record(self, entry, about):
        """Keep how one item of a check ended (results.jsonl), and what the session is `about`, if it can be."""
        self.about(about)
        try:
            self._begin()
            with open(self.folder / "results.jsonl", "a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")
        except OSError:
            pass  # the verdict itself does not depend on it

    def _begin(self):
        if self.folder.exists():
            return
        self.folder.mkdir(parents=True)
        with suppress(OSError):
            # The kernel drops this lock with us: who can take it knows that the session is over.
            self._lock = open(self.folder / "lock", "w")
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with suppress(OSError):  # there are file systems without links
            fresh = self.root / f".latest-{os.getpid()}"
            fresh.unlink(missing_ok=True)
            fresh.symlink_to(self.folder.name)
            fresh.replace(self.root / "latest")
        sessions = sorted(path for path in self.root.iterdir() if re.fullmatch(r"\d{8}-\d{6}-\d+", path.name))
        for old in sessions[:-KEPT]:
            if not _in_use(old):
                shutil.rmtree(old, ignore_errors=True)


def _in_use(session):
    try:
        with open(session / "lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


def _fresh(session, name):
    """A new folder of that name, or with a number after it where two checks have one name."""
    for number in range(1, 1000):
        folder = session / (name if number == 1 else f"{name}-{number}")
        try:
            folder.mkdir(parents=True)
            return folder
        except FileExistsError:
            pass
    raise FileExistsError(name)


def _write(path, text):
    path.write_text(text, encoding="utf-8", errors="replace")


def _keep_events(folder, events):
    with open(folder / "events.jsonl", "w", encoding="utf-8") as file:
        for event in events:
            file.write(json.dumps(event) + "\n")


def _keep_output(folder, program):
    for number, process in enumerate(program.processes, 1):
        verb = re.sub(r"\W+", "-", process.arguments[0])[:40] if process.arguments else "no-verb"
        for stream in ("stdout", "stderr"):
            if text := getattr(process, stream):
                _write(folder / f"{number:02}-{verb}.{stream}", text)


# ---- the home: made by a program that may have put anything there, and may still be at it

class _Home:
    """Copies what can be copied of `home` to `target`; `left_out` has a line for each thing that could not be."""

    def __init__(self, home, target):
        self.target, self.left_out = target, []
        self._entries, self._bytes = HOME_ENTRIES, HOME_BYTES
        with self._noting(Path()):
            self._copy_folder(_open(home, os.O_DIRECTORY), Path())

    # By descriptors and without following links, so that nothing outside the home is read, whatever changes meanwhile.

    def _copy_folder(self, descriptor, below):
        try:
            with os.scandir(descriptor) as entries:
                found = sorted(entry.name for entry in itertools.islice(entries, self._entries + 1))
            for name in found:
                with self._noting(below / name):
                    self._copy(name, descriptor, below / name)
        finally:
            os.close(descriptor)

    def _copy(self, name, descriptor, path):
        if self._entries <= 0:
            raise ValueError(f"only {HOME_ENTRIES} files and folders are kept")
        self._entries -= 1
        mode = os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode):
            if len(path.parts) > HOME_DEPTH:
                raise ValueError("too many folders within each other")
            self._copy_folder(_open(name, os.O_DIRECTORY, descriptor), path)
        elif stat.S_ISREG(mode):
            with open(_open(name, 0, descriptor), "rb") as file:
                data = file.read(self._bytes + 1)
            if len(data) > self._bytes:
                raise ValueError(f"too big: {HOME_BYTES >> 20} MiB of a home are kept")
            self._bytes -= len(data)
            (self.target / path).parent.mkdir(parents=True, exist_ok=True)
            (self.target / path).write_bytes(data)
        else:
            raise ValueError("a link" if stat.S_ISLNK(mode) else "a pipe" if stat.S_ISFIFO(mode) else "no regular file")

    @contextmanager
    def _noting(self, path):
        try:
            yield
        except (OSError, ValueError) as error:
            if len(self.left_out) < HOME_ENTRIES:
                self.left_out.append(f"lab-home/{ascii(os.fspath(path))[1:-1]}: {getattr(error, 'strerror', None) or error}")


def _open(path, flags, descriptor=None):
    # What was a file a moment ago may be a pipe or a link by now; neither of them may keep us.
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | flags, dir_fd=descriptor)
