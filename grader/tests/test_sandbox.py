"""What a program in the sandbox can see and do, tried from inside; each level keeps what it promises."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from grader.isolation import LADDER
from labs.harness import confine, kept, withheld
from labs.harness.kept import Cell, ForkServer, Kept
from labs.harness.processes import ProgramFault
from labs.harness.sandbox import NoSandbox, sandbox
from labs.harness.scratch import scratch
from labs.harness.staging import KIT

VIEW, LANDLOCKED, BARE, NOTHING = LADDER
needs_scope = pytest.mark.skipif(confine.abi() < 6, reason="this kernel's Landlock does not keep signals in")


class Ward:
    """A sandbox with one home, in which Python texts are run one after the other."""

    def __init__(self, rung, folder):
        level, _, how = rung.partition("/")
        self.sandbox, self.home, self.place, self.socket = sandbox(level, how, str(folder)), folder / "home", folder / "place", folder / "socket"
        self.sandbox.open(folder)
        for path in (folder / "staged", self.home, self.place):
            path.mkdir()
            self.sandbox.give(path)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.socket))
        self.listener.listen()
        self.sandbox.give(self.socket)
        self.cell = Cell(self.sandbox, folder, self.socket)
        self.forks = ForkServer(folder / "staged", cell=self.cell)

    def begin(self, text):
        """Start a text; returns the Kept."""
        environment = {"PATH": os.environ["PATH"], "LAB_HOME": str(self.home), "SOCKET": str(self.socket), "KIT": str(KIT)}
        return Kept(self.forks, {"command": [sys.executable, "-c", textwrap.dedent(text)], "arguments": [], "folder": str(self.place),
                                 "environment": environment, "confined": self.cell.confined(self.home, self.place)})

    def run(self, text):
        """Run a text to its end: what it printed as JSON, its report, and the rest."""
        started, said = self.begin(text), {}
        started.stdin.close()
        readers = [threading.Thread(target=lambda name=name: said.update({name: getattr(started, name).read().decode(errors="replace")}))
                   for name in ("stdout", "stderr")]
        for reader in readers:
            reader.start()
        code = started.wait()
        for reader in readers:
            reader.join()
        started.stdout.close()
        started.stderr.close()
        assert not started.report["trouble"], started.report["trouble"]
        return SimpleNamespace(code=code, report=started.report, errors=said["stderr"],
                               said=json.loads(said["stdout"]) if said["stdout"].strip() else None)

    def close(self):
        self.forks.close()
        self.listener.close()


@pytest.fixture(scope="module")
def wards():
    """`wards(rung)`: the Ward of that rung, one for all tests of this module. Where it cannot be had the test is skipped."""
    with scratch() as folder:
        made = {}

        def ward(rung):
            if rung not in made:
                (folder / str(len(made))).mkdir()
                try:
                    made[rung] = Ward(rung, folder / str(len(made)))
                except NoSandbox as error:
                    pytest.skip(str(error))
            return made[rung]
        folder.chmod(0o711)
        yield ward
        for found in made.values():
            found.close()


@pytest.fixture
def view(wards):
    return wards(VIEW)


SEARCH = """
import json, os
found = []
kit = os.environ["KIT"]
for top in ("/", os.path.dirname(os.environ["LAB_HOME"]), kit, kit + "/labs", kit + "/labs/01/hidden"):
    for folder, folders, files in os.walk(top):
        folders[:] = [name for name in folders if folder + name not in ("/proc", "/usr", "/sys") and name not in ("lib", "site-packages")]
        found += [os.path.join(folder, name) for name in files if name == "lab.toml" or name.startswith("test_killed")]
for number in os.listdir("/proc"):
    for way in ("root", "cwd"):
        try:
            found += [path for path in (f"/proc/{number}/{way}{os.environ['KIT']}/labs/01/lab.toml",) if open(path).read()]
        except OSError:
            pass
print(json.dumps(found))
"""


@pytest.mark.parametrize("rung", [VIEW, LANDLOCKED])
def test_it_finds_nothing_of_the_kit_but_the_harness(wards, rung):
    assert wards(rung).run(SEARCH).said == []


def test_landlock_alone_opens_no_hidden_check_to_it(wards):
    assert wards(BARE).run("""
        import json, os
        opened = []
        for folder, _, files in os.walk(os.environ["KIT"]):
            opened += files
        for path in ("labs/01/lab.toml", "labs/02/hidden/test_keys.py", "README.md"):
            try:
                opened.append(open(os.path.join(os.environ["KIT"], path)).read())
            except PermissionError:
                pass
        print(json.dumps(opened))
        """).said == []


MARK = f"mark-of-{os.getpid()}"
WRITE_EVERYWHERE = f"MARK = {MARK!r}" + """
import json, os
written = []
places = {"/dev", "/killproof/labs", "/usr/local/lib", "/var/tmp", "/dev/shm", "/dev/mqueue", os.environ["LAB_HOME"], os.getcwd(),
          os.path.dirname(os.environ["LAB_HOME"]),
          *(line.split()[1] for line in open("/proc/self/mounts")), "/", "/tmp", "/run", "/var", "/etc", "/root", "/killproof", os.environ["KIT"],
          os.path.dirname(os.environ["LAB_HOME"]) + "/staged", os.path.dirname(os.path.dirname(os.environ["LAB_HOME"]))}
for place in places:
    try:
        with open(os.path.join(place, MARK), "x") as file:
            file.write("it was here")
        written.append(place)
    except OSError:
        pass
print(json.dumps(written))
"""


@pytest.mark.parametrize("rung", [VIEW, LANDLOCKED, BARE])
def test_what_it_writes_outside_home_and_place_does_not_last(wards, rung):
    ward = wards(rung)
    first = ward.run(WRITE_EVERYWHERE).said
    assert {str(ward.home), str(ward.place)} <= set(first)
    # `x` makes a file, and fails where there is one: what lasted is not written again.
    assert set(first) - set(ward.run(WRITE_EVERYWHERE).said) == {str(ward.home), str(ward.place)}
    marks = [path for base in ("/", "/tmp", "/var/tmp", "/dev/shm", "/dev") for path in Path(base).glob(MARK)]
    assert not marks, "it wrote on the machine itself"


def test_what_it_puts_into_its_shared_memory_is_gone_at_the_next_start(view):
    look = "import json, os; print(json.dumps(sorted({name for place in ('/tmp', '/var/tmp', '/dev/shm') for name in os.listdir(place)})))"
    before = view.run(look).said
    assert view.run("open('/tmp/kept', 'w'); open('/dev/shm/kept', 'w'); open('/var/tmp/kept', 'w')").code == 0
    assert view.run(look).said == before


@pytest.mark.skipif(not withheld.KNOWN, reason="not for this processor")
@pytest.mark.parametrize("rung", [VIEW, LANDLOCKED, BARE])
def test_it_keeps_nothing_in_the_kernel(wards, rung):
    assert wards(rung).run("""
        import ctypes, json, platform
        libc = ctypes.CDLL(None, use_errno=True)
        add_key, keyctl = {"x86_64": (248, 250), "aarch64": (217, 219)}[platform.machine()]
        print(json.dumps([libc.shmget(7, 4096, 0o1600), libc.semget(7, 1, 0o1600), libc.msgget(7, 0o1600), libc.mq_open(b"/kept", 0o102, 0o600, None),
                          libc.syscall(add_key, b"user", b"kept", b"x", 1, -4), libc.syscall(keyctl, 0, -3, 1)]))
        """).said == [-1] * 6


def test_the_outside_is_all_that_it_can_speak_with(view):
    def answer():
        connection, _ = view.listener.accept()
        with connection:
            connection.sendall(b"here")

    answering = threading.Thread(target=answer)
    answering.start()
    said = view.run("""
        import json, os, socket
        said = {}
        with socket.socket(socket.AF_UNIX) as outside:
            outside.connect(os.environ["SOCKET"])
            said["outside"] = outside.recv(4).decode()
        for name, family, kind, address in [("itself", socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 8765)),
                                            ("network", socket.AF_INET, socket.SOCK_STREAM, ("1.1.1.1", 53)),
                                            ("datagram", socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 53))]:
            try:
                socket.socket(family, kind).connect(address)
                said[name] = "connected"
            except OSError as error:
                said[name] = error.strerror
        print(json.dumps(said))
        """).said
    answering.join()
    assert said == {"outside": "here", "itself": "Network is unreachable", "network": "Network is unreachable", "datagram": "Network is unreachable"}


SIBLING = """
import json, os, socket, sys
print("ready", flush=True)
listener = socket.socket(socket.AF_UNIX)
listener.bind("\\0killproof-sibling")
sys.stdin.read()
"""


@pytest.mark.parametrize("rung", [VIEW, pytest.param(LANDLOCKED, marks=needs_scope)])
def test_it_neither_sees_into_another_start_nor_speaks_with_it(wards, rung):
    ward = wards(rung)
    other = ward.begin(SIBLING)
    assert other.stdout.readline() == b"ready\n"
    try:
        said = ward.run("""
            import json, os, re, socket
            opened = []
            for number in os.listdir("/proc"):
                if number.isdigit() and int(number) != os.getpid():
                    for name in ("environ", "root/dev", "cwd/x", "fd/0", "mem", "maps"):
                        path = f"/proc/{number}/{name}"
                        try:
                            opened.append([path, os.listdir(path) if name == "root/dev" else len(open(path, "rb").read(1))])
                        except FileNotFoundError:
                            opened.append([path, "not there"]) if name == "cwd/x" else None
                        except OSError:
                            pass
            try:
                socket.socket(socket.AF_UNIX).connect("\\0killproof-sibling")
                opened.append("socket")
            except OSError:
                pass
            print(json.dumps(opened))
            """).said
    finally:
        other.stdin.close()
        other.wait()
        other.stdout.close()
        other.stderr.close()
    assert said == []


@needs_scope
@pytest.mark.parametrize("rung", [VIEW, LANDLOCKED])
def test_it_cannot_end_stop_or_starve_its_keeper(wards, rung):
    assert wards(rung).run("""
        import ctypes, json, os, resource, signal
        done, libc = [], ctypes.CDLL(None)
        for pid in (os.getppid(), 1, 2, 3):
            for name, act in [("kill", lambda: os.kill(pid, signal.SIGKILL)), ("stop", lambda: os.kill(pid, signal.SIGSTOP)),
                              ("starve", lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE, (0, 0))),
                              ("slow", lambda: os.setpriority(os.PRIO_PROCESS, pid, 19)), ("bind", lambda: os.sched_setaffinity(pid, {0}))]:
                try:
                    act()
                    done.append([name, pid])
                except OSError:
                    pass
            if libc.ptrace(16, pid, None, None) == 0:
                done.append(["trace", pid])
        print(json.dumps(done))
        """).said == []


def test_it_mounts_nothing_even_in_namespaces_of_its_own(view):
    assert view.run("""
        import ctypes, json
        libc = ctypes.CDLL(None)
        libc.unshare(0x10000000 | 0x20000)
        print(json.dumps([libc.mount(b"tmpfs", b"/tmp", b"tmpfs", 0, None), libc.umount2(b"/dev/shm", 2),
                          libc.mount(None, b"/", None, 32 | 4096, None)]))
        """).said == [-1, -1, -1]


def test_python_may_be_in_a_folder_that_the_view_hides(wards):
    wards(VIEW)   # or skip
    place = Path(tempfile.mkdtemp(dir="/tmp"))
    try:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--symlinks", place / "venv"], check=True)
        done = subprocess.run([place / "venv" / "bin" / "python", "-c", textwrap.dedent(f"""
            import sys
            sys.path[:0] = {[str(KIT), *sys.path]!r}
            from grader.tests.test_sandbox import Ward
            from labs.harness.scratch import scratch
            with scratch() as folder:
                ward = Ward({VIEW!r}, folder)
                print(ward.run("import sys; print(repr(sys.prefix).replace(chr(39), chr(34)))").said)
                ward.close()
            """)], capture_output=True, text=True)
        assert done.stdout.strip() == str(place / "venv"), done.stderr
    finally:
        shutil.rmtree(place)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give it another user")
def test_as_root_it_is_a_user_that_nobody_else_is(wards):
    ward, users = wards(VIEW), []
    started = ward.begin("import json, os, sys; print(json.dumps(os.getresuid()), flush=True); sys.stdin.read()")
    users += [json.loads(started.stdout.readline()), list(psutil.Process(started.pid).uids())]
    started.stdin.close()
    started.wait()
    started.stdout.close()
    started.stderr.close()
    assert users == [[ward.sandbox.user] * 3] * 2 and ward.sandbox.user >= 0x40000000
    assert sandbox("bubblewrap", name="another").user != ward.sandbox.user


# ---- limits

def test_it_has_64_processes_and_no_more(view):
    found = view.run("""
        import json, os, signal
        born = []
        try:
            while len(born) < 200:
                pid = os.fork()
                if pid == 0:
                    signal.pause()
                born.append(pid)
        except OSError as error:
            print(json.dumps(len(born)), flush=True)
        os.kill(0, signal.SIGKILL)
        """)
    assert found.said == 63, "itself is one"


@pytest.mark.parametrize("rung", LADDER)
def test_a_file_ends_at_64_mib(wards, rung):
    assert wards(rung).run("""
        import errno, json, os
        written = 0
        try:
            with open("large", "wb", buffering=0) as file:
                while True:
                    written += file.write(bytes(1 << 20))
        except OSError as error:
            print(json.dumps([written >> 20, errno.errorcode[error.errno]]))
        os.remove("large")
        """).said == [64, "EFBIG"]


FILL = "kept = []\ndef fill(descriptor, megabytes=60):\n    for _ in range(megabytes): os.write(descriptor, bytes(1 << 20))\n    kept.append(descriptor)\n"
MUCH = {
    "files in LAB_HOME": "for n in range(6): fill(os.open(f\"{home}/f{n}\", os.O_CREAT | os.O_WRONLY))",
    "files in its place": "for n in range(6): fill(os.open(f\"f{n}\", os.O_CREAT | os.O_WRONLY))",
    "files without a name": "for n in range(6):\n    fill(os.open(f\"{home}/f\", os.O_CREAT | os.O_WRONLY)); os.unlink(f\"{home}/f\")",
    "memory that looks like a file": "for n in range(6): fill(os.memfd_create('x'))",
    "a folder closed to its keeper": "os.mkdir(f\"{home}/closed\")\nfill(os.open(f\"{home}/closed/f\", os.O_CREAT | os.O_WRONLY), 1)\n"
                                     "os.chmod(f\"{home}/closed\", 0)",
    "empty files": "for n in range(70000): os.close(os.open(f\"{home}/{n}\", os.O_CREAT))",
}


@contextmanager
def emptied(ward):
    """At the end nothing is left in the home and the place of a ward."""
    try:
        yield
    finally:
        for folder in (ward.home, ward.place):
            subprocess.run(["sh", "-c", 'chmod -R u+rwx "$0"; find "$0" -mindepth 1 -delete', folder], check=True)


@pytest.mark.parametrize("rung, what", [*((VIEW, what) for what in MUCH), (BARE, "files in its place"), (NOTHING, "files in LAB_HOME")])
def test_too_many_files_end_it(wards, rung, what):
    if what == "a folder closed to its keeper" and os.geteuid() == 0 and wards(rung).sandbox.user is None:
        pytest.skip("nothing is closed to root")
    ward = wards(rung)
    with emptied(ward):
        found = ward.run(f"import os, signal\nhome = os.environ['LAB_HOME']\n{FILL}{MUCH[what]}\nsignal.pause()")
        assert (found.code, found.report["excess"]) == (-9, "files"), found.errors


def test_what_it_left_counts_however_soon_it_ended(view):
    if os.geteuid() == 0 and view.sandbox.user is None:
        pytest.skip("nothing is closed to root")
    with emptied(view):
        found = view.run(f"import os\nhome = os.environ['LAB_HOME']\n{FILL}{MUCH['a folder closed to its keeper']}")
        assert (found.code, found.report["excess"]) == (-9, "files"), found.errors
    assert view.run("").report["excess"] is None


@pytest.mark.parametrize("rung", LADDER)
@pytest.mark.parametrize("kind", ["MAP_PRIVATE", "MAP_SHARED"])
def test_memory_over_1_gib_ends_it(wards, rung, kind):
    found = wards(rung).run(f"""
        import mmap, signal
        kept = []
        for _ in range(20):
            kept.append(mmap.mmap(-1, 64 << 20, flags=mmap.{kind} | mmap.MAP_ANONYMOUS))
            for page in range(0, 64 << 20, mmap.PAGESIZE):
                kept[-1][page] = 1
        signal.pause()
        """)
    assert (found.code, found.report["excess"]) == (-9, "memory"), found.errors


@pytest.mark.parametrize("rung", LADDER)
def test_a_daemon_ends_with_the_start_that_left_it(wards, rung):
    found = wards(rung).run("""
        import os, signal, sys
        if os.fork() == 0:
            os.setsid()
            if os.fork():
                os._exit(0)
            for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
                signal.signal(number, signal.SIG_IGN)
            while True:
                signal.pause()   # with the standard output in hand: who reads it to the end waits for this one too
        os.wait()
        """)
    assert found.code == 0 and len(found.report["outlived"]) == 1


@pytest.mark.parametrize("rung", LADDER)
def test_those_that_end_before_the_program_do_not_use_up_its_processes(wards, rung):
    # A chain of orphans, each of which forks the next and ends: where they stay unburied, it is the limit that ends it, sooner or later as the machine is busy.
    generations = 3 * confine.PROCESSES
    found = wards(rung).run(f"""
        import json, os, signal
        counted, count = os.pipe()
        if os.fork() == 0:
            os.setsid()
            for _ in range({generations}):
                os.write(count, b".")
                if os.fork():
                    os._exit(0)
            os.close(count)
            signal.pause()
        os.close(count)
        with open(counted, "rb") as counted:
            print(json.dumps(len(counted.read())), flush=True)
        """)
    assert (found.code, found.said, len(found.report["outlived"])) == (0, generations, 1), found.errors


@pytest.mark.parametrize("rung", LADDER)
def test_nothing_of_it_stays_when_the_harness_is_killed(wards, rung):
    wards(rung)   # or skip
    script = f"""
        import sys
        sys.path.insert(0, {str(KIT)!r})
        from grader.tests.test_sandbox import Ward
        from labs.harness.scratch import scratch
        with scratch() as folder:
            (folder / "ward").mkdir()
            folder.chmod(0o711)
            ward = Ward({rung!r}, folder / "ward")
            started = ward.begin('''if True:
                import os, signal
                if os.fork() == 0:
                    os.setsid()
                    print(os.environ["LAB_HOME"], flush=True)
                signal.pause()
                ''')
            print(started.stdout.readline().decode().strip(), flush=True)
            sys.stdin.read()
        """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as harness:
        home = Path(harness.stdout.readline().decode().strip())
        mine = psutil.Process(harness.pid).children(recursive=True)
        assert len(mine) >= 4, mine   # the fork server, its keeper, the program and its child
        harness.kill()
    _, alive = psutil.wait_procs(mine, timeout=20)
    assert not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]
    assert str(home) not in Path("/proc/self/mounts").read_text()
    with scratch():   # the next session removes what was left
        assert not home.exists()


@pytest.fixture
def hasty(monkeypatch):
    monkeypatch.setattr(kept, "PATIENCE", 1.0)


def stopped_by_a_program(ward, whose):
    """A start, and SIGSTOP for its keeper or the fork server: what a program may send where Landlock does not keep signals in."""
    started = ward.begin("import signal; print('here', flush=True); signal.pause()")
    assert started.stdout.readline() == b"here\n"
    keeper = psutil.Process(started.pid).parent()
    (keeper if whose == "keeper" else keeper.parent()).suspend()
    started.stdin.close()
    return started


@pytest.mark.parametrize("rung", [VIEW, NOTHING])
def test_a_keeper_that_is_stopped_costs_the_program_its_check_and_nobody_the_time(hasty, rung):
    with scratch() as folder:
        (folder / "ward").mkdir()
        folder.chmod(0o711)
        ward = Ward(rung, folder / "ward")
        started = stopped_by_a_program(ward, "keeper")
        program = psutil.Process(started.pid)
        started.signal(signal.SIGKILL)
        assert started.wait() == -signal.SIGKILL
        assert "stopped, a process that watches it" in started.fault and ward.forks.broken
        processes = [program, *psutil.Process(ward.forks.pid).children(recursive=True)]
        started.stdout.close()
        started.stderr.close()
        ward.close()
        _, alive = psutil.wait_procs(processes, timeout=20)
        assert not alive


def test_a_fork_server_that_is_stopped_is_replaced(hasty):
    with scratch() as folder:
        (folder / "ward").mkdir()
        folder.chmod(0o711)
        ward = Ward(VIEW, folder / "ward")
        started = stopped_by_a_program(ward, "server")
        with pytest.raises(ProgramFault, match="stopped, a process that watches it"):
            ward.begin("pass")
        assert ward.forks.broken
        started.signal(signal.SIGKILL)
        started.wait()
        started.stdout.close()
        started.stderr.close()
        ward.close()
        assert not psutil.pid_exists(ward.forks.pid)


# ---- what is said of it

def test_what_a_level_lacks_is_said():
    def lacks(rung):
        level, _, how = rung.partition("/")
        return " ".join(sandbox(level, how).lacks)
    assert lacks(VIEW).startswith("" if os.geteuid() == 0 else "the limit on processes counts") and bool(lacks(VIEW)) == bool(os.geteuid())
    for rung, words in [(LANDLOCKED, "times and modes"), (BARE, "sees the machine's processes"), (NOTHING, "hidden checks")]:
        try:
            assert words in lacks(rung)
        except NoSandbox:
            continue
