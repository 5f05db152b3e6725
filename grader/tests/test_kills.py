"""Four kinds of death: where exactly a program dies, what that leaves, and that whoever watches it changes nothing else."""

import base64
import itertools
import json
import os
import shutil
import re
import signal
import socket
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing

import psutil
import pytest

from labs.harness import descendants
from labs.harness.ground import Closed, Ground
from labs.harness.keeper import _Keeper
from labs.harness.kept import ForkServer
from labs.harness.kills import syscall
from labs.harness.kills.power import Disk
from labs.harness.messages import receive, send
from labs.harness.outside import Outside
from labs.harness.processes import ProgramFault
from labs.harness.program import Program
from labs.harness.scratch import remove, scratch
from labs.harness.staging import KIT, stage
from labs.harness.sweeps.points import LINE, scout
from labs.harness.sweeps.trial import START
from labs.harness.tickets import make_ticket

PATIENCE = 20  # seconds after which a wait for something that must happen is a failure
PRELOADED = ("atexit", "ctypes", "fcntl", "gzip", "logging", "multiprocessing", "pickle", "random", "secrets", "shutil", "subprocess", "threading", "uuid")
OWN = "starter/__main__.py"


class Bench:
    """Where the programs of this module run: one outside, one fork server, one folder."""

    def __init__(self, folder, server, forks):
        self.folder, self.server, self.forks, self.made, self.grounds = folder, server, forks, [], []
        self._numbers = itertools.count(1)

    def staged(self, files, command=None):
        """A Staged of these files, or of one: `__main__.py`, or `main` where a command line runs it."""
        place = self.folder / f"program-{next(self._numbers)}"
        for name, source in ({"main" if command else "__main__.py": files} if isinstance(files, str) else files).items():
            path = place / "written" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source)
        return stage(place / "written", place / "staged", command)

    def program(self, files, command=None, forked=True):
        return self.of(self.staged(files, command), forked)

    def shell(self, source):
        return self.program(source, "/bin/sh main")

    def of(self, staged, forked=True):
        runs = staged.folder.parent / f"runs-{next(self._numbers)}"
        self.made.append(Program(staged, runs, self.server, self.server.open_account(), forks=self.forks if forked else None))
        return self.made[-1]

    def ground(self, files):
        (folder := self.folder / f"ground-{next(self._numbers)}").mkdir()
        self.grounds.append(Ground(self.staged(files), self.server, folder))
        return self.grounds[-1]


@pytest.fixture(scope="module")
def session():
    descendants.adopt_orphans()
    with scratch() as folder, Outside(folder / "s", seed=13) as server, ForkServer(modules=PRELOADED) as forks:
        yield folder, server, forks


@pytest.fixture
def bench(session):
    folder, server, forks = session
    place = folder / f"bench-{len(list(folder.iterdir()))}"
    place.mkdir()
    bench = Bench(place, server, forks)
    yield bench
    for ended in (*bench.made, *bench.grounds):
        ended.close() if isinstance(ended, Ground) else ended.discard()
    left = [child for child in psutil.Process(forks.pid).children(recursive=True) if child.ppid() != forks.pid]
    assert left == [] and server.errors == []
    remove(place)


@pytest.fixture(scope="module")
def watched(session):
    """For what needs system calls to be watched: skipped, with the machine's reason, where they cannot be."""
    folder, server, forks = session
    (folder / "calls").mkdir()
    bench = Bench(folder / "calls", server, forks)
    trouble = bench.shell("exit 0").ask("start", calls=True).report["trouble"]
    bench.made[0].discard()
    if trouble:
        pytest.skip(f"system calls cannot be watched here: {trouble}")


def home_of(program):
    """What is in the home: path → bytes, None for a folder, the text of a link in a tuple."""
    found = {}
    for path in program.home.rglob("*"):
        found[path.relative_to(program.home).as_posix()] = (
            (os.readlink(path),) if path.is_symlink() else None if path.is_dir() else path.read_bytes())
    return found


def gone(pid):
    return not psutil.pid_exists(pid)


def places_of(process):
    """The (file, line) of each point; the empty `__init__.py`, of which Python tells in its own way, left out."""
    return [tuple(point[-2:]) for point in process.report["all"] if point[-2] != "starter/__init__.py"]


def number_of(bench, staged, line, **keeping):
    """The number of the first point in that line of `__main__.py`."""
    every = bench.of(staged).ask("start", all=True, lines=True, **keeping).report["all"]
    return next(number for number, point in enumerate(every, 1) if point[-2:] == [OWN, line])


# ---- death at a line


def test_every_line_of_every_own_file_is_an_event_in_whatever_thread_it_runs(bench):
    program = bench.program({
        "__main__.py": """\
import threading
from . import flow
from .deep.er import inner
flow.work()
threads = [
    threading.Thread(target=flow.work), threading.Thread(target=inner.work), threading.Thread(target=flow.work)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("end")
""",
        "flow.py": """\
import json
def work():
    text = json.dumps({"a": [1, 2]})
    other = json.loads(text)
    return other
""",
        "deep/er/inner.py": """\
class Once:
    value = 1
def work():
    once = Once()
    once.value += 1
def never():
    never()
"""})
    process = program.ask("start", lines=True, all=True)
    assert (process.code, process.stdout) == (0, "end\n")
    found = Counter(places_of(process))
    assert {line: found["starter/flow.py", line] for line in range(1, 6)} == {1: 1, 2: 1, 3: 3, 4: 3, 5: 3}
    assert {line: found["starter/deep/er/inner.py", line] for line in range(2, 8)} == {2: 1, 3: 1, 4: 1, 5: 1, 6: 1, 7: 0}
    assert {line: found[OWN, line] for line in (1, 2, 3, 4, 8, 10, 11)} == {1: 1, 2: 1, 3: 1, 4: 1, 8: 3, 10: 3, 11: 1}
    assert process.report["events"] == len(process.report["all"])
    times = [point[0] for point in process.report["all"]]
    assert times == sorted(times) and process.begun <= times[0] and times[-1] <= process.ended


def test_lines_of_others_are_no_events(bench):
    program = bench.program("import json, textwrap, collections\nCode = collections.namedtuple('Code', 'a b')\n"
                            "exec('a = 1\\nb = 2')\nprint(textwrap.fill(json.dumps(Code(1, 2)._asdict()) * 9))")
    process = program.ask("start", lines=True, all=True)
    assert places_of(process) == [(OWN, line) for line in (1, 2, 3, 4)]


STEPS = """\
import os, sys
from .file import put
place = os.path.join(os.environ["LAB_HOME"], "steps")
for step in range(3):
    put(place, b"a")
    put(place, b"b"); put(place, b"c")
sys.exit(7)
""", """\
import os
def put(place, data):
    file = os.open(place, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, data)
    os.close(file)
"""


def test_a_kill_at_each_line_leaves_exactly_what_the_lines_before_it_did(bench):
    staged = bench.staged(dict(zip(("__main__.py", "file.py"), STEPS)))
    every = [tuple(point[1:]) for point in bench.of(staged).ask("start", lines=True, all=True).report["all"]]
    assert len(every) > 30
    for number, place in enumerate(every, 1):
        program = bench.of(staged)
        process = program.ask("start", lines=True, strike=number)
        assert process.code == -signal.SIGKILL and process.killed and process.end == "was killed"
        assert process.report["events"] == number and tuple(process.report["last"][1:]) == place and process.report["all"] is None
        # The line itself has not run.
        written = sum(before == ("starter/file.py", 5) for before in every[:number])
        assert home_of(program).get("steps", b"") == b"abcabcabc"[:written]
    program = bench.of(staged)
    process = program.ask("start", lines=True, strike=len(every) + 1)
    assert process.code == 7 and not process.killed and process.report["events"] == len(every)


def test_a_kill_at_a_line_takes_the_children_of_the_program(bench):
    program = bench.program("""\
import subprocess, sys
child = subprocess.Popen(["/bin/sh", "-c", "sleep 1000 & echo $!; wait"], stdout=subprocess.PIPE)
print(child.pid, int(child.stdout.readline()), flush=True)
print("not reached")
""")
    process = program.ask("start", lines=True, strike=number_of(bench, program.staged, 4))
    family = [int(word) for word in process.stdout.split()]
    assert len(family) == 2 and all(gone(pid) for pid in (*family, process.pid))
    assert process.code == -signal.SIGKILL and process.killed and process.outlived == []


def test_a_program_that_kills_itself_was_not_killed_by_us(bench):
    program = bench.program("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\nprint('not reached')\n")
    process = program.ask("start", lines=True, strike=number_of(bench, program.staged, 2) + 1)
    assert process.code == -signal.SIGKILL and not process.killed and process.end == "died of SIGKILL"


def test_what_a_forked_child_runs_is_no_event_of_its_parent(bench):
    program = bench.program("""\
import os
def child():
    for step in range(50): pass
    os._exit(0)
if (pid := os.fork()) == 0: child()
os.waitpid(pid, 0)
print("end")
""")
    process = program.ask("start", lines=True, all=True)
    assert places_of(process) == [(OWN, line) for line in (1, 2, 5, 6, 7)]
    every = process.report["events"]
    assert bench.of(program.staged).ask("start", lines=True, strike=every + 1).stdout == "end\n", "nobody dies before a line of the child"


def test_a_program_that_turns_off_its_events_shows_by_their_end(bench):
    program = bench.program("import sys\ndef on():\n    return 1\nsys.settrace(None)\non()\nprint('end')\n")
    process = program.ask("start", lines=True, all=True)
    assert process.stdout == "end\n" and places_of(process)[-1] == (OWN, 4)


def test_a_program_that_turns_off_its_events_before_its_last_request_is_blind(bench):
    request = ("import http.client, os, socket, sys\nconnection = http.client.HTTPConnection('x')\n"
               "connection.sock = socket.socket(socket.AF_UNIX)\nconnection.sock.connect(os.environ['OUTSIDE'].removeprefix('unix:'))\n"
               "connection.request('GET', '/v1/mails?message_id=m', headers={'Authorization': 'Bearer ' + os.environ['OUTSIDE_KEY']})\n"
               "connection.getresponse().read()\nprint(sys.argv[-2])\n")
    open_eyed, blind = bench.ground(request), bench.ground("import sys\n" "sys.settrace(None)\n" + request)
    assert scout(open_eyed, LINE, START, make_ticket("1")).blind is None
    assert scout(blind, LINE, START, make_ticket("1")).blind.startswith(
        "nothing of the program could be followed from __main__.py:2 to its next request (it turned off line events there,")


def test_what_is_made_up_when_a_module_is_loaded_is_made_up_anew_at_every_start(bench):
    program = bench.program("""\
import json, os, random, secrets, tempfile, time, uuid
print(json.dumps({"uuid4": str(uuid.uuid4()), "uuid1": str(uuid.uuid1()), "random": random.random(), "own": random.Random().random(),
                  "secrets": secrets.token_hex(), "urandom": os.urandom(8).hex(), "name": next(tempfile._get_candidate_names()),
                  "pid": os.getpid(), "time": time.time_ns()}))
""")
    first, second = (json.loads(program.ask("start").stdout) for _ in range(2))
    assert len(first) == 9 and not set(first.items()) & set(second.items())


def test_what_is_another_in_each_process_is_another_after_a_kill(bench):
    ground = bench.ground("print(hash('a text'))\n")
    program = ground.program("hashes")
    hashes = [program.ask(*words).stdout for words in (["start"], ["status", "run-7"], ["resume", "run-7"], ["resume", "run-7"])]
    assert hashes[0] == hashes[1] != hashes[2] != hashes[3]


# ---- being watched changes nothing


IN_HOME = "import os, sys\nos.chdir(os.environ['LAB_HOME'])\n"
ALIKE = {
    "falls off its end": "print('a')",
    "exit without a code": "import sys; sys.exit()",
    "exit 0": "raise SystemExit(0)",
    "exit None": "raise SystemExit(None)",
    "exit 3": "import sys; sys.exit(3)",
    "exit 263": "import sys; sys.exit(263)",
    "exit -1": "import sys; sys.exit(-1)",
    "exit True": "import sys; sys.exit(True)",
    "exit 2.5": "import sys; sys.exit(2.5)",
    # Later Pythons have the same exit code, and words on stderr that come from what they forgot to clear.
    **({"exit with a number that is no exit code": "import sys; sys.exit(1 << 70)"} if sys.version_info < (3, 12) else {}),
    "exit with a number below all": "import sys; sys.exit(-1 << 63)",
    "exit with a text": "import sys; sys.exit('it is no good: ä')",
    "exit with an empty text": "import sys; sys.exit('')",
    "exit with a tuple": "raise SystemExit(1, 2)",
    "exit with a text and nowhere to say it": "import sys; sys.stderr = None; sys.exit('nobody hears it')",
    "exit in a function of another file": {"__main__.py": "from .other import end\nend()", "other.py": "def end(): raise SystemExit(9)"},
    "an exception": "1 / 0",
    "an exception with a cause": "try: 1 / 0\nexcept ZeroDivisionError as error: raise KeyError('k') from error",
    "an exception of its own": "class Own(BaseException): pass\nraise Own('why')",
    "an exception that cannot be printed": "class Own(Exception):\n    def __str__(self): raise ValueError('no')\nraise Own('why')",
    "an exception group": "raise ExceptionGroup('many', [ValueError(1), TypeError(2)])",
    "an exception in another file": {"__main__.py": "from . import other", "other.py": "import nothing_of_that_name"},
    "an exception and nowhere to say it": "import sys; sys.stderr = None; 1 / 0",
    "an exception and stderr closed": "import os, sys; sys.stderr.close(); 1 / 0",
    "an exception and a hook": "import sys; sys.excepthook = lambda kind, *_: print('hooked', kind.__name__); 1 / 0",
    "an exception and a hook that fails": "import sys\ndef hook(*_): raise KeyError('hook')\nsys.excepthook = hook\n1 / 0",
    "a keyboard interrupt": "raise KeyboardInterrupt",
    "a keyboard interrupt and nobody who listens": "import os\nos.close(1)\nprint('a')\nraise KeyboardInterrupt",
    "an exception whose frames live to the end": "import atexit\nclass A:\n    def __del__(self): print('deleted')\ndef f():\n    a = A()\n    1 / 0\n"
                                                 "atexit.register(print, 'handler')\nf()",
    "an exception that is asked for at exit": "import atexit, sys\natexit.register(lambda: print(repr(sys.last_value), sys.last_type, sys.last_traceback.tb_lineno))\n1 / 0",
    "output that nobody takes and a hook": "import os, sys\nsys.unraisablehook = lambda it: os.write(2, repr((it.exc_type, it.err_msg, it.object is sys.stdout)).encode())\n"
                                           "os.close(1)\nprint('a')",
    "an interrupt from itself": "import os, signal; os.kill(os.getpid(), signal.SIGINT)",
    "an interrupt that is caught": "import os, signal\ntry: os.kill(os.getpid(), signal.SIGINT)\nexcept KeyboardInterrupt: print('caught')",
    "a stop of iteration": "next(iter(()))",
    "no syntax": "this is no Python",
    "no syntax in another file": {"__main__.py": "print('begun')\nfrom . import other", "other.py": "a b"},
    "the hard exit": "import os; print('not flushed', end=''); os._exit(9)",
    "an abort": "import os; os.abort()",
    "an abort in a function of another file": {"__main__.py": "from .other import end\nend()", "other.py": "import os\n\ndef end():\n    os.abort()"},
    "a signal": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "a broken pipe to nobody": "import os\nr, w = os.pipe()\nos.close(r)\nos.write(w, b'x')",
    "a signal that it handles": "import os, signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(4))\nos.kill(os.getpid(), signal.SIGTERM)",
    "handlers at exit": "import atexit\nfor n in (1, 2): atexit.register(print, 'handler', n)\nprint('main')",
    "handlers at exit after an exception": "import atexit\natexit.register(print, 'handler')\n1 / 0",
    "a handler at exit that fails": "import atexit\natexit.register(print, 'last')\natexit.register(lambda: 1 / 0)\nprint('main')",
    "a handler at exit that exits": "import atexit, sys\natexit.register(sys.exit, 5)\nprint('main')",
    "a handler at exit that ends hard": "import atexit, os\natexit.register(os._exit, 5)\nprint('not flushed')",
    "a handler at exit that uses what is loaded": "import atexit, json\nvalue = {'a': 1}\natexit.register(lambda: print(json.dumps(value)))",
    "a handler at exit that writes": IN_HOME + "import atexit\nfile = open('log', 'w')\natexit.register(lambda: file.write('end'))",
    "finalizers": "import weakref\nclass A: pass\na = A()\nweakref.finalize(a, print, 'finalized')\nprint('main')",
    "a deleter": IN_HOME + "class A:\n    def __del__(self): os.mkdir('deleted')\na = A()\nprint('main')",
    "a deleter after the handlers": "import atexit\nclass A:\n    def __del__(self): print('deleted')\na = A()\natexit.register(print, 'handler')",
    "a deleter in another file": {"__main__.py": "from . import other\nprint('main')",
                                  "other.py": "class A:\n    def __del__(self): print('deleted')\na = A()"},
    "logging": IN_HOME + "import logging\nlogging.basicConfig(filename='log', format='%(message)s', level=10)\nlogging.info('a')\nlogging.getLogger('x').warning('b')",
    "a logging memory handler": IN_HOME + "import logging.handlers\nto = logging.FileHandler('log')\n"
                                "logging.getLogger().addHandler(logging.handlers.MemoryHandler(9, target=to))\nlogging.error('kept')",
    "an open file of the module": IN_HOME + "file = open('a', 'w')\nfile.write('not flushed')",
    "an open binary file of another module": {"__main__.py": IN_HOME + "from . import other\nother.file.write(b'not flushed')",
                                              "other.py": "file = open('a', 'ab')"},
    "an open file in a cycle": IN_HOME + "class A: pass\na = A()\na.a, a.file = a, open('a', 'w')\na.file.write('not flushed')\ndel a",
    "an open file of a class": IN_HOME + "class A: file = open('a', 'w')\nA.file.write('not flushed')",
    "an open file in a module of the library": IN_HOME + "import json\njson.file = open('a', 'w')\njson.file.write('not flushed')",
    "an open file in a local of a generator": IN_HOME + "def g():\n    with open('a', 'w') as file:\n        file.write('not flushed')\n        yield\n"
                                              "going = g()\nnext(going)",
    "an open compressed file": IN_HOME + "import gzip\nfile = gzip.GzipFile('a', 'wb', mtime=0)\nfile.write(b'not flushed')",
    "an open file and an exception": IN_HOME + "def f():\n    file = open('a', 'w')\n    file.write('not flushed')\n    1 / 0\nf()",
    "a database left open": IN_HOME + "import sqlite3\ndb = sqlite3.connect('d')\ndb.execute('create table t (a)')\ndb.commit()\n"
                            "db.execute('insert into t values (1)')\nprint(os.listdir())",
    "a write-ahead log left open": IN_HOME + "import sqlite3\ndb = sqlite3.connect('d')\ndb.execute('pragma journal_mode=wal')\n"
                                   "db.execute('create table t (a)')\nprint(sorted(os.listdir()))",
    "a temporary folder": IN_HOME + "import tempfile\nfolder = tempfile.TemporaryDirectory(dir='.')\nopen(folder.name + '/a', 'w')",
    "a thread that outlasts the main one": "import threading\ngo = threading.Event()\ndef work():\n    go.wait()\n    import __main__\n"
                                           "    print('thread', __main__.value)\nthreading.Thread(target=work).start()\nvalue = 7\nprint('main')\ngo.set()",
    "a thread that fails": "import threading\nthread = threading.Thread(target=lambda: 1 / 0)\nthread.start()\nthread.join()\nprint('main')",
    "a thread that exits": "import sys, threading\nthread = threading.Thread(target=sys.exit, args=(3,))\nthread.start()\nthread.join()\nprint('main')",
    "a daemon thread": "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\nprint('main')",
    "a busy daemon thread": "import threading\ncount = [0]\ndef beat():\n    while True: count[0] += 1\n"
                            "threading.Thread(target=beat, daemon=True).start()\nprint('main')",
    "a daemon thread that wakes all the time": "import threading, time\ncount = [0]\ndef beat():\n    while True:\n        count[0] += 1\n        time.sleep(1e-5)\n"
                                               "for _ in range(4): threading.Thread(target=beat, daemon=True).start()\nprint('main')",
    "a pool of threads": "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(2)\npool.submit(print, 'from the pool')",
    "a forked child": "import os\nprint('before')\nif os.fork() == 0:\n    print('child')\nelse:\n    print('parent', os.wait()[1])",
    "a forked child that fails": "import os\nif os.fork() == 0: 1 / 0\nprint('parent', os.wait()[1])",
    "another program": "import subprocess, sys\nprint(subprocess.run(['/bin/sh', '-c', 'kill -PIPE $$'], capture_output=True))",
    "itself again": "import subprocess, sys\nprint(subprocess.run([sys.executable, '-m', 'starter', 'again'], capture_output=True).stdout if len(sys.argv) < 3 "
                    "else sys.argv[1:])",
    "processes, forked": "import multiprocessing\nif __name__ == '__main__':\n    with multiprocessing.get_context('fork').Pool(1) as pool: print(pool.map(abs, [-1, 2]))",
    "processes, spawned": {"__main__.py": "import multiprocessing\nfrom .other import double\nif __name__ == '__main__':\n"
                          "    with multiprocessing.get_context('spawn').Pool(1) as pool: print(pool.map(double, [1, 2]))",
                           "other.py": "def double(a): return 2 * a"},
    "output without an end of line": "print('a', end='')",
    "output that was not flushed before a kill": "import os, signal\nprint('x' * 5000)\nprint('y' * 5000)\nos.kill(os.getpid(), signal.SIGKILL)",
    "output as bytes": "import sys\nsys.stdout.buffer.write(b'\\xff\\x00')\nprint('after')",
    "output that has no code": "print('a')\nprint('\\udcff \\ud800')",
    "output closed": "import sys\nprint('a')\nsys.stdout.close()",
    "answers on a stream that is put away": "import signal, sys\nanswers, sys.stdout = sys.stdout, sys.stderr\nsys.__stdout__ = sys.stderr\n"
                                            "signal.signal(signal.SIGTERM, lambda *_, to=answers: to.flush())\nprint('run-1', file=answers)\ndel answers",
    "answers on a buffer that is put away": "import json, sys\njson.answers = sys.stdout.detach()\nsys.stdout = sys.__stdout__ = sys.stderr\njson.answers.write(b'run-1')",
    "output that nobody takes": "import os, sys\nr, w = os.pipe()\nos.dup2(w, 1)\nos.close(r)\nprint('a')",
    "output to a closed descriptor": "import os\nos.close(1)\nprint('a')",
    "output replaced": "import io, sys\nsys.stdout = io.StringIO()\nprint('swallowed')",
    "output detached": "import sys\nprint('a', flush=True)\nsys.stdout.detach()",
    "input": "import sys\nprint(repr(sys.stdin.readline()), sys.stdin.read().upper())",
    "input as bytes": "import sys\nprint(sys.stdin.buffer.read(3), input())",
    "what it is": "import sys, __main__\nprint(__name__, __package__, __spec__.name, __spec__.origin == __file__, __file__.rsplit('/', 2)[1:], sys.argv[0] == __file__, "
                  "sys.argv[1:], __main__.__dict__ is globals(), sorted(name for name in globals() if name not in ('__annotations__', '__conditional_annotations__')))",
    "where it looks": "import os, sys\nprint([path.replace(os.getcwd(), '.') for path in sys.path], sys.executable, sys.prefix)",
    "what is loaded of others": "import sys\nprint([name for name in sys.modules if name.startswith(('labs', 'starter', 'grader'))])",
    "where it stands": "import os\nos.umask(umask := os.umask(0))\nprint(os.getpgrp() == os.getpid() == os.getsid(0), umask, "
                       "sorted(os.listdir('/proc/self/fd')) if os.path.exists('/proc/self/fd') else '', os.nice(0))",
    "what time it is": "import time\nprint(time.tzname, time.timezone, time.strftime('%z', time.localtime(0)))",
    "which signals it ignores": "import signal\nprint([(number, signal.getsignal(number)) for number in signal.valid_signals() "
                                "if signal.getsignal(number) != signal.SIG_DFL], signal.pthread_sigmask(0, []), signal.set_wakeup_fd(-1))",
    "its streams": "import sys\nfor s in (sys.stdin, sys.stdout, sys.stderr): print(s.name, s.encoding, s.errors, s.line_buffering, s.isatty(), s.fileno())\n"
                   "print(sys.stdout is sys.__stdout__)",
    "its environment": "import os\nprint(sorted(os.environ))",
    "what it traces": "import sys, threading\nprint(sys.getprofile(), threading.current_thread() is threading.main_thread(), threading.active_count())",
    "an exception and a hook that exits": "import sys\nsys.excepthook = lambda *_: sys.exit(2)\n1 / 0",
    "a module that goes away at exit": {"__main__.py": "import atexit, sys\nfrom . import other\natexit.register(sys.modules.pop, 'starter.other')", "other.py": ""},
    "a module of the library loaded again": {"__main__.py": "import sys\nfrom . import other\nfor name in list(sys.modules):\n"
                                             "    if name.partition('.')[0] not in ('starter', '__main__'): sys.modules[name] = sys.modules.pop(name)\nprint('main')",
                                             "other.py": "class A:\n    def __del__(self): print('deleted')\na = A()"},
    "a module that is not there": "import sys\nsys.modules['nothing'] = None\nprint('a')",
    "a module that is no module": "import sys\nclass A: __slots__ = ()\nsys.modules['a'] = A()\nsys.modules['b'] = 7\nprint('a')",
    "what it is told of itself": "import os, sys, threading\nprint(sys.orig_argv[1:], sys._xoptions, type(__builtins__).__name__, __annotations__, threading.main_thread().native_id == os.getpid())",
    "an object that says of itself nothing": "class A:\n    @property\n    def __class__(self): raise RuntimeError('out of context')\na = A()\nimport json\njson.kept = a\nprint('a')",
}
WAYS = {"forked": {}, "lines": {"lines": True}, "calls": {"calls": True, "lines": True}}


@pytest.mark.parametrize("name", ALIKE)
def test_a_program_in_the_hands_of_a_keeper_ends_as_python_would_end_it(bench, watched, name):
    staged, seen = bench.staged(ALIKE[name]), {}
    for way in ("spawned", *WAYS):
        program = bench.of(staged, forked=way != "spawned")
        process = program.ask("verb", "two words", stdin=b"one\ntwo", **WAYS.get(way, {}))
        seen[way] = process.code, process.stdout, process.complaint, home_of(program)
        program.kill(process)
        program.discard()
    for way in WAYS:
        assert seen[way] == seen["spawned"], way


@pytest.mark.parametrize("name", ["an exception", "an exception with a cause", "an exception in another file", "no syntax in another file", "an exception group",
                                  "an exception and a hook that fails", "a keyboard interrupt", "output that nobody takes", "output to a closed descriptor"])
def test_what_is_shown_of_an_error_is_what_python_shows(bench, name):
    staged, shown = bench.staged(ALIKE[name]), []
    for forked in (False, True):
        program = bench.of(staged, forked=forked)
        process = program.ask("verb")
        shown.append(re.sub(r"\S+/program/", "", process.stderr))
    assert shown[0] and shown[1] == shown[0]


def test_a_command_in_the_hands_of_a_keeper_starts_as_any_command_does(bench, watched):
    staged = bench.staged("grep -E '^Sig(Ign|Blk|Cgt)|^Threads|^NSpid' /proc/self/status | sed s/NSpid.*//; ls /proc/self/fd; umask; ulimit -a; nice; env | cut -d= -f1 | sort; pwd | xargs basename\n"
                          "[ $(ps -o sid= $$) = $$ ] && echo leads; read line; echo $line $#; exit 9", "/bin/sh main")
    seen = {}
    for way in ("spawned", *WAYS):
        program = bench.of(staged, forked=way != "spawned")
        process = program.ask("verb", "two words", stdin=b"one\ntwo", **WAYS.get(way, {}))
        seen[way] = process.code, process.stdout, process.stderr
        program.kill(process)
    assert seen["spawned"][0] == 9 and "leads\none 2\n" in seen["spawned"][1] and not seen["spawned"][2]
    for way in WAYS:
        assert seen[way] == seen["spawned"], way


# ---- death at a system call


ALL_CALLS = """\
import fcntl, os, socket, sys
os.chdir(os.environ["LAB_HOME"])
a = os.open("a", os.O_WRONLY | os.O_CREAT)
os.write(a, b"one")
os.pwrite(a, b"two", 1)
os.writev(a, [b"x", b"y"])
os.fsync(a)
os.fdatasync(a)
os.ftruncate(a, 2)
os.read(os.open("a", os.O_RDONLY), 5)
os.close(os.open("a", os.O_WRONLY))
os.close(os.open("a", os.O_WRONLY | os.O_TRUNC))
os.close(os.open("a", os.O_RDWR | os.O_CREAT))
os.mkdir("d")
d = os.open("d", os.O_RDONLY)
os.fsync(d)
os.rename("a", "d/b")
os.symlink("nowhere", "d/l")
os.link("d/b", "d/c")
os.truncate("d/c", 1)
os.unlink("d/c")
os.close(os.open("e", os.O_WRONLY | os.O_CREAT, dir_fd=d))
os.rename("e", "f", src_dir_fd=d)
os.unlink("f")
os.mkdir("x", dir_fd=d)
os.rmdir("d/x")
os.fsync(os.open(".", os.O_RDONLY))
os.close(os.open(os.environ["TMPDIR"] + "/t", os.O_WRONLY | os.O_CREAT))
one, other = socket.socketpair()
one.sendall(b"x")
other.recv(1)
one.sendmsg([b"x"])
os.read(other.fileno(), 1)
os.write(os.pipe()[1], b"x")
door = socket.socket(socket.AF_UNIX)
door.connect(os.environ["OUTSIDE"].removeprefix("unix:"))
file = open("l", "w")
fcntl.flock(file, fcntl.LOCK_EX)
fcntl.lockf(file, fcntl.LOCK_EX)
fcntl.fcntl(file, fcntl.F_GETFD)
os.write(1, b"out")
os.write(2, b"err")
os.stat("d"), os.listdir("d"), os.access("d", os.W_OK), os.path.realpath("d/l"), os.getpid(), os.utime("d"), os.chmod("d", 0o700)
"""
# What waits, what it is about, and what it does to the names in the home.
ITS_CALLS = [
    ("open", "a", "+a"), ("write", "a", ""), ("pwrite", "a", ""), ("writev", "a", ""), ("fsync", "a", ""), ("fdatasync", "a", ""),
    ("ftruncate", "a", ""), ("open", "a", ""), ("open", "a", ""), ("mkdir", "d", "+d"), ("fsync", "d", ""), ("rename", "a → d/b", "-a +d/b"),
    ("symlink", "d/l", "+d/l"), ("link", "d/b → d/c", "+d/c"), ("truncate", "d/c", ""), ("unlink", "d/c", "-d/c"), ("open", "d/e", "+d/e"),
    ("rename", "d/e → f", "-d/e +f"), ("unlink", "f", "-f"), ("mkdir", "d/x", "+d/x"), ("rmdir", "d/x", "-d/x"), ("fsync", "LAB_HOME", ""),
    ("open", "TMPDIR/t", ""), ("sendto", "the outside", ""), ("recvfrom", "the outside", ""), ("sendmsg", "the outside", ""), ("write", "a pipe", ""),
    ("connect", "the outside", ""), ("open", "l", "+l"), ("flock", "l", ""), ("fcntl", "l", ""), ("write", "stdout", ""), ("write", "stderr", "")]


def calls_of(process):
    """Each call by the name it has where there is only one of its kind, and what it is about."""
    alike = {"openat": "open", "mkdirat": "mkdir", "renameat": "rename", "renameat2": "rename", "linkat": "link", "symlinkat": "symlink", "pwrite64": "pwrite"}
    found = []
    for _, name, on, *_ in process.report["all"]:
        name = "rmdir" if name == "unlinkat" and on == "d/x" else "unlink" if name == "unlinkat" else alike.get(name, name)
        found.append((name, "TMPDIR/t" if on.endswith("/tmp/t") else on))
    return found


@pytest.mark.parametrize("locks", [False, True])
def test_calls_that_leave_a_trace_are_counted_and_no_others(bench, watched, locks):
    program = bench.program(ALL_CALLS)
    process = program.ask("start", calls=True, all=True, locks=locks)
    assert process.code == 0 and not process.report["trouble"]
    expected = [(name, on) for name, on, _ in ITS_CALLS if locks or name not in syscall.LOCKS]
    assert calls_of(process) == expected and process.report["events"] == len(expected)
    assert (process.stdout, process.stderr) == ("out", "err")


def test_a_call_that_a_program_is_killed_before_does_not_happen_and_all_before_it_have(bench, watched):
    staged, there = bench.staged(ALL_CALLS), set()
    for number, (name, on, effect) in enumerate(ITS_CALLS, 1):
        program = bench.of(staged)
        process = program.ask("start", calls=True, lines=True, locks=True, strike=number, all=number % 2 == 0)
        assert process.code == -signal.SIGKILL and process.killed and process.report["events"] == number, name
        assert set(home_of(program)) == there, f"before {name} {on}"
        assert (process.stdout, process.stderr) == ("out" if (name, on) == ("write", "stderr") else "", "")
        *_, file, line = process.report["last"]
        words = ALL_CALLS.splitlines()[line - 1]
        assert file == OWN and name.removesuffix("to").removesuffix("from") in words.replace("lockf", "fcntl"), words
        assert number % 2 or calls_of(process) == [(name, on) for name, on, _ in ITS_CALLS[:number]]
        for change in effect.split():
            (there.add if change[0] == "+" else there.remove)(change[1:])
    process = bench.of(staged).ask("start", calls=True, locks=True, strike=len(ITS_CALLS) + 1)
    assert process.code == 0 and not process.killed


def test_the_calls_of_all_threads_and_child_processes_are_counted_together(bench, watched):
    staged = bench.staged("""\
import os, subprocess, threading
os.chdir(os.environ["LAB_HOME"])
def make(name):
    for number in range(4): os.mkdir(f"{name}{number}")
if (pid := os.fork()) == 0:
    make("c")
    subprocess.run(["mkdir", "d0", "d1"])
    os._exit(0)
threads = [threading.Thread(target=make, args=(name,)) for name in "ab"]
for thread in threads: thread.start()
for thread in threads: thread.join()
os.waitpid(pid, 0)
os._exit(3)
""")
    process = (program := bench.of(staged)).ask("start", calls=True, all=True)
    assert process.code == 3 and len(home_of(program)) == 14
    assert sorted(calls_of(process)) == sorted([("mkdir", f"{name}{number}") for name in "abc" for number in range(4)] + [("mkdir", "d0"), ("mkdir", "d1")])
    for number in range(1, 15):
        process = (program := bench.of(staged)).ask("start", calls=True, strike=number)
        assert process.killed and len(home_of(program)) == number - 1


def test_a_shell_script_is_killed_before_any_of_its_calls(bench, watched):
    staged = bench.staged('cd "$LAB_HOME"; echo one > a; mkdir d; mv a d/b; cat < d/b > /dev/null; rm d/b; echo end', "/bin/sh main")
    process = (program := bench.of(staged)).ask("start", calls=True, all=True)
    expected = [("open", "a", {"a"}), ("write", "a", {"a"}), ("mkdir", "d", {"a", "d"}), ("rename", "a → d/b", {"d", "d/b"}),
                ("open", "/dev/null", {"d", "d/b"}), ("write", "/dev/null", {"d", "d/b"}), ("unlink", "d/b", {"d"}), ("write", "stdout", {"d"})]
    found = [(name, on) for name, on in calls_of(process) if name != "copy_file_range"]   # which a newer `cat` tries first
    assert (process.code, process.stdout) == (0, "end\n")
    assert found == [(name, on) for name, on, _ in expected]
    numbers = [number for number, (name, _) in enumerate(calls_of(process), 1) if name != "copy_file_range"]
    before = set()
    for number, (_, _, after) in zip(numbers, expected):
        process = (program := bench.of(staged)).ask("start", calls=True, strike=number)
        assert process.code == -signal.SIGKILL and process.killed and set(home_of(program)) == before and not process.stdout
        before = after


def test_a_program_of_machine_code_is_killed_before_any_call_of_its_threads(bench, watched, tmp_path):
    if not (compiler := shutil.which("gcc") or shutil.which("cc")):
        pytest.skip("no C compiler")
    (tmp_path / "main.c").write_text("""
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void *make(void *name) {
    for (int number = 0; number < 3; number++) {
        char path[40];
        sprintf(path, "%s%d", (char *) name, number);
        close(open(path, O_CREAT | O_WRONLY, 0600));
    }
    return NULL;
}
int main(void) {
    pthread_t a, b;
    if (chdir(getenv("LAB_HOME"))) return 1;
    pthread_create(&a, NULL, make, "a");
    pthread_create(&b, NULL, make, "b");
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return 5;
}
""")
    subprocess.run([compiler, "-pthread", "-o", "main", "main.c"], cwd=tmp_path, check=True)
    staged = stage(tmp_path, bench.folder / "staged", "./main")
    process = bench.of(staged).ask("start", calls=True, all=True)
    assert process.code == 5 and sorted(calls_of(process)) == [("open", f"{name}{number}") for name in "ab" for number in range(3)]
    for number in range(1, 7):
        process = (program := bench.of(staged)).ask("start", calls=True, strike=number)
        assert process.killed and len(home_of(program)) == number - 1


def test_ways_around_the_watch_are_as_if_they_were_not_there(bench, watched):
    program = bench.program("""\
import ctypes, errno, os, platform
libc = ctypes.CDLL(None, use_errno=True)
numbers = [425] + [0x40000000 + 1] * (platform.machine() == "x86_64")   # io_uring_setup; write of another kind of process
print([libc.syscall(ctypes.c_long(number), 1, ctypes.c_char_p(b"x" * 200), 1) == -1 and errno.errorcode[ctypes.get_errno()] for number in numbers])
""")
    process = program.ask("start", calls=True)
    assert set(json.loads(process.stdout.replace("'", '"'))) == {"ENOSYS"}


BAD_CALLS = """\
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
file = os.open(os.environ["LAB_HOME"] + "/a", os.O_WRONLY | os.O_CREAT)
class Part(ctypes.Structure): _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
text = ctypes.create_string_buffer(b"text")
source = os.open(__file__, os.O_RDONLY)
for address in (-1, 1, 1 << 62, 8 - (1 << 63)):
    address = ctypes.c_void_p(address)
    for number in (file, -1, 1000, 1):
        libc.write(number, address, 4)
        libc.write(number, address, ctypes.c_size_t(-1))
        libc.writev(number, address, 1)
        libc.writev(number, ctypes.byref(Part(address, 1 << 62)), 1)
        libc.writev(number, ctypes.byref(Part(address, -1)), 1 << 30)
        libc.writev(number, ctypes.byref(Part(address, -1)), -1)
        libc.pwrite(number, address, 1, ctypes.c_long(-1))
        libc.pwrite(number, text, 4, ctypes.c_long(-5))
        libc.fsync(number)
        libc.ftruncate(number, ctypes.c_long(-1))
        libc.sendfile(number, -1, address, 4)
        for place in (-1, 1 << 62): libc.sendfile(number, source, ctypes.byref(ctypes.c_long(place)), 4)
        libc.send(number, address, 4, 0)
        libc.connect(number, address, 9)
    libc.open(address, os.O_CREAT, 0o600)
    libc.rename(address, address)
    libc.unlink(address)
    libc.symlink(address, text)
    libc.symlink(text, address)
    libc.mkdirat(-1, text, 0o700)
    libc.truncate(text, ctypes.c_long(-1))
os.write(1, b"end")
"""


def test_calls_that_make_no_sense_do_no_harm(bench, watched):
    program = bench.program(BAD_CALLS)
    process = program.ask("start", calls=True, all=True, writes=True)
    assert (process.code, process.stdout, process.stderr) == (0, "end", "") and home_of(program) == {"a": b""}
    assert process.report["events"] > 4 * 4 * 10
    assert content_of(process) == {"a": b""}


def test_a_call_that_a_signal_interrupts_is_one_call(bench, watched):
    program = bench.program("""\
import os, signal
count = 0
def tick(*_):
    global count
    count += 1
signal.signal(signal.SIGALRM, tick)
signal.setitimer(signal.ITIMER_REAL, 2e-4, 2e-4)
file = os.open(os.environ["LAB_HOME"] + "/a", os.O_WRONLY | os.O_CREAT)
for number in range(1500): os.write(file, b"x")
signal.setitimer(signal.ITIMER_REAL, 0)
print(count, flush=True)
""")
    process = program.ask("start", calls=True)
    assert process.code == 0 and int(process.stdout) > 20 and home_of(program) == {"a": b"x" * 1500}
    assert process.report["events"] == 1502


def test_a_call_that_a_signal_ended_before_it_was_seen_is_known(bench, watched):
    program = bench.program("""\
import ctypes, errno, os, signal
libc = ctypes.CDLL(None, use_errno=True)
signal.signal(signal.SIGALRM, lambda *_: None)
file = os.open(os.environ["LAB_HOME"] + "/a", os.O_WRONLY | os.O_CREAT)
signal.setitimer(signal.ITIMER_REAL, 2e-4, 2e-4)
ended = sum(libc.fsync(file) != 0 and ctypes.get_errno() == errno.EINTR for _ in range(1500))
signal.setitimer(signal.ITIMER_REAL, 0)
print(ended, flush=True)
""")
    process = program.ask("start", calls=True)
    assert process.code == 0 and int(process.stdout) > 0
    assert process.report["unseen"] == int(process.stdout) and process.report["events"] == 1502 - int(process.stdout)


def test_a_line_is_noted_where_a_function_under_way_is_at_none_of_its_own(bench, watched):
    """So it is where a signal's handler is called between two lines."""
    program = bench.program("""\
def inner():
    print("inner", flush=True)
def outer():
    inner()
size = len(outer.__code__.co_code) // 2   # of which an entry of the table can say for eight that they are at no line
outer.__code__ = outer.__code__.replace(co_linetable=b"\\xff" * (size // 8) + bytes([0xf7 + size % 8] * (size % 8 > 0)))
outer()
""")
    process = program.ask("start", calls=True, lines=True, all=True)
    assert (process.code, process.stdout, process.stderr) == (0, "inner\n", "")
    process = program.ask("start", lines=True, strike=6)
    assert process.killed and process.report["stack"] == [[OWN, 2], [OWN, 3], [OWN, 7]]


def test_a_call_is_where_its_own_thread_is_whatever_the_others_do(bench, watched):
    program = bench.program("""\
import os, threading
os.chdir(os.environ["LAB_HOME"])
def work():
    for number in range(50):
        os.mkdir(str(number))
thread = threading.Thread(target=work)
thread.start()
while thread.is_alive():
    pass
""")
    process = program.ask("start", calls=True, lines=True, all=True)
    assert process.code == 0 and [call[1:] for call in process.report["all"]] == [["mkdir", str(number), OWN, 5] for number in range(50)]
    assert process.report["stacks"] == [[[OWN, 5]]] * 50


# ---- the keeper

@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_fork_server_that_a_program_has_stopped_ends_with_its_user(bench):
    ground = bench.ground("import os, signal\n"
                          "os.kill(int(open(f'/proc/{os.getppid()}/stat').read().rpartition(')')[2].split()[1]), signal.SIGSTOP)\n")
    assert ground.program("stops it").ask("start").code == 0
    os.waitid(os.P_PID, ground.forks.of(1).pid, os.WSTOPPED | os.WNOWAIT)
    ground.close()   # it would wait for ever


FOREVER = "import signal; signal.pause()\n"


def test_on_a_ground_that_is_closed_nothing_begins(bench):
    ground = bench.ground(FOREVER)
    program, forks = ground.program("before"), ground.forks
    running = program.begin("start")
    ground.close()
    assert not running.running
    for begin in (lambda: ground.program("after"), lambda: ground.forks):
        with pytest.raises(Closed):
            begin()
    with pytest.raises(ProgramFault):
        forks.of(1).keeper()   # one that had nothing to do went with its server


def test_gated_starts_begin_at_the_word_and_not_before(bench):
    program = bench.program("import os\nos.mkdir(os.environ['LAB_HOME'] + '/begun')\nprint('begun')\n")
    first, second = bench.of(program.staged), bench.of(program.staged)
    gated = [one.begin("start", gated=True) for one in (first, second)]
    for process in gated:
        process.until_ready()
        assert psutil.Process(process.pid).status() == psutil.STATUS_STOPPED
    gated[0].go()
    assert gated[0].wait().stdout == "begun\n"
    assert home_of(second) == {} and gated[1].running and psutil.Process(gated[1].pid).status() == psutil.STATUS_STOPPED
    gated[1].go_on()
    assert bench.of(program.staged).ask("start").stdout == "begun\n", "meanwhile it would have begun"
    assert home_of(second) == {} and psutil.Process(gated[1].pid).status() == psutil.STATUS_STOPPED, "to go on from a stop is not the word"
    gated[1].stop()
    gated[1].go()
    gated[1].go_on()
    assert gated[1].wait().stdout == "begun\n"


def test_a_start_can_be_killed_at_its_gate(bench, watched):
    for keeping in ({}, {"calls": True}):
        program = bench.program("import os\nos.mkdir(os.environ['LAB_HOME'] + '/begun')\n")
        process = program.begin("start", gated=True, **keeping)
        process.until_ready()
        program.kill(process)
        assert process.code == -signal.SIGKILL and process.killed and gone(process.pid) and home_of(program) == {}


def test_a_start_whose_folder_is_not_there_ends_and_its_keeper_lives(bench, watched):
    program = bench.program("print('up')")
    for keeping in ({}, {"gated": True}, {"calls": True}):
        process = program.begin("start", folder=str(bench.folder / "nothing"), **keeping)
        if keeping.get("gated"):
            process.until_ready()
            process.go()
        assert process.wait().code not in (0, None) and "No such file" in process.last_words
    assert program.ask("start").stdout == "up\n"


def test_a_program_is_held_before_the_nth_call_until_the_word(bench, watched):
    staged = bench.staged("import os\nfor number in range(5): os.mkdir(os.environ['LAB_HOME'] + f'/{number}')\n")
    for number in range(1, 6):
        process = (program := bench.of(staged)).begin("start", calls=True, hold=number)
        assert process.until_held() and process.running and len(home_of(program)) == number - 1
        process.go()
        assert process.wait().code == 0 and len(home_of(program)) == 5 and process.report["events"] == 5
    process = (program := bench.of(staged)).begin("start", calls=True, hold=6)
    assert not process.until_held() and process.wait().code == 0
    process = (program := bench.of(staged)).begin("start", calls=True, hold=3)
    assert process.until_held()
    program.kill(process)
    assert process.killed and not process.until_held() and len(home_of(program)) == 2


def test_two_programs_are_held_at_their_lock_and_one_has_it(bench, watched):
    staged = bench.staged("""\
import fcntl, os, sys
file = open(os.environ["LAB_HOME"] + "/lock", "w")
try: fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError: sys.exit(5)
print("mine", flush=True)
sys.stdin.read()
""")
    program = bench.of(staged)
    first = program.begin("start", calls=True, locks=True, hold=2)
    assert first.until_held()
    second = program.begin("start", keep_stdin=True)
    assert second.line() == "mine"
    first.go()
    assert first.wait().code == 5
    second.close_stdin()
    assert second.wait().code == 0


def test_a_program_stands_still_once_it_is_stopped(bench, watched):
    for keeping in ({}, {"calls": True, "lines": True}):
        program = bench.program("print('up', flush=True)\nwhile True: pass")
        process = program.begin("start", **keeping)
        assert process.line() == "up"
        for _ in range(100):
            process.stop()
            assert psutil.Process(process.pid).status() == psutil.STATUS_STOPPED
            process.go_on()
        process.stop()
        program.kill(process)
        process.stop()   # in vain
        assert process.code == -signal.SIGKILL and process.killed


DAEMON = """
import os, signal, sys
ready, go = os.pipe()
if os.fork() == 0:
    os.setsid()
    between = os.getpid()
    if os.fork() == 0:
        while os.getppid() == between: pass
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2): os.dup2(null, stream)
        os.write(go, b"%d" % os.getpid())
        signal.pause()
    os._exit(0)
print(os.read(ready, 20).decode(), flush=True)
if sys.argv[1] == "stay": signal.pause()
sys.exit(4)
"""


def test_a_daemon_that_outlives_its_program_is_named_and_dead(bench):
    program = bench.program(DAEMON)
    process = program.ask("end")
    daemon = int(process.line())
    assert process.code == 4 and not process.killed and gone(daemon)
    left, = process.outlived
    assert left.startswith(f"process {daemon} (") and process.left_behind() == [left]
    process = program.begin("stay")
    daemon = int(process.line())
    assert not gone(daemon)
    program.kill(process)
    assert process.code == -signal.SIGKILL and process.killed and gone(daemon)
    left, = process.outlived
    assert left.startswith(f"process {daemon} (")


def test_a_program_that_ends_while_others_of_its_group_run(bench):
    program = bench.shell("sleep 1000 & echo $!; exit 3")
    process = program.ask("start")
    child = int(process.line())
    assert process.code == 3 and not process.killed and process.outlived == [f"process {child} (sleep 1000)"] and gone(child)


def test_what_ends_soon_after_its_program_did_not_outlive_it(bench):
    program = bench.shell('exec 3<&0; cat <&3 > "$LAB_HOME/a" & echo $!; exit 3')
    process = program.begin("start", stdin=b"text", keep_stdin=True)
    child = int(process.line())
    assert not gone(child)
    process.close_stdin()
    assert process.wait().code == 3 and process.outlived == [] and gone(child) and home_of(program) == {"a": b"text"}


def test_calls_of_those_that_outlast_the_program_count_too(bench, watched):
    program = bench.shell('exec 3<&0; (read line <&3; mkdir "$LAB_HOME/a") & exit 3')
    process = program.begin("start", keep_stdin=True, calls=True, all=True)
    process.write(b"go\n")
    assert process.wait().code == 3 and calls_of(process) == [("mkdir", "a")] and home_of(program) == {"a": None}


def test_a_signal_of_the_group_reaches_a_program_that_has_no_group_yet():
    # Still in our group, as a program is between its birth and its first step.
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process, open(os.devnull) as woken:
        ours, other = socket.socketpair()
        with ours, other:
            _Keeper({"environment": {}}, process.pid, ours, woken.fileno(), None, None, None).strike()
    assert process.returncode == -signal.SIGKILL


def test_a_program_runs_no_sooner_than_it_is_known(bench):
    # It could kill its keeper before that, and who is to blame would not be known either.
    staged = bench.staged("print('runs')")
    start = {"module": "starter", "arguments": [], "folder": str(staged.places.take() / "program"), "files": [], "environment": {},
             "confined": {"how": "limits", "writable": []}}
    (out, out_too), (end, end_too) = os.pipe(), os.pipe()
    with ForkServer() as forks, forks.keeper() as keeper:
        send(keeper, start, [end, out_too, out_too])
        message, pidfds = receive(keeper, 1)
        os.close(out_too)
        os.close(*pidfds)
        psutil.Process(message["pid"]).parent().kill()
        with open(out) as stdout:
            assert stdout.read() == ""
        os.close(end)
        os.close(end_too)


HARNESS = """
import os, signal, sys
sys.path.insert(0, sys.argv[3])
from pathlib import Path
from labs.harness.kept import ForkServer, Kept
forks, lab_home = ForkServer(), sys.argv[2]
started = [Kept(forks, {"module": "starter", "arguments": ["stay"], "folder": sys.argv[1], "files": [], "environment": {"LAB_HOME": lab_home}, **keeping})
           for keeping in ({}, {"calls": True}, {"gated": True})]
daemons = [int(kept.stdout.readline()) for kept in started[:2]]
print(forks.pid, *daemons, *(kept.pid for kept in started), flush=True)
signal.pause()
"""


def test_nothing_of_a_program_or_its_keeper_outlives_the_harness(bench, watched):
    staged = bench.staged(DAEMON)
    harness = subprocess.Popen([sys.executable, "-c", HARNESS, staged.folder, bench.folder, KIT], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    with harness:
        try:
            running = [psutil.Process(int(word)) for word in harness.stdout.readline().split()]
            running += psutil.Process(running[0].pid).children(recursive=True)
            running = {process for process in running if process.status() != psutil.STATUS_ZOMBIE}
            assert len(running) == 9, "the server, two daemons, three programs, three keepers"
        finally:
            harness.kill()
    _, alive = psutil.wait_procs(running, timeout=PATIENCE)
    for process in alive:
        process.kill()
    assert alive == []


def test_a_program_that_says_too_much_is_ended_and_was_not_killed(bench):
    program = bench.program("import sys\nwhile True: sys.stderr.write('x' * 5000)")
    process = program.begin("start")
    with pytest.raises(ProgramFault, match="`start` wrote more than 1 MiB of output and was ended"):
        process.wait()
    assert process.code == -signal.SIGKILL and not process.killed and gone(process.pid)


@pytest.mark.parametrize("keeping", [{}, {"calls": True}, {"gated": True}], ids=str)
def test_a_command_that_cannot_be_started_is_told_in_the_report(bench, watched, keeping):
    for source, command, why in (("", "no-such-command main", "`no-such-command` cannot be started: No such file or directory"),
                                 ("#!/bin/sh", "./main", "`./main` cannot be started: Permission denied")):
        process = bench.program(source, command).begin("start", **keeping)
        if "gated" in keeping:
            process.until_ready()
            process.go()
        assert process.wait().report["trouble"] == why and process.code == 127


def test_a_word_that_comes_too_late_is_not_for_the_next_program(bench):
    program = bench.program("import sys\nprint(sys.stdin.read())")
    for _ in range(20):
        first = program.begin("start").wait()
        first._body.signal(signal.SIGKILL)
        first._body.go()
        second = program.begin("start", stdin=b"up")
        assert second.wait().code == 0 and second.stdout == "up\n" and not second.killed


def descriptors_of(pid):
    return sorted(os.readlink(f"/proc/{pid}/fd/{name}").split(":")[0] for name in os.listdir(f"/proc/{pid}/fd"))


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_hundreds_of_starts_by_one_keeper_leak_no_descriptor(bench, watched):
    program, other = bench.shell("echo $1"), bench.program("import os\nos.mkdir(os.environ['LAB_HOME'] + '/a')\n")
    with ForkServer() as program._forks:
        other._forks, seen = program._forks, []
        for number in range(240):
            assert program.ask(str(number), calls=number % 2 == 0, all=True).stdout == f"{number}\n"
            if number % 4 == 0:
                other.ask("a", calls=True, lines=True, strike=1)
                other.ask("a", lines=True, strike=number % 8)
            if number in (20, 239):
                keeper, = psutil.Process(program._forks.pid).children()
                seen.append([descriptors_of(pid) for pid in (keeper.pid, program._forks.pid)] + [len(os.listdir("/proc/self/fd"))])
    assert seen[0] == seen[1] and gone(program._forks.pid)
    keeper.wait(PATIENCE)
    program._forks = other._forks = bench.forks


# ---- power cuts: what a run wrote


def log_of(process):
    """What the recorder noted, without the times and with the data as it was written."""
    assert not process.report["trouble"]
    return [(what, *operands[:-1], base64.b64decode(operands[-1])) if what == "write" else (what, *operands)
            for _, what, *operands in process.report["writes"]]


def disk_after(log):
    disk = Disk()
    for entry in log:
        disk.do(*entry)
    return disk


def content_of(process):
    """What is in the home, by what the recorder noted."""
    return next(disk_after(log_of(process)).states())[0]


SQLITE = """import sqlite3
db = sqlite3.connect("runs.db")
db.execute("pragma journal_mode={}"), db.execute("pragma synchronous={}")
db.execute("create table t (a, b)")
for number in range(5):
    with db: db.executemany("insert into t values (?, ?)", [(number, "x" * 900)] * 40)
with db: db.execute("delete from t where a < 3")
db.execute("vacuum")
with db: db.execute("update t set b = 'y'")
"""
WRITERS = {
    "JSON in place": "import json\nfor n in range(3):\n    with open('r.json', 'w') as file: json.dump({'n': n, 'text': 'x' * 20000}, file)",
    "temp, sync, rename, sync": "for n in '123':\n    with open('t', 'w') as file:\n        file.write(n)\n        file.flush()\n        os.fsync(file.fileno())\n"
                                "    os.rename('t', 'r')\n    folder = os.open('.', os.O_RDONLY)\n    os.fsync(folder)\n    os.close(folder)",
    "a named temporary file": "import tempfile\nfor n in '123':\n    with tempfile.NamedTemporaryFile('w', dir='.', delete=False) as file: file.write(n)\n    os.replace(file.name, 'r')",
    "JSONL appended": "for n in range(9):\n    with open('log', 'a') as file: print([n], file=file)",
    "two that append": "a, b = open('log', 'a'), open('log', 'a')\nfor n in range(9):\n    for file in (a, b): print(n, file=file, flush=True)",
    **{f"SQLite {mode}, {sync}": SQLITE.format(mode, sync) for mode, sync in (
        ("delete", "full"), ("delete", "extra"), ("truncate", "full"), ("persist", "full"), ("wal", "full"), ("wal", "normal"), ("memory", "off"), ("off", "off"))},
    "a write-ahead log that is left": SQLITE.format("wal", "full") + "os._exit(0)",
    "a database in autocommit with savepoints": "import sqlite3\ndb = sqlite3.connect('d', isolation_level=None)\ndb.execute('create table t (a)')\n"
                                                "db.execute('begin')\ndb.execute('savepoint s')\ndb.execute('insert into t values (1)')\ndb.execute('rollback to s')\ndb.execute('commit')",
    "writev and pwrite": "file = os.open('a', os.O_RDWR | os.O_CREAT)\nos.writev(file, [b'abc', b'', b'defg' * 50])\nos.pwrite(file, b'XY', 1)\nos.pwritev(file, [b'1', b'22'], 300)\n"
                         "os.write(file, b'end')",
    "places after the end": "file = os.open('a', os.O_RDWR | os.O_CREAT)\nos.lseek(file, 10, os.SEEK_SET)\nos.write(file, b'x')\nos.pwrite(file, b'y', 30)",
    "lengths": "file = os.open('a', os.O_RDWR | os.O_CREAT)\nos.write(file, b'abcdef')\nos.ftruncate(file, 3)\nos.truncate('a', 9)\nos.truncate('a', 8)\n"
               "os.posix_fallocate(file, 0, 4)\nos.posix_fallocate(file, 5, 20)\nopen('b', 'w').truncate(7)",
    "append after a cut": "file = os.open('a', os.O_WRONLY | os.O_CREAT | os.O_APPEND)\nos.write(file, b'abcdef')\nos.ftruncate(file, 2)\nos.write(file, b'x')\nos.pwrite(file, b'y', 0)",
    "a descriptor shared": "file = os.open('a', os.O_WRONLY | os.O_CREAT)\nother = os.dup(file)\nos.write(file, b'one')\nos.write(other, b'two')\nif os.fork() == 0:\n"
                           "    os.write(file, b'three')\n    os._exit(0)\nos.wait()\nos.write(other, b'four')",
    "replace over another": "for name in 'ab': open(name, 'w').write(name)\nos.replace('a', 'b')",
    "copies": "import shutil\nopen('a', 'w').write('x' * 100000)\nshutil.copy('a', 'b')\nshutil.copyfile('a', 'c')\nos.mkdir('d')\nshutil.copy2('b', 'd')\n"
              "shutil.copytree('d', 'e')\nshutil.move('a', 'd/moved')\nopen('b', 'r+').write('changed')\nshutil.copy('b', 'c')",
    "a copy from elsewhere": "import shutil\nshutil.copyfile(sys.modules['os'].__file__, 'os.py')",
    "a copy in the kernel": "a, b = os.open('a', os.O_RDWR | os.O_CREAT), os.open('b', os.O_RDWR | os.O_CREAT)\nos.write(a, b'abcdefghij')\n"
                            "os.copy_file_range(a, b, 4, offset_src=2, offset_dst=1)\nos.lseek(a, 3, os.SEEK_SET)\nos.copy_file_range(a, b, 100)\nos.write(b, b'end')",
    "sendfile without an offset": "a, b = os.open('a', os.O_RDWR | os.O_CREAT), os.open('b', os.O_RDWR | os.O_CREAT)\nos.write(a, b'abcdefghij')\nos.lseek(a, 4, os.SEEK_SET)\n"
                                  "print(os.sendfile(b, a, None, 3))\nos.sendfile(b, a, 1, 2)\nos.write(b, b'end')",
    "a shell": "import subprocess\nsubprocess.run('echo one > a; echo two >> a; mkdir -p d/e; mv a d/e/b; ln -s b d/e/l; ln d/e/b h; cp d/e/b c; rm c; tee t < h > /dev/null', shell=True, check=True)",
    "threads": "import threading\ndef work(name):\n    for n in range(9):\n        with open(name, 'a') as file: print(n, file=file)\n"
               "threads = [threading.Thread(target=work, args=(name,)) for name in 'abc']\nfor thread in threads: thread.start()\nfor thread in threads: thread.join()",
    "folders": "from pathlib import Path\nPath('a/b/c').mkdir(parents=True)\nPath('a/b/c/f').write_text('f')\nos.rename('a/b', 'a/d')\nPath('a/d/c/g').write_text('g')\nos.rename('a', 'z')\n"
               "Path('z/d/c/f').unlink()\nos.makedirs('y', exist_ok=True)\nos.makedirs('y', exist_ok=True)\nos.rmdir('y')",
    "a folder removed": "import shutil\nos.makedirs('a/b/c')\nopen('a/b/f', 'w').write('x')\nos.symlink('..', 'a/l')\nshutil.rmtree('a')\nopen('a', 'w').write('now a file')",
    "a temporary folder": "import tempfile\nwith tempfile.TemporaryDirectory(dir='.') as folder: open(folder + '/f', 'w').write('x')",
    "links": "open('a', 'w').write('a')\nos.symlink('a', 'l')\nos.symlink('nowhere', 'm')\nos.link('a', 'h')\nopen('h', 'a').write('b')\nos.unlink('a')\n"
             "os.symlink('h', 't')\nos.replace('t', 'l')",
    "through links": "from pathlib import Path\nos.mkdir('v1')\nos.symlink('v1', 'current')\nopen('current/f', 'w').write('f')\nos.mkdir('current/d')\nos.rename('current/f', 'current/d/g')\n"
                     "open('a', 'w').write('long before')\nos.symlink('a', 'l')\nopen('l', 'w').write('short')\nos.symlink('new', 'n')\nopen('n', 'w').write('made')\nos.truncate('n', 2)",
    "what fails": "from contextlib import suppress\nos.mkdir('d')\nopen('d/f', 'w').write('x')\n"
                  "for do in (lambda: os.rmdir('d'), lambda: os.unlink('no'), lambda: open('d/f', 'x'), lambda: os.mkdir('d'), lambda: open('no/f', 'w'), lambda: os.rename('no', 'd/f'),\n"
                  "           lambda: os.symlink('x', 'd/f'), lambda: os.link('no', 'a'), lambda: os.link('d/f', 'd/f'), lambda: os.unlink('d'), lambda: os.truncate('no', 1), lambda: open('d', 'w'),\n"
                  "           lambda: os.rename('d/f', 'no/f'), lambda: os.rename('d/f', 'd'), lambda: os.rename('d', 'd/f'), lambda: os.rmdir('d/f'), lambda: os.mkdir('no/d'), lambda: os.symlink('x', 'no/l'),\n"
                  "           lambda: os.link('d/f', 'no/f'), lambda: os.rename('d', 'd/e'), lambda: os.open('d/f', os.O_CREAT | os.O_EXCL | os.O_TRUNC | os.O_WRONLY), lambda: open('d/f/g', 'w')):\n"
                  "    try: do()\n    except OSError: continue\n    raise SystemExit('it should fail')\nos.mkdir('no')\nos.mkdir('e')\nopen('e/x', 'w')\n"
                  "with suppress(OSError): os.rename('d', 'e')",
    "removed while it is written": "file = open('a', 'w')\nfile.write('x')\nfile.flush()\nos.unlink('a')\nfile.write('y')\nfile.flush()\nopen('a', 'w').write('new')\nfile.write('z')",
    "renamed while it is written": "file = open('a', 'w', buffering=1)\nprint('x', file=file)\nos.rename('a', 'b')\nprint('y', file=file)\nopen('a', 'w').write('new')\nprint('z', file=file)",
    "names that are no text": "open(b'\\xff\\n \\xc3\\xa4', 'w').write('x')\nos.mkdir('d ')\nos.rename(b'\\xff\\n \\xc3\\xa4', b'd /\\xfe')",
    "an archive": "import zipfile, tarfile, gzip\nwith zipfile.ZipFile('z', 'w') as archive: archive.writestr('a', 'x' * 5000), archive.write(__file__, 'main')\n"
                  "with tarfile.open('t', 'w:gz') as archive: archive.add('z')\ngzip.open('g', 'w').write(b'x')",
    "a shelf": "import dbm.dumb\nwith dbm.dumb.open('shelf', 'c') as shelf:\n    for n in range(5): shelf[str(n % 3)] = 'x' * n\n    del shelf['1']",
    "written at once": "file = os.open('a', os.O_WRONLY | os.O_CREAT | os.O_SYNC)\nos.write(file, b'x' * 3000000)",
    "nothing": "",
}


def with_its_log(bench, source):
    program = bench.program("import os, sys\nos.chdir(os.environ['LAB_HOME'])\n" + source)
    process = program.ask("start", calls=True, writes=True)
    assert process.code == 0, process.stderr
    return process, {path: content for path, content in home_of(program).items() if not path.endswith("-shm")}


@pytest.mark.parametrize("name", WRITERS)
def test_what_was_noted_of_a_run_makes_its_home_again_byte_for_byte(bench, watched, name):
    process, home = with_its_log(bench, WRITERS[name])
    assert [entry for entry in log_of(process) if entry[0] == "unknown"] == []
    assert {path: content for path, content in content_of(process).items() if not path.endswith("-shm")} == home


@pytest.mark.parametrize("source, says", [
    ("import mmap\nfile = open('a', 'w+b')\nfile.write(b'x' * 10)\nfile.flush()\nview = mmap.mmap(file.fileno(), 0)\nview[0:1] = b'y'", None),
    ("import mmap\nfile = open('a', 'w+b')\nfile.write(b'x' * 10)\nfile.flush()\nview = mmap.mmap(file.fileno(), 0)\nview[0:1] = b'y'\nview.flush()", "msync"),
    ("open(os.environ['TMPDIR'] + '/a', 'w').write('x')\nos.rename(os.environ['TMPDIR'] + '/a', 'a')", "a rename into LAB_HOME or out of it"),
    ("r, w = os.pipe()\nos.write(w, b'x')\nfile = os.open('a', os.O_WRONLY | os.O_CREAT)\nos.splice(r, file, 1)", "splice")], ids=["memory", "msync", "from outside", "splice"])
def test_what_cannot_be_followed_is_never_taken_for_followed(bench, watched, source, says):
    process, home = with_its_log(bench, source)
    assert ("unknown", says) in log_of(process) if says else content_of(process) != home


def test_words_and_requests_and_syncs_stand_among_the_writes_in_their_order(bench, watched):
    process, _ = with_its_log(bench, """
import socket
print("one", flush=True)
file = open("a", "w")
file.write("x")
file.flush()
os.fsync(file.fileno())
door = socket.socket(socket.AF_UNIX)
door.connect(os.environ["OUTSIDE"].removeprefix("unix:"))
door.sendall(b"GET")
os.rename("a", "b")
os.fdatasync(file.fileno())
os.fsync(os.open(".", os.O_RDONLY))
print("to nobody", file=sys.stderr)
os.write(1, b"two")
""")
    assert log_of(process) == [("say",), ("create", "a"), ("empty", "a"), ("write", "a", 0, b"x"), ("sync", "a"), ("send",), ("rename", "a", "b"), ("sync", "b"),
                               ("sync", "."), ("say",)]
    times = [at for at, *_ in process.report["writes"]]
    assert times == sorted(times) and process.begun <= times[0] <= process.ended


# ---- power cuts: what may be left


A, OLD = [("create", "a"), ("write", "a", 0, b"xy")], [("create", "a"), ("write", "a", 0, b"old"), ("sync", "a"), ("sync", ".")]
TEMP = [*OLD, ("create", "t"), ("write", "t", 0, b"new")]
MOVED = [("mkdir", "p"), ("mkdir", "q"), ("create", "p/x"), ("write", "p/x", 0, b"1"), ("syncall",), ("rename", "p/x", "q/x")]
LEFT = {   # what was done → all that may be left, as dicts
    "nothing": ([], [{}]),
    "a file made": ([("create", "a")], [{}, {"a": b""}]),
    "a file written": (A, [{}, {"a": b""}, {"a": b"x"}, {"a": b"xy"}]),
    "a file synced, but not its name": ([*A, ("sync", "a")], [{}, {"a": b"xy"}]),
    "a name synced, but not the file": ([*A, ("sync", ".")], [{"a": b""}, {"a": b"x"}, {"a": b"xy"}]),
    "both synced": ([*A, ("sync", "a"), ("sync", ".")], [{"a": b"xy"}]),
    "all synced": ([*A, ("syncall",)], [{"a": b"xy"}]),
    "another file synced": ([*A, ("create", "b"), ("sync", "b"), ("sync", "gone")], [{}, {"a": b"xy", "b": b""}, {"a": b"xy"}, {"b": b""}, {"a": b"", "b": b""}, {"a": b""}, {"a": b"x", "b": b""}]),
    "written in place": ([*OLD, ("empty", "a"), ("write", "a", 0, b"newer")], [{"a": b"old"}, {"a": b""}, {"a": b"ne"}, {"a": b"newer"}]),
    "written in place and synced": ([*OLD, ("empty", "a"), ("write", "a", 0, b"newer"), ("sync", "a")], [{"a": b"newer"}]),
    "written over": ([*OLD, ("write", "a", 1, b"ew er")], [{"a": b"old"}, {"a": b"oew"}, {"a": b"oew er"}]),
    "two writes": ([*OLD, ("write", "a", 3, b"A"), ("write", "a", 4, b"B")], [{"a": b"old"}, {"a": b"oldA"}, {"a": b"old\0B"}, {"a": b"oldAB"}]),
    "appended twice": ([*OLD, ("write", "a", None, b"1\n"), ("write", "a", None, b"2\n")],
                       [{"a": b"old"}, {"a": b"old1\n"}, {"a": b"old1\n2\n"}, {"a": b"old2\n"}, {"a": b"old12\n"}, {"a": b"old1\n2"}]),
    "cut": ([*OLD, ("cut", "a", 1)], [{"a": b"old"}, {"a": b"o"}]),
    "cut longer": ([*OLD, ("cut", "a", 5)], [{"a": b"old"}, {"a": b"old\0\0"}]),
    "extended": ([*OLD, ("extend", "a", 4), ("sync", "a"), ("extend", "a", 2)], [{"a": b"old\0"}]),
    "temp and rename": ([*TEMP, ("rename", "t", "a")], [{"a": b"old"}, {"a": b"old", "t": b""}, {"a": b"old", "t": b"new"}, {"a": b""}, {"a": b"n"}, {"a": b"new"}]),
    "temp, sync and rename": ([*TEMP, ("sync", "t"), ("rename", "t", "a")], [{"a": b"old"}, {"a": b"old", "t": b"new"}, {"a": b"new"}]),
    "temp, rename and sync of the folder": ([*TEMP, ("rename", "t", "a"), ("sync", ".")], [{"a": b""}, {"a": b"n"}, {"a": b"new"}]),
    "temp, sync, rename and sync of the folder": ([*TEMP, ("sync", "t"), ("rename", "t", "a"), ("sync", ".")], [{"a": b"new"}]),
    "temp and rename twice": ([*TEMP, ("sync", "t"), ("rename", "t", "a"), ("create", "t"), ("write", "t", 0, b"3"), ("sync", "t"), ("rename", "t", "a")],
                              [{"a": b"old"}, {"a": b"old", "t": b"new"}, {"a": b"new"}, {"a": b"new", "t": b"3"}, {"a": b"3"}]),
    "renamed into another folder": (MOVED, [{"p": None, "q": None, "p/x": b"1"}, {"p": None, "q": None, "q/x": b"1"}]),
    "renamed into another folder that is synced": ([*MOVED, ("sync", "q")], [{"p": None, "q": None, "q/x": b"1"}]),
    "a folder renamed": ([*MOVED, ("syncall",), ("rename", "q", "r")], [{"p": None, "q": None, "q/x": b"1"}, {"p": None, "r": None, "r/x": b"1"}]),
    "a file in a new folder, both synced, but not the folder's name": (
        [("mkdir", "d"), ("create", "d/a"), ("write", "d/a", 0, b"x"), ("sync", "d/a"), ("sync", "d")], [{}, {"d": None, "d/a": b"x"}]),
    "a file in a new folder, all synced": (
        [("mkdir", "d"), ("create", "d/a"), ("write", "d/a", 0, b"x"), ("sync", "d/a"), ("sync", "d"), ("sync", ".")], [{"d": None, "d/a": b"x"}]),
    "a file in a folder that is not there": ([("create", "d/a"), ("sync", "d/a")], [{}]),
    "a file in a folder that was removed": ([("mkdir", "d"), ("create", "d/a"), ("syncall",), ("unlink", "d/a"), ("rmdir", "d")], [{"d": None, "d/a": b""}, {"d": None}, {}]),
    "a link made": ([("symlink", "l", "x")], [{}, {"l": ("x",)}]),
    "a link replaced": ([("symlink", "l", "x"), ("sync", "."), ("symlink", "t", "y"), ("rename", "t", "l")], [{"l": ("x",)}, {"l": ("x",), "t": ("y",)}, {"l": ("y",)}]),
    "a second name": ([*OLD, ("link", "a", "b")], [{"a": b"old"}, {"a": b"old", "b": b"old"}]),
    "a second name, the first removed": ([*OLD, ("link", "a", "b"), ("unlink", "a")], [{"a": b"old"}, {"a": b"old", "b": b"old"}, {"b": b"old"}, {}]),
    "written by its second name": ([*OLD, ("link", "a", "b"), ("sync", "."), ("write", "b", 0, b"X"), ("sync", "a")], [{"a": b"Xld", "b": b"Xld"}]),
    "removed": ([*OLD, ("unlink", "a")], [{"a": b"old"}, {}]),
    "removed, and the folder synced": ([*OLD, ("unlink", "a"), ("sync", ".")], [{}]),
    "removed, and the file synced": ([*OLD, ("unlink", "a"), ("sync", "a")], [{"a": b"old"}, {}]),
    "removed and made anew": ([*OLD, ("unlink", "a"), ("create", "a"), ("write", "a", 0, b"+")], [{"a": b"old"}, {}, {"a": b""}, {"a": b"+"}]),
    "removed and written": ([*OLD, ("unlink", "a"), ("write", "a", 0, b"x")], [{"a": b"old"}, {}]),
    "made that was there": ([*OLD, ("create", "a")], [{"a": b"old"}]),
}


@pytest.mark.parametrize("name", LEFT)
def test_a_power_cut_leaves_what_it_may_and_nothing_else(name):
    log, expected = LEFT[name]
    disk = disk_after(log)
    found = [files for files, _ in disk.states()]
    assert {frozenset(files.items()) for files in found} == {frozenset(files.items()) for files in expected}
    assert [files for files, _ in disk.states()] == found, "to look at it changes nothing"
    disk.do("syncall")
    assert [files for files, _ in disk.states()] == found[:1], "the first is that in which all got there"


def test_what_a_power_cut_did_is_said_in_words():
    how = [how for _, how in disk_after([*TEMP, ("rename", "t", "a"), ("cut", "a", 1), ("unlink", "a"), ("empty", "x")]).states()]
    lost = "the name t, 3 bytes of a file that has no name any more, the renaming of t to a and 2 more had not been synced; only what was synced got there"
    assert how[:4] == ["everything got there", lost, "names got there, contents did not", "contents got there, names did not"]
    assert how[4] == "only the first 1 of 5 unsynced changes got there"
    assert how[8:] == ["all got there but this: the name t", "all got there but this: 3 bytes of a file that has no name any more",
                       "half got there of this: 3 bytes of a file that has no name any more", "all got there but this: the renaming of t to a",
                       "all got there but this: the new length of a file that has no name any more", "all got there but this: the removal of a"]


# ---- power cuts: the verdicts on ways to keep a record


JSON_SAVES = {
    "JSON in place": "open('r', 'w').write(text)",
    "JSON in place, synced": "with open('r', 'w') as file:\n        file.write(text)\n        file.flush()\n        os.fsync(file.fileno())",
    "temp, rename": "open('t', 'w').write(text)\n    os.rename('t', 'r')",
    "temp, sync, rename": "with open('t', 'w') as file:\n        file.write(text)\n        file.flush()\n        os.fsync(file.fileno())\n    os.rename('t', 'r')",
}
JSON_SAVES["temp, rename, sync of the folder"] = JSON_SAVES["temp, rename"] + "\n    os.fsync(os.open('.', os.O_RDONLY))"
JSON_SAVES["temp, sync, rename, sync of the folder"] = JSON_SAVES["temp, sync, rename"] + "\n    os.fsync(os.open('.', os.O_RDONLY))"
VERDICTS = {
    "JSON in place": "corrupt", "JSON in place, synced": "corrupt", "temp, rename": "corrupt", "temp, sync, rename": "lost",
    "temp, rename, sync of the folder": "corrupt", "temp, sync, rename, sync of the folder": "right",
    "DELETE, FULL": "lost", "DELETE, EXTRA": "right", "TRUNCATE, FULL": "right", "PERSIST, FULL": "right", "WAL, FULL": "right", "WAL, NORMAL": "lost",
    "DELETE, OFF": "corrupt"}


def saver(way):
    """A program that keeps the numbers 1 to 4, one after the other, and says each that it has kept; and how to read the last one back."""
    if way in JSON_SAVES:
        return ("import json\nfor number in range(1, 5):\n    text = json.dumps({'number': number, 'text': 'x' * 50})\n    "
                f"{JSON_SAVES[way]}\n    print(number, flush=True)\n"), number_in_json
    mode, sync = way.split(", ")
    return (f"import sqlite3\ndb = sqlite3.connect('r', isolation_level=None)\ndb.execute('pragma journal_mode={mode}'), db.execute('pragma synchronous={sync}')\n"
            "db.execute('create table t (number, text)')\nfor number in range(1, 5):\n"
            "    db.execute('insert into t values (?, ?)', (number, 'x' * 3000))\n    print(number, flush=True)\n"), number_in_database


def number_in_json(folder):
    path = folder / "r"
    return json.loads(path.read_bytes())["number"] if path.exists() else 0


def number_in_database(folder):
    if not (folder / "r").exists():
        return 0
    with closing(sqlite3.connect(folder / "r")) as db:
        if db.execute("pragma integrity_check").fetchall() != [("ok",)]:
            raise ValueError("no integrity")
        return db.execute("select max(number) from t").fetchone()[0] if db.execute("select 1 from sqlite_master").fetchone() else 0


def verdict(log, folder, read):
    """The worst that a power cut at any moment of the run does to what had been said, and how: `right`, `lost` or `corrupt`."""
    found, disk, said, seen = {}, Disk(), 0, set()
    for entry in [*log, ("the end",)]:
        for files, how in disk.states():
            if (state := (said, frozenset(files.items()))) not in seen:
                seen.add(state)
                place = folder / f"{len(seen)}"
                place.mkdir()
                for path, content in files.items():
                    (place / path).write_bytes(content)
                try:
                    kept = read(place) or 0
                except (ValueError, KeyError, sqlite3.Error) as error:
                    found.setdefault("corrupt" if said else "right", (how, files, error))
                else:
                    found.setdefault("lost" if kept < said else "right", (how, files, kept, said))
                shutil.rmtree(place)
        disk.do(*entry)
        said += entry[0] == "say"
    return next((what, found[what]) for what in ("corrupt", "lost", "right") if what in found)


@pytest.mark.parametrize("way", VERDICTS)
def test_the_known_verdict_on_a_way_to_keep_a_record(bench, watched, way):
    source, read = saver(way)
    process, home = with_its_log(bench, source)
    assert process.stdout.split() == ["1", "2", "3", "4"]
    (place := bench.folder / "states").mkdir()
    found, why = verdict(log_of(process), place, read)
    assert found == VERDICTS[way], why
