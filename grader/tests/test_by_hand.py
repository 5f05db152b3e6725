"""What a person does by hand: the outside in one terminal, the starter in another, the demonstration."""

import json
import os
import re
import signal
import socket
import subprocess

import pytest
from grader.tests.by_hand import PYTHON, free_port, shipped, starter

from labs.harness.staging import KIT


def test_the_starter_works_against_the_outside_that_prints_what_it_sees(outside_by_hand, tmp_path):
    process, address = outside_by_hand
    done = starter("start", "starter/ticket.json", home=tmp_path, address=address)
    assert done.returncode == 0, done.stderr
    again = starter("start", "-", home=tmp_path, address=address, input=(KIT / "starter/ticket.json").read_text())
    assert again.returncode == 0, again.stderr
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 0 and "Traceback" not in output
    assert len(re.findall(r"refund R-\d+ of \$4\d\.\d\d for A-1009, no key", output)) == 2
    assert output.count("ONE MORE for this order") == 1 and output.count("ONE MORE of the same") == 1
    assert re.search(r"model +request, 12 tokens", output)
    assert output.rstrip().endswith("The outside is closed.")


def test_a_request_whose_client_was_killed_during_the_pace_does_nothing(tmp_path):
    port = free_port()
    server = subprocess.Popen([*PYTHON, "labs", "outside", "--port", str(port), "--pace", "0.3"], cwd=KIT,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    server.stdout.readline()
    environment = {**os.environ, "LAB_HOME": str(tmp_path), "OUTSIDE": f"http://127.0.0.1:{port}"}
    run = subprocess.Popen([*PYTHON, "starter", "start", "starter/ticket.json"], cwd=shipped(), env=environment,
                           stdout=subprocess.PIPE)
    try:
        lines = []
        while not re.search("refund +request", lines[-1] if lines else ""):
            lines.append(server.stdout.readline())
        run.kill()
        run.communicate(timeout=20)
        while "dropped" not in lines[-1]:
            lines.append(server.stdout.readline())
            assert "refund R-" not in lines[-1] and lines[-1], "".join(lines)
    finally:
        run.kill()
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=20)


def test_what_lab_01_does_by_hand(tmp_path):
    port = free_port()
    server = subprocess.Popen([*PYTHON, "labs", "outside", "--port", str(port), "--pace", "0.3"], cwd=KIT,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    server.stdout.readline()   # now it listens
    address = f"http://127.0.0.1:{port}"
    environment = {**os.environ, "LAB_HOME": str(tmp_path), "OUTSIDE": address, "OUTSIDE_KEY": "by-hand"}
    run = subprocess.Popen([*PYTHON, "starter", "start", "starter/ticket.json"], cwd=shipped(), env=environment, stdout=subprocess.PIPE, text=True)
    try:
        while not re.search("mail +request", line := server.stdout.readline()):
            assert line, "the outside has ended"
        run.kill()
        run_id = run.communicate(timeout=20)[0].strip()
        resumed = starter("resume", run_id, home=tmp_path, address=address)
        assert (resumed.returncode, resumed.stderr) == (2, "resume: this flow cannot do that yet; write `def resume` in flow.py\n")
        again = starter("start", "starter/ticket.json", home=tmp_path, address=address)
        assert again.returncode == 0 and re.fullmatch("[0-9a-f]{32}\n", again.stdout)
    finally:
        run.kill()
        server.send_signal(signal.SIGINT)
        output = server.stdout.read()   # and not communicate(), which would not see what readline() has read ahead
        server.communicate(timeout=20)
    assert "dropped: the client is gone, nothing was done" in output and output.count("ONE MORE for this order") == 1


def test_a_taken_port_is_one_line():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run([*PYTHON, "labs", "outside", "--port", str(port)], cwd=KIT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert f"labs: cannot listen on port {port}" in done.stderr and len(done.stderr.splitlines()) == 1


def test_a_missing_outside_is_one_line_that_says_how_to_start_it(tmp_path):
    for address in (f"http://127.0.0.1:{free_port()}", f"unix:{tmp_path}/no.sock", "http://127.0.0.1:no-port"):
        done = starter("start", "starter/ticket.json", home=tmp_path, address=address)
        assert done.returncode == 1
        assert "OUTSIDE" in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


@pytest.mark.parametrize("content, says", [
    (None, "cannot read"), (b"\xff\xfe", "no JSON"), (b"[1]", "no JSON object"), (b"[" * 100_000, "no JSON"),
    (json.dumps({"ticket_id": "T", "customer": "c"}).encode(), "needs `text`"),
    (json.dumps({"ticket_id": "T", "customer": "c", "text": "t", "conversation": 7}).encode(), "needs `conversation`")])
def test_a_bad_ticket_is_one_line(tmp_path, content, says):
    path = tmp_path / "ticket.json"
    if content is not None:
        path.write_bytes(content)
    done = starter("start", str(path), home=tmp_path / "home", address="http://127.0.0.1:9")
    assert done.returncode == 2 and says in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("arguments", [[], ["begin"], ["start"], ["start", "--run-id"], ["start", "--run-id", "", "t.json"],
                                       ["start", "--nonsense"], ["resume"], ["runs", "--state"], ["status", "a", "b"]])
def test_bad_usage_is_one_line(tmp_path, arguments):
    done = starter(*arguments, home=tmp_path, address="http://127.0.0.1:9")
    assert done.returncode == 2 and done.stderr.startswith("usage: ") and len(done.stderr.splitlines()) == 1, done.stderr


@pytest.mark.parametrize("arguments", [["resume", "r"], ["status", "r"], ["runs"], ["memory", "c"], ["forget", "c"]])
def test_what_the_fragile_flow_cannot_answer_it_says(tmp_path, arguments):
    done = starter(*arguments, home=tmp_path, address="http://127.0.0.1:9")
    assert done.returncode == 2 and f"write `def {arguments[0]}`" in done.stderr and not done.stdout


def test_the_starter_chats_until_its_memory_is_longer_than_the_models_window(outside_by_hand, tmp_path):
    _, address = outside_by_hand
    line = "word " * 1000
    done = starter("chat", "C-1", home=tmp_path, address=address, input=f"hello\n\n{line}\n{line}\n{line}\n{line}\n{line}\n")
    assert done.returncode == 1
    assert len(done.stdout.splitlines()) == 5
    assert "context_length_exceeded" in done.stderr and len(done.stderr.splitlines()) == 1


def test_ctrl_c_ends_the_starter_in_one_line(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        environment = {**os.environ, "LAB_HOME": str(tmp_path), "OUTSIDE": f"http://127.0.0.1:{silent.getsockname()[1]}"}
        run = subprocess.Popen([*PYTHON, "starter", "start", "starter/ticket.json"], cwd=shipped(), env=environment,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        connection, _ = silent.accept()
        connection.recv(1)  # it has sent its first request, and waits for an answer that never comes
        run.send_signal(signal.SIGINT)
        _, stderr = run.communicate(timeout=20)
        connection.close()
    assert run.returncode == 130 and stderr == "interrupted\n"


def test_a_demonstration_that_is_interrupted_says_so():
    with subprocess.Popen([*PYTHON, "labs", "demo"], cwd=KIT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as demo:
        demo.stdout.readline()   # there is more to come
        demo.send_signal(signal.SIGINT)
        _, stderr = demo.communicate(timeout=60)
    assert demo.returncode == 130 and stderr == "interrupted: what was under way has been ended\n"


def test_a_demonstration_of_the_grader_that_is_interrupted_says_so(tmp_path):
    with subprocess.Popen([*PYTHON, "grader", "demo", "--out", str(tmp_path / "report")], cwd=KIT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as demo:
        begun = tmp_path / "report" / "records"
        while demo.poll() is None and not list(begun.glob("*.jsonl")):
            pass   # it grades from the first record on
        demo.send_signal(signal.SIGINT)
        stdout, stderr = demo.communicate(timeout=60)
    assert demo.returncode == 130 and stderr == "interrupted: the report has what was graded until then; the same command begins anew\n" and "report/index.html" in stdout.replace("\n", "")


def test_the_demonstration_refunds_twice_and_then_once():
    done = subprocess.run([*PYTHON, "labs", "demo"], cwd=KIT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"✗ 2 refunds for one order: \$\d+\.\d\d and \$\d+\.\d\d", done.stdout)
    assert re.search(r"✓ one model call, one refund of \$\d+\.\d\d, one mail", done.stdout)
