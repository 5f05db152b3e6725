"""What a failed check leaves behind: the whole story in a folder."""

import json
import os
import shutil
import time
from pathlib import Path

from .scratch import remove

KEPT = 10  # sessions
KEPT_FILES = 100  # of one program's home


class Evidence:
    """The evidence of one session, in a folder of its own under `root`; `latest` there links to it."""

    def __init__(self, root):
        self.root = Path(root)
        self.folder = self.root / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"

    def keep(self, name, story, program=None):
        """Write down a failed check, and return its folder, or None where nothing can be written."""
        folder = self.folder / name
        try:
            self._begin()
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "story.txt").write_text("\n".join(story) + "\n", encoding="utf-8")
            if program:
                self._keep_program(folder, program)
        except OSError:
            return None
        return folder

    def _begin(self):
        if self.folder.exists():
            return
        self.folder.mkdir(parents=True)
        fresh = self.root / f".latest-{os.getpid()}"
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(self.folder.name)
        fresh.replace(self.root / "latest")
        sessions = sorted(path for path in self.root.iterdir() if path.is_dir() and not path.is_symlink())
        for old in sessions[:-KEPT]:
            remove(old)

    @staticmethod
    def _keep_program(folder, program):
        with open(folder / "events.jsonl", "w", encoding="utf-8") as file:
            for event in sorted(_events(program), key=lambda event: event["at"]):
                file.write(json.dumps(event) + "\n")
        for number, process in enumerate(program.processes, 1):
            for stream in ("stdout", "stderr"):
                if text := getattr(process, stream):
                    (folder / f"{number:02}-{process.arguments[0]}.{stream}").write_text(text, encoding="utf-8")
        # Regular files alone: what a program links to or opens as a pipe is not ours to follow.
        for path in program.files()[:KEPT_FILES]:
            if path.stat().st_size <= 1 << 20:
                target = folder / "lab-home" / path.relative_to(program.home)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)


def _events(program):
    """All that happened, as dicts: `at` is seconds since the first start, `lane` is who did `what`."""
    if not program.processes:
        return
    zero = program.processes[0].begun
    for process in program.processes:
        lane = f"process {process.pid}"
        yield {"at": round(process.begun - zero, 6), "lane": lane, "what": "started", "arguments": list(process.arguments)}
        if process.ended:
            yield {"at": round(process.ended - zero, 6), "lane": lane, "what": process.end, "code": process.code}
    for event in list(program.outside.events):
        request = event.request
        entry = {"at": round(event.at - zero, 6), "lane": request.kind, "what": event.what, "request": request.number,
                 "key": request.key}
        if event.what == "received":
            entry |= {"body": request.body, "tokens": request.tokens, "group": request.group}
        if event.what == "acted":
            entry |= {"made": request.made.body, "effect": request.effect}
        yield entry
