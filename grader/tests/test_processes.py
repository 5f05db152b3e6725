"""Programs as processes: what reaches them, what is taken from them, how they die, and that nothing of them is left."""

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from labs.harness import descendants
from labs.harness import scratch as scratch_module
from labs.harness.descendants import survivors
from labs.harness.kills.boundary import BOUNDARIES, IDS, held_at, killed_at
from labs.harness.outside import Fault, Outside
from labs.harness.processes import OUTPUT_LIMIT, Late, ProgramFault
from labs.harness.program import Program
from labs.harness.scratch import remove, scratch
from labs.harness.side_by_side import on_fresh_programs
from labs.harness.staging import KIT, NoProgram, stage
from labs.harness.story import tell
from labs.harness.tickets import make_ticket

PATIENCE = 20  # seconds after which a wait for something that must happen is a failure
CONTRACT = {"LAB_HOME", "OUTSIDE", "OUTSIDE_KEY", "LAB_TIMEOUT", "LAB_RETRY_DELAY"}
FOREVER = "import signal; signal.pause()"


class Bench:
    """Where the programs of this module run: one outside, one folder."""

    def __init__(self, folder, server):
        self.folder, self.server, self.made = folder, server, []

    def program(self, source, command=f"{sys.executable} -S main", **options):
        """A Program of one file, `main`, which is Python unless the command line says otherwise."""
        place = self.folder / f"{len(self.made)}"
        (place / "written").mkdir(parents=True)
        (place / "written" / "main").write_text(source)
        return self.of(stage(place / "written", place / "staged", command), **options)

    def shell(self, source, **options):
        return self.program(source, "/bin/sh main", **options)

    def of(self, staged, **options):
        self.made.append(Program(staged, self.folder / f"{len(self.made)}" / "runs", self.server, self.server.open_account(), **options))
        return self.made[-1]


@pytest.fixture(scope="module")
def session():
    descendants.adopt_orphans()
    with scratch() as folder, Outside(folder / "s", seed=11) as server:
        yield folder, server


@pytest.fixture
def bench(session, request):
    folder, server = session
    place = folder / f"bench-{len(list(folder.iterdir()))}"
    place.mkdir()
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    yield (bench := Bench(place, server))
    for program in bench.made:
        program.discard()
    assert survivors(before) == [] and server.errors == []
    assert list(place.glob("*/runs")) == []
    remove(place)
    assert not place.exists()


def gone(pid):
    """Whether no process has this pid, not even a dead one that nobody has buried."""
    return not psutil.pid_exists(pid)


# ---- what reaches a program


def test_the_environment_of_a_program_is_the_contract_and_little_else(bench, monkeypatch):
    for name in ("PYTHONPATH", "PYTHONHOME", "LAB_SEED", "SECRET", "OUTSIDE_KEY", "LAB_HOME", "PYTEST_ADDOPTS"):
        monkeypatch.setenv(name, "/nowhere")
    program = bench.program("import json, os; print(json.dumps({'cwd': os.getcwd(), 'pid': os.getpid(), **os.environ}))",
                            timeout=2.5, retry_delay=0)
    process = program.ask("status", "r")
    seen = json.loads(process.stdout)
    own = Path(seen.pop("cwd")).parent
    assert seen.pop("pid") == process.pid
    assert set(seen) == CONTRACT | {"PATH", "HOME", "TMPDIR", "LANG", "TZ", "PYTHONDONTWRITEBYTECODE", "PYTHONFAULTHANDLER"}
    assert {name: seen[name] for name in CONTRACT} == {
        "LAB_HOME": str(program.home), "OUTSIDE": bench.server.address, "OUTSIDE_KEY": program.outside.key,
        "LAB_TIMEOUT": "2.5", "LAB_RETRY_DELAY": "0"}
    assert (seen["HOME"], seen["TMPDIR"]) == (str(own / "home"), str(own / "tmp"))
    assert seen["PATH"] == os.environ["PATH"]


def test_a_shell_script_is_a_program_too(bench):
    program = bench.shell('echo "$LAB_HOME $OUTSIDE $OUTSIDE_KEY $LAB_TIMEOUT $LAB_RETRY_DELAY"; echo "$#:$1:$2"; exit 3')
    process = program.ask("resume", "a b")
    assert process.line(1) == f"{program.home} {bench.server.address} {program.outside.key} 10 0"
    assert process.line(2) == "2:resume:a b"
    assert process.code == 3 and process.end == "ended with exit code 3"


def test_a_ticket_reaches_the_program_as_a_file_and_standard_input_as_it_is(bench):
    program = bench.shell('shift; for last; do :; done; [ -f "$last" ] && cat "$last"; cat')
    assert json.loads(program.start({"ticket_id": "ü"}).wait().stdout) == {"ticket_id": "ü"}
    assert program.ask("start", ticket=b"\xff no json").stdout == "\ufffd no json"
    assert program.ask("start", "-", stdin=b"one\ntwo").stdout == "one\ntwo"
    assert program.ask("start", "-").stdout == ""
    assert str(program.processes[0]) == "`start ticket.json`"


def test_home_temporary_files_and_working_directory_are_new_at_each_start_and_the_lab_home_stays(bench):
    program = bench.shell("""
        for place in "$LAB_HOME" "$HOME" "$TMPDIR" .; do
            if [ -e "$place/mark" ]; then echo kept; else echo new; fi
            echo x > "$place/mark"
        done
        cat other 2>/dev/null; echo changed > main; echo "more" > other
        ls -A "$HOME" "$TMPDIR" | grep -c mark; ls""")
    first, second = program.ask("a"), program.ask("a")
    assert first.stdout.split() == ["new"] * 4 + ["2", "main", "mark", "other"]
    assert second.stdout.split() == ["kept"] + ["new"] * 3 + ["2", "main", "mark", "other"]
    assert not second.stderr


def test_what_a_program_remembers_of_its_own_folders_is_gone_at_the_next_start(bench):
    program = bench.shell("""
        for place in home tmp work; do [ -e "$LAB_HOME/$place/mark" ] && echo "kept in $place"; rm -f "$LAB_HOME/$place"; done
        ln -s "$HOME" "$LAB_HOME/home"; ln -s "$TMPDIR" "$LAB_HOME/tmp"; ln -s "$PWD" "$LAB_HOME/work"
        for place in home tmp work; do echo x > "$LAB_HOME/$place/mark"; done
        echo up; read line""")
    first = program.begin("a", keep_stdin=True)
    assert first.line() == "up"
    second = program.ask("b")
    assert second.stdout.split("\n") == ["kept in home", "kept in tmp", "kept in work", "up", ""], "the first one still runs"
    places = first.folder, second.folder
    program.kill(first, second)
    assert program.ask("c").stdout == "up\n"
    assert not any((place / "tmp" / "mark").exists() for place in places)


def test_a_place_in_which_nothing_was_written_serves_again(bench):
    program = bench.shell('echo x > "$LAB_HOME/a"; echo "$HOME $(cat "$2")"')
    other = bench.of(program.staged)
    said = []
    for one in (program, other):
        for number in (1, 2):
            process = one.start({"ticket_id": number}).wait()
            program.kill(process)
            said.append(process.stdout)
        one.discard()
    home, *_ = said[0].split()
    assert said == [f'{home} {{"ticket_id": {number}}}\n' for number in (1, 2, 1, 2)]


# Each puts back what can be put back: the length, the time, the name.
@pytest.mark.parametrize("writes", [
    'touch -r main keep; echo "echo new > x" > ../other; cat ../other > main; touch -r keep main; rm keep ../other',
    'echo x > "$TMPDIR/x"', 'echo x > "$HOME/.x"', 'echo x > ../x', 'rm main', 'mv main x; cp -p x main; rm x', 'chmod 700 main', 'rm -r "$TMPDIR"',
    'rm -r "$TMPDIR"; ln -s "$LAB_HOME" "$TMPDIR"', 'ln main "$LAB_HOME/main"', 'mkdir ../ticket.json ../ticket.json/x', 'cd /; rm -r "${HOME%/home}"',
    'place=${HOME%/home}; cd /; rm -r "$place"; echo x > "$place"', 'mkdir closed; chmod 0 closed', 'rm -r "$HOME"; mkfifo "$HOME"'])
def test_a_place_in_which_anything_was_written_never_serves_again(bench, writes):
    program = bench.shell(f"[ $1 = write ] || exit 0\n{writes}\nexit 0")
    written = program.begin("write").wait()
    place = written.folder
    assert written.code == 0 and not written.stderr
    program.kill(written)
    clean = program.begin("look").wait()
    assert clean.folder != place and not os.path.lexists(place)
    assert sorted(path.relative_to(clean.folder).as_posix() for path in clean.folder.rglob("*")) == ["home", "program", "program/main", "tmp"]
    assert (clean.folder / "program" / "main").read_bytes() == (program.staged.folder / "main").read_bytes()


@pytest.mark.timeout(PATIENCE)
def test_places_are_taken_from_many_threads_and_no_two_have_the_same(bench):
    places, used, lock = bench.shell("").staged.places, set(), threading.Lock()

    def take_and_give_back(_):
        for _ in range(200):
            place = places.take()
            with lock:
                assert place not in used
                used.add(place)
            with lock:
                used.remove(place)
            places.give_back(place)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(take_and_give_back, range(8)))
    finally:
        sys.setswitchinterval(interval)


def test_nothing_of_a_program_is_left_once_it_is_discarded(bench):
    program = bench.shell('cat "$HOME/a" "$TMPDIR/a" a; echo x > "$LAB_HOME/a"; echo x > "$HOME/a"; echo x > "$TMPDIR/a"; echo x > a; echo up; '
                          '[ "$1" != stay ] || sleep 1000')
    process = program.begin("stay")
    assert process.line() == "up"
    assert program.discard() == [f"process {process.pid} (`stay`)"]
    assert gone(process.pid) and not program.home.exists()
    assert program.discard() == []
    assert bench.of(program.staged).ask("go").stdout == "up\n", "nor does another program of the same files find anything"


def test_folders_too_deep_to_walk_are_discarded_too(bench):
    program = bench.program("""
import os
for place in (os.environ["LAB_HOME"], os.environ["TMPDIR"]):
    os.chdir(place)
    print(len(os.listdir()))
    for _ in range(3000):
        os.makedirs("deep", exist_ok=True)
        os.chdir("deep")
""")
    first = program.begin("start").wait()
    place = first.folder
    assert (first.code, first.stdout) == (0, "0\n0\n")
    program.kill(first)
    second = program.ask("start")
    assert (second.code, second.stdout) == (0, "1\n0\n") and not place.exists()
    program.discard()
    assert not program.home.exists()


def test_a_chat_is_spoken_to_line_by_line(bench):
    program = bench.program("import sys\nfor line in sys.stdin: print('you said', line.strip(), flush=True)")
    process = program.chat("C-1")
    for number, word in enumerate(("one", "two", "three"), 1):
        process.write(f"{word}\n".encode())
        assert process.line(number) == f"you said {word}"
    process.close_stdin()
    assert process.wait().code == 0
    process.write(b"too late\n")


def test_a_program_that_does_not_read_its_input_keeps_nobody_waiting(bench):
    program = bench.program(FOREVER)
    process = program.begin("start", "-", stdin=b"x" * (1 << 20))
    with pytest.raises(ProgramFault, match="`start -` did not end within 0.1 seconds"):
        process.wait(0.1)
    program.kill(process)
    assert process.code == -signal.SIGKILL


# ---- what a program says


def test_a_line_is_waited_for_and_the_end_without_it_is_a_fault_that_says_so(bench):
    program = bench.shell("echo one; echo two; printf three; echo sorry >&2; exit 7")
    process = program.begin("start")
    assert (process.line(), process.line(2)) == ("one", "two")
    with pytest.raises(ProgramFault, match="`start`: it ended with exit code 7 and had printed 2 whole lines, not 3"):
        process.line(3)
    assert process.stdout == "one\ntwo\nthree" and process.last_words == "sorry" and process.complaint == "“sorry”"


def test_of_a_crash_the_place_in_the_programs_own_files_is_told(bench):
    program = bench.program("import json\n\ndef read(text):\n    return json.loads(text)\n\nread('{')")
    process = program.ask("start")
    assert process.last_words.startswith("json.decoder.JSONDecodeError") and process.complaint == f"“{process.last_words}” (main, line 4)"
    assert f"ended with exit code 1: {process.complaint}" in " ".join(" ".join(tell(program)).split())


def test_binary_output_is_read_as_text_with_holes(bench):
    program = bench.program("import os; os.write(1, b'\\x00\\xff\\xfe\\r\\n\\xc3(\\xe2\\x82\\n\\x1b[31m'); os.write(2, b'\\xff')")
    process = program.ask("start")
    assert process.line(1) == "\x00\ufffd\ufffd" and process.line(2) == "\ufffd(\ufffd"
    assert process.stdout.endswith("\x1b[31m") and process.stderr == "\ufffd"


def test_a_program_that_closes_its_output_and_goes_on_is_waited_for_to_the_end(bench):
    program = bench.program("import os, sys; os.close(1); os.close(2); sys.stdin.read(); os._exit(4)")
    process = program.begin("start", keep_stdin=True)
    with pytest.raises(ProgramFault, match="`start` did not print line 1 on stdout within 0.1 seconds"):
        process.line(deadline=0.1)
    assert process.running and process.end == "still runs"
    process.close_stdin()
    assert process.wait().code == 4


@pytest.mark.parametrize("ask, says", [
    (lambda program: program.status("r"), "`status r` should print one JSON object, it printed 'no json'"),
    (lambda program: program.memory("c"), "`memory c` should print one JSON object, it printed 'no json'"),
    (lambda program: program.runs(), "`runs` should print one JSON object, it printed 'no json'")])
def test_an_answer_that_is_no_json_is_a_fault_that_says_so(bench, ask, says):
    with pytest.raises(ProgramFault) as caught:
        ask(bench.shell("echo no json"))
    assert str(caught.value) == says


@pytest.mark.parametrize("text", ["[1]", "7", "", "{}{}", "NaN", "[" * 100_000], ids=lambda text: text[:8])
def test_an_answer_of_another_shape_is_a_fault_too(bench, text):
    with pytest.raises(ProgramFault, match="`status r` should print one JSON object"):
        bench.program(f"print({text!r})").status("r")


@pytest.mark.parametrize("ask", [lambda program: program.status("r"), lambda program: program.runs("done"),
                                 lambda program: program.memory("c")])
def test_a_question_that_is_not_answered_is_a_fault_that_names_the_exit_code(bench, ask):
    with pytest.raises(ProgramFault, match=r"`.*` ended with exit code 6, it should print the .*"):
        ask(bench.shell("echo '{}'; exit 6"))


def test_runs_are_read_one_a_line(bench):
    program = bench.shell('shift; echo "{\\"state\\": \\"$*\\"}"; echo; echo "{}"')
    assert program.runs() == [{"state": ""}, {}]
    assert program.runs("done") == [{"state": "--state done"}, {}]


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_program_that_says_too_much_is_ended_and_told_so(bench, stream):
    program = bench.program(f"import sys\nwhile True: sys.{stream}.write('x' * 5000)")
    process = program.begin("start", "-")
    with pytest.raises(ProgramFault, match="`start -` wrote more than 1 MiB of output and was ended"):
        process.wait()
    assert process.code == -signal.SIGKILL and not process.killed
    assert len(getattr(process, stream)) == OUTPUT_LIMIT
    with pytest.raises(ProgramFault, match="`start -`: it wrote more than 1 MiB of output and was ended and had printed 0"):
        process.line()
    with pytest.raises(ProgramFault, match="`start -` wrote more than 1 MiB of output and was ended; it should send a request"):
        program.until_held(process)


def test_a_program_may_say_as_much_as_it_may(bench):
    program = bench.program(f"print('x' * {OUTPUT_LIMIT - 1})")
    process = program.ask("start")
    assert process.code == 0 and len(process.stdout) == OUTPUT_LIMIT


def test_a_program_that_says_too_much_takes_its_children_with_it(bench):
    program = bench.shell("sleep 1000 & echo $!; while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done | cat; wait")
    process = program.begin("start")
    child = int(process.line())
    with pytest.raises(ProgramFault, match="wrote more than 1 MiB"):
        process.wait()
    process.kill()
    assert gone(child)


def test_a_program_that_hangs_is_named_with_its_deadline(bench):
    program = bench.program(f"print('r-1', flush=True)\n{FOREVER}")
    with pytest.raises(ProgramFault, match="`resume r-1` did not end within 0.1 seconds"):
        program.ask("resume", "r-1", deadline=0.1)
    process = program.begin("start")
    assert process.line() == "r-1"
    with pytest.raises(ProgramFault, match="`start` did not print line 2 on stdout within 0.1 seconds"):
        process.line(2, deadline=0.1)
    with pytest.raises(ProgramFault, match="`start` did not send a mail request within 0.1 seconds"):
        program.until(process, program.outside.held, "send a mail request", deadline=0.1)
    assert process.running


def test_a_program_that_ends_before_it_does_what_is_waited_for_is_a_fault_that_says_how(bench):
    program = bench.shell("exit 9")
    with pytest.raises(ProgramFault, match="`start ticket.json` ended with exit code 9; it should send a refund request"):
        killed_at(program, "refund", "before", lambda: program.start({}))
    program = bench.shell("kill -SEGV $$")
    with pytest.raises(ProgramFault, match="`start ticket.json` died of SIGSEGV; it should send 3 mail requests"):
        held_at(program, "mail", "after", lambda: program.start({}), nth=3)


# ---- how a program dies


FAMILY = """
    sh -c 'sleep 1000 & echo $!; sh -c "sleep 1000 & echo \\$!; wait" & wait' &
    echo $!
    wait"""


def test_a_kill_takes_children_and_grandchildren(bench):
    program = bench.shell(FAMILY)
    process = program.begin("start")
    family = [int(process.line(number)) for number in (1, 2, 3)]
    assert not any(gone(pid) for pid in family)
    program.kill(process)
    assert all(gone(pid) for pid in (process.pid, *family))
    assert process.code == -signal.SIGKILL and process.killed and process.end == "was killed"
    assert process.ended >= process.begun


@pytest.mark.parametrize("source", [
    f"import signal\nfor number in (1, 2, 3, 15): signal.signal(number, signal.SIG_IGN)\nprint('up', flush=True)\n{FOREVER}",
    f"import threading, signal\nfor _ in range(8): threading.Thread(target=signal.pause).start()\nprint('up', flush=True)\n{FOREVER}",
    "print('up', flush=True)\nwhile True: pass"], ids=["ignores signals", "threads", "busy"])
def test_no_program_can_dodge_a_kill(bench, source):
    program = bench.program(source)
    process = program.begin("start")
    assert process.line() == "up"
    program.kill(process)
    assert process.code == -signal.SIGKILL and gone(process.pid)


def test_a_program_that_ended_is_killed_in_vain(bench):
    program = bench.shell("exit 5")
    process = program.begin("start").wait()
    for _ in range(3):
        program.kill(process)
        assert process.code == 5 and not process.killed and process.end == "ended with exit code 5"
    assert gone(process.pid)


def test_a_program_that_ended_before_the_kill_struck_was_not_killed(bench):
    program = bench.shell("sleep 1000 & exit 5")
    process = program.begin("start")
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert process.running, "its child still holds its output"
    program.kill(process)
    assert process.code == 5 and not process.killed and process.end == "ended with exit code 5"


def test_a_killed_program_can_be_killed_again(bench):
    program = bench.program(FOREVER)
    process = program.begin("start")
    for _ in range(2):
        program.kill(process)
        assert process.code == -signal.SIGKILL and process.killed


def test_two_programs_are_killed_together(bench):
    program = bench.program(FOREVER)
    both = program.begin("start"), program.begin("resume", "r")
    program.kill(*both)
    assert [process.code for process in both] == [-signal.SIGKILL] * 2


def test_what_a_killed_program_said_is_kept(bench):
    program = bench.program(f"print('a\\n' * 20_000 + 'b', flush=True)\n{FOREVER}")
    process = program.begin("start")
    assert process.line(20_001) == "b"
    program.kill(process)
    assert process.stdout == "a\n" * 20_000 + "b\n"


# It says that it is up when it has no parent any more but the one that adopts it.
DAEMON = """
import os, signal
ready, go = os.pipe()
if os.fork() == 0:
    os.setsid()
    between = os.getpid()
    if {forks} == 1 or os.fork() == 0:
        while {forks} == 2 and os.getppid() == between: pass
        if {quiet}:
            null = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2): os.dup2(null, stream)
        os.write(go, b"%d" % os.getpid())
        signal.pause()
    os._exit(0)
print(os.read(ready, 20).decode(), flush=True)
if {stays}: signal.pause()
"""


@pytest.mark.parametrize("forks, quiet", [(1, True), (2, True), (2, False)], ids=["own session", "daemon", "daemon that keeps the pipes"])
def test_a_process_that_outlives_the_kill_is_reported_and_ended(bench, forks, quiet):
    program = bench.program(DAEMON.format(forks=forks, quiet=quiet, stays=True))
    process = program.begin("start")
    daemon = int(process.line())
    with pytest.raises(ProgramFault, match=rf"process {daemon} \(.* main start\) outlived the kill of `start`"):
        program.kill(process)
    assert process.code == -signal.SIGKILL and not gone(daemon)
    left, = survivors(patience=0)
    assert left.startswith(f"process {daemon} (")
    assert gone(daemon)


def test_a_daemon_that_is_being_made_during_the_kill_is_reported(bench, monkeypatch):
    program = bench.program("""
import os, signal
running, go = os.pipe()
if os.fork() == 0:
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2): os.dup2(null, stream)
    if os.fork() == 0:
        os.write(go, b"%d %d" % (os.getppid(), os.getpid()))
    signal.pause()
print(os.read(running, 50).decode(), flush=True)
signal.pause()
""")
    process = program.begin("start")
    between, daemon = map(int, process.line().split())
    candidates = descendants.candidates

    def and_then_the_one_between_ends():
        found = candidates()
        if between in found and psutil.Process(daemon).ppid() == between:
            os.kill(between, signal.SIGKILL)
            os.waitid(os.P_PID, between, os.WEXITED | os.WNOWAIT)
        return found
    monkeypatch.setattr(descendants, "candidates", and_then_the_one_between_ends)
    with pytest.raises(ProgramFault, match=f"process {daemon} .* outlived the kill"):
        program.kill(process)
    assert len(survivors(patience=0)) == 1 and gone(daemon)


def test_a_daemon_that_outlives_the_end_of_its_program_is_reported(bench):
    program = bench.program(DAEMON.format(forks=2, quiet=True, stays=False))
    process = program.begin("start").wait()
    daemon = int(process.line())
    with pytest.raises(ProgramFault, match=f"process {daemon} .* outlived the kill"):
        program.kill(process)
    assert len(survivors(patience=0)) == 1 and gone(daemon)


def test_a_worker_left_in_the_group_of_a_program_that_ended_is_reported(bench):
    program = bench.shell("sleep 1000 > /dev/null 2>&1 & echo $!")
    process = program.begin("start").wait()
    worker = int(process.line())
    assert process.left_behind(patience=0) == [f"process {worker} (sleep 1000)"]
    program.kill(process)
    assert process.left_behind(patience=0) == [] and gone(worker)


def test_a_worker_that_ends_in_time_is_not_left_behind(bench):
    program = bench.shell("cat < $LAB_HOME/pipe > /dev/null 2>&1 &")
    os.mkfifo(program.home / "pipe")
    process = program.begin("start").wait()
    end = threading.Thread(target=lambda: (program.home / "pipe").write_bytes(b""))  # opens and closes: the worker ends
    end.start()
    assert process.left_behind(patience=20) == []
    end.join()


def test_a_daemon_that_hides_its_environment_is_still_among_the_survivors(bench):
    program = bench.program("""
import os
running, go = os.pipe()
if os.fork() == 0:
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2): os.dup2(null, stream)
    os.execve("/bin/sleep", ["sleep", "1000"], {})
os.close(go)
os.read(running, 1)  # the pipe ends where the other program begins
""")
    process = program.begin("start").wait()
    program.kill(process)
    left, = survivors(patience=0)
    assert left.endswith(" (sleep 1000)")


def test_the_children_of_one_program_are_not_taken_for_the_daemons_of_another(bench):
    other = bench.program(DAEMON.format(forks=2, quiet=True, stays=True))
    daemon = int(other.begin("start").line())
    program = bench.shell("sleep 1000 & echo up; wait")
    first, second = program.begin("start"), program.begin("start")
    assert (first.line(), second.line()) == ("up", "up")
    program.kill(first)
    assert second.running
    program.kill(second)
    assert not gone(daemon)
    other.discard()
    assert len(survivors(patience=0)) == 1


def test_those_that_are_known_and_those_that_are_about_to_end_are_no_survivors(bench):
    known = bench.program(FOREVER).begin("start")
    ending = subprocess.Popen(["/bin/sh", "-c", "read line"], stdin=subprocess.PIPE)
    ends = threading.Thread(target=ending.stdin.close)
    ends.start()
    assert survivors({known.pid}, patience=PATIENCE) == []
    assert known.running
    ends.join()
    ending.wait()


def test_a_dead_child_of_a_live_program_is_no_survivor(bench):
    program = bench.program("""
import os, signal
if (child := os.fork()) == 0:
    os._exit(0)
os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
print("dead", flush=True)
signal.pause()
""")
    process = program.begin("start")
    assert process.line() == "dead"
    assert survivors({process.pid}, patience=0) == []


def test_a_program_that_nobody_discarded_is_a_survivor_and_keeps_its_exit_code(bench):
    program = bench.shell("exit 5")
    ended = program.begin("start").wait()
    running = bench.program(FOREVER).begin("start")
    left, = survivors(patience=0)
    assert left.startswith(f"process {running.pid} (")
    assert running.wait(PATIENCE).code == -signal.SIGKILL and not running.killed
    for process, code in ((ended, 5), (running, -signal.SIGKILL)):
        assert process.kill().code == code and gone(process.pid)


def test_a_stopped_program_does_nothing_until_it_goes_on(bench):
    program = bench.program("import sys\nfor line in sys.stdin: print(line.strip(), flush=True)")
    process = program.chat("C-1")
    process.write(b"one\n")
    assert process.line(1) == "one"
    process.stop()
    process.write(b"two\n")
    with pytest.raises(ProgramFault, match="did not print line 2"):
        process.line(2, deadline=0.1)
    assert process.running and psutil.Process(process.pid).status() == psutil.STATUS_STOPPED
    process.go_on()
    assert process.line(2) == "two"


def test_a_program_stands_still_once_it_is_stopped(bench):
    program = bench.program("print('up', flush=True)\nwhile True: pass")
    process = program.begin("start")
    assert process.line() == "up"
    for _ in range(200):
        process.stop()
        assert psutil.Process(process.pid).status() == psutil.STATUS_STOPPED
        process.go_on()
    process.stop()
    program.kill(process)


def test_a_program_that_ended_is_stopped_in_vain(bench):
    process = bench.shell("exit 5").ask("start")
    process.stop()
    process.go_on()
    assert process.code == 5


def test_a_stopped_program_can_be_killed(bench):
    program = bench.shell("sleep 1000 & echo $!; wait")
    process = program.begin("start")
    child = int(process.line())
    process.stop()
    program.kill(process)
    assert process.code == -signal.SIGKILL and gone(child)


# ---- death at a boundary, with the outside looking on


@pytest.fixture(scope="module")
def starter(session):
    folder, _ = session
    return stage(KIT / "starter", folder / "starter")


@pytest.mark.parametrize("kind, when", BOUNDARIES, ids=IDS)
def test_a_program_killed_at_a_boundary_did_or_did_not_act(bench, starter, kind, when):
    program = bench.of(starter)
    process, request = killed_at(program, kind, when, lambda: program.start(make_ticket(kind + when)))
    assert process.code == -signal.SIGKILL and request.kind == kind
    assert request.acted == (when == "after")
    assert request.status == ("unanswered" if when == "after" else "dropped")
    kinds = [request.kind for request in program.outside.requests]
    assert kinds == ["model", "refund", "mail"][:len(kinds)] and kinds[-1] == kind
    assert request.group == process.pid
    before = len(program.outside.events)
    program.outside.release()
    program.kill(process)
    assert len(program.outside.events) == before


def test_two_processes_of_one_program_do_not_disturb_one_another(bench, starter):
    program, ticket = bench.of(starter), make_ticket("two")
    first, one = held_at(program, "refund", "before", lambda: program.start(ticket))
    program.outside.plan(Fault("refund", "hold_after"))
    second = program.start(ticket)
    program.until(second, lambda: len(program.outside.held()) == 2, "send a refund request", PATIENCE)
    program.kill(second)
    assert program.outside.held() == [one] and len(program.outside.refunds) == 1
    program.outside.release()
    assert first.wait().code == 0
    assert len(program.outside.refunds) == 2


# ---- staging


def test_a_program_is_a_folder_with_a_main_file_or_one_that_holds_it_as_starter(tmp_path):
    for name in ("one", "two/starter"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "__main__.py").write_text("print('hello')")
    for name in ("one", "two"):
        staged = stage(tmp_path / name, tmp_path / f"staged-{name}")
        assert staged.name == name and staged.command == (sys.executable, "-m", "starter")
        assert (staged.folder / "starter" / "__main__.py").read_text() == "print('hello')"
        assert list((staged.folder / "starter" / "__pycache__").iterdir()), "it is compiled once, not at every start"


def test_a_folder_that_is_no_package_is_not_taken_for_another_program_of_that_name(bench):
    written = bench.folder / "written"
    written.mkdir()
    (written / "__main__.py").write_text("print('me')")
    program = bench.of(stage(written, bench.folder / "staged"))
    assert program.ask("start").stdout == "me\n"
    assert os.listdir(written) == ["__main__.py"]


def test_a_solution_is_the_starter_under_its_own_overlay_and_those_before(tmp_path):
    staged = stage(KIT / "solutions/02", tmp_path / "staged")
    expected = {}
    for layer in (KIT / "starter", KIT / "solutions/01", KIT / "solutions/02"):
        expected |= {path.relative_to(layer): path.read_bytes() for path in layer.rglob("*")
                     if path.is_file() and "__pycache__" not in path.parts}
    folder = staged.folder / "starter"
    found = {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*")
             if path.is_file() and "__pycache__" not in path.parts}
    assert found == expected
    assert staged.name == "solutions/02"


def test_with_a_command_the_whole_folder_is_staged_but_for_what_is_nobodys_program(tmp_path):
    source = tmp_path / "source"
    for name in ("main.sh", "data/x", ".venv/bin/python", ".git/HEAD", "a/__pycache__/b.pyc", ".lab/runs", ".hidden"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("x")
    staged = stage(source, tmp_path / "staged", "sh 'main.sh' --with 'two words'")
    assert staged.command == ("sh", "main.sh", "--with", "two words")
    assert sorted(str(path.relative_to(staged.folder)) for path in staged.folder.rglob("*") if path.is_file()) == [
        ".hidden", "data/x", "main.sh"]


@pytest.mark.parametrize("name, command, says", [
    ("nothing", None, "there is no folder .*/nothing: name one"), ("file", None, ".*/file is a file: name the folder that it is in"),
    ("empty", None, ".*/empty holds no program: it needs a __main__.py, or a folder starter/ with one"),
    (KIT / "labs", None, ".*/labs is the kit's own command, and no flow"),
    ("nothing", "sh main", "there is no folder"), ("empty", "", "--command is empty"), ("empty", "  ", "--command is empty"),
    ("pipe", "sh main", ".*/pipe/pipe cannot be copied: .*named pipe"),
    ("empty", "sh 'main", r"--command cannot be read \(No closing quotation\)")])
def test_what_cannot_be_staged_is_one_clear_line(tmp_path, name, command, says):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    (tmp_path / "pipe").mkdir()
    for pipe in ("pipe", "other pipe"):
        os.mkfifo(tmp_path / "pipe" / pipe)
    with pytest.raises(NoProgram, match=says) as caught:
        stage(tmp_path / name, tmp_path / "staged", command)
    assert len(str(caught.value).splitlines()) == 1


def test_links_of_a_program_stay_links(bench, tmp_path):
    (tmp_path / "outside.py").write_text("SECRET = 1")
    source = tmp_path / "source"
    (source / "folder").mkdir(parents=True)
    (source / "__main__.py").write_text("from . import own\nprint(own.__file__)")
    (source / "folder" / "real.py").write_text("")
    links = {"own.py": "folder/real.py", "away.py": str(tmp_path / "outside.py"), "round": ".", "folder/back": "..",
             ".#flow.py": "somebody@somewhere.1:2"}
    for name, target in links.items():
        (source / name).symlink_to(target)
    program = bench.of(stage(source, bench.folder / "staged"))
    process = program.begin("start")
    own = process.folder / "program" / "starter"
    assert process.line() == str(own / "own.py")
    assert {name: os.readlink(own / name) for name in links} == links
    assert not list(own.rglob("away.*.pyc")), "what is outside could be read from here"


def test_staging_writes_nothing_through_a_link(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "__main__.py").write_text("")
    (source / "__init__.py").symlink_to(tmp_path / "outside.py")
    stage(source, tmp_path / "staged")
    assert not (tmp_path / "outside.py").exists()


def test_staging_runs_nothing_of_the_program_and_a_syntax_error_waits_for_its_start(bench, tmp_path):
    (tmp_path / "__main__.py").write_text("this is no Python")
    (tmp_path / "trap.py").write_text(f"open({str(tmp_path / 'sprung')!r}, 'w')")
    program = bench.of(stage(tmp_path, bench.folder / "staged"))
    assert not (tmp_path / "sprung").exists()
    assert program.ask("start").code == 1 and "SyntaxError" in program.processes[0].stderr


def test_a_command_that_there_is_not_is_a_fault_that_names_it(bench):
    program = bench.program("", "no-such-command main")
    for _ in range(2):
        with pytest.raises(ProgramFault, match="`no-such-command` cannot be started: No such file or directory"):
            program.begin("start")
    assert program.processes == []


def test_a_script_that_may_not_be_executed_is_a_fault_that_says_so(bench):
    program = bench.program("#!/bin/sh", "./main")
    with pytest.raises(ProgramFault, match="`./main` cannot be started: Permission denied"):
        program.begin("start")


# ---- the scratch folder


HOLDER = "import sys\nfrom labs.harness.scratch import scratch\nwith scratch() as folder: print(folder, flush=True); sys.stdin.read()"


@pytest.fixture
def holder():
    """Start another process that holds a scratch folder. Returns the process and the folder."""
    started = []

    def start():
        process = subprocess.Popen([sys.executable, "-c", HOLDER], cwd=KIT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process, Path(process.stdout.readline().strip())
    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_what_a_killed_session_left_behind_is_removed_and_a_live_one_keeps_its_own(holder):
    (dead, abandoned), (alive, kept) = holder(), holder()
    (abandoned / "deep" / "er").mkdir(parents=True)
    dead.kill()
    dead.wait()
    assert abandoned.is_dir()
    with scratch() as own:
        assert not abandoned.exists()
        assert kept.is_dir() and own.is_dir() and own != kept
        assert own.parent == kept.parent
    assert not own.exists() and kept.is_dir()
    alive.communicate("")
    assert alive.returncode == 0 and not kept.exists()


def test_a_folder_that_is_being_made_is_not_taken_for_abandoned(monkeypatch):
    flock = fcntl.flock

    def when_another_session_begins(file, operation):
        if operation == fcntl.LOCK_EX:
            scratch_module._remove_abandoned(Path(file.name).parent)
        flock(file, operation)
    monkeypatch.setattr(fcntl, "flock", when_another_session_begins)
    with scratch() as folder:
        assert folder.is_dir()


@pytest.mark.timeout(PATIENCE)
def test_a_folder_whose_lock_is_a_pipe_or_a_link_keeps_nobody_waiting(tmp_path):
    pipe, link, other = (tmp_path / name for name in ("pipe", "link", "other"))
    for folder in (pipe, link, other):
        folder.mkdir()
    os.mkfifo(pipe / "lock")
    (other / "lock").write_text("")
    (link / "lock").symlink_to(other / "lock")
    for folder in (pipe, link):
        scratch_module._remove_abandoned(folder)
    assert not pipe.exists() and link.is_dir() and (other / "lock").is_file()


def test_a_scratch_folder_is_removed_whatever_happens_in_it():
    with pytest.raises(ZeroDivisionError), scratch() as folder:
        (folder / "file").write_text("x")
        raise ZeroDivisionError
    assert not folder.exists()


# ---- sweeps


class Subject:
    def __init__(self):
        self.discarded = False

    def discard(self):
        self.discarded = True


@pytest.fixture
def subjects():
    made = []

    def make():
        made.append(Subject())
        return made[-1]
    make.made = made
    return make


def test_a_sweep_runs_every_point_on_a_subject_of_its_own(subjects):
    ran, lock = {}, threading.Lock()

    def experiment(subject, point):
        with lock:
            ran[point] = subject
    on_fresh_programs(subjects, range(50), experiment)
    assert set(ran) == set(range(50)) and len(set(ran.values())) == 50 == len(subjects.made)
    assert all(subject.discarded for subject in subjects.made)


def test_a_sweep_reports_the_first_failure_in_order_and_how_many_there_were(subjects):
    last_failed, ran = threading.Event(), {}

    def experiment(subject, point):
        ran[point] = subject
        if point == "b":
            last_failed.wait(PATIENCE)  # it fails after the one that comes later
        if point in "bcf":
            if point == "c":
                last_failed.set()
            raise AssertionError(f"no good: {point}" if point != "f" else "worse")
    with pytest.raises(AssertionError) as caught:
        on_fresh_programs(subjects, iter("abcdef"), experiment)
    assert str(caught.value) == "no good: b"
    assert (caught.value.point, caught.value.others) == ("b (3 of 6 points failed, 2 of them so)", ". The others: 1 × worse")
    assert caught.value.program is ran["b"] and not ran["b"].discarded
    assert set(ran) == set("abcdef")
    assert {point for point in ran if ran[point].discarded} == set("ade")


def test_a_sweep_lets_an_error_that_is_no_verdict_through(subjects):
    def experiment(subject, point):
        if point == 3:
            raise KeyError("the check itself is wrong")
    with pytest.raises(KeyError, match="the check itself"):
        on_fresh_programs(subjects, range(5), experiment)


def test_a_sweep_over_the_boundaries_kills_on_both_sides_of_every_effect(bench, starter):
    lock, acted = threading.Lock(), {}

    def make():
        with lock:
            return bench.of(starter)

    def experiment(program, point):
        _, request = killed_at(program, *point, lambda: program.start(make_ticket(point)))
        acted[point] = request.acted
    on_fresh_programs(make, BOUNDARIES, experiment)
    assert acted == {(kind, when): when == "after" for kind, when in BOUNDARIES}


def test_a_program_that_was_discarded_is_not_started_again(bench):
    program = bench.shell("echo up")
    program.ask("start")
    program.discard()
    with pytest.raises(ProgramFault, match="the check is over"):
        program.begin("start")
    assert len(program.processes) == 1


# ---- one that does not go on


@pytest.mark.parametrize("source, where", [("def spin():\n    while True:\n        pass\nprint('a', flush=True)\nspin()", r" in main, line [2-5]"),
                                           ("import subprocess, sys\nprint('a', flush=True)\nsubprocess.run(['sleep', '1000'])", r" in main, line 3"),
                                           ("import signal, time\nsignal.signal(signal.SIGABRT, signal.SIG_DFL)\nprint('a', flush=True)\nsignal.pause()", "")])
def test_one_that_hangs_says_where_it_stands(bench, source, where):
    process = bench.program(source).begin("start")
    process.line()
    with pytest.raises(Late) as late:
        process.wait(0.01)
    assert late.value.process is process and process.end == "still runs"
    assert re.fullmatch(where, process.where()) and not process.running
    assert re.fullmatch(f"hung{where}", process.end) and not process.complaint and process.where() == ""


def test_one_that_is_no_python_says_nothing_and_ends(bench):
    process = bench.shell("trap 'echo heard' ABRT; echo a; while :; do :; done").begin("start")
    process.line()
    process._body.ask_where()
    assert process.line(2) == "heard" and process.running   # it goes on; so it is killed like any other
    other = bench.shell("echo a; while :; do :; done").begin("start")
    other.line()
    assert other.where() == "" and other.end == "hung"


def test_a_folder_whose_name_is_nearly_right_is_named(tmp_path):
    (tmp_path / "starter").mkdir()
    with pytest.raises(NoProgram, match=rf"there is no folder {tmp_path}/starer: is it {tmp_path}/starter\?"):
        stage(tmp_path / "starer", tmp_path / "staged")
    with pytest.raises(NoProgram, match="there is no folder .*/file/starter: name one"):
        (tmp_path / "file").touch()
        stage(tmp_path / "file" / "starter", tmp_path / "staged")
    with pytest.raises(NoProgram, match=r"/solutions/1: is it .*/solutions/01\?"):
        stage(KIT / "solutions" / "1", tmp_path / "staged")
