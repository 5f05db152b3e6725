"""Results of submissions that there never were, with the checks of the real labs: for the tests of what is made of results."""

from random import Random

from grader.results import CheckResult, Figures, Isolation, LabResult, Outcome, Result, Status
from grader.suites import LABS

from labs.harness import killmap, timeline
from labs.harness.staging import KIT
from labs.harness.story import wrapped

HOSTILE = """</script></code><script>window.hacked = "script"</script><img src=x onerror="window.hacked = 'img'">'"&amp;{{ 7 * 7 }}"""
CONTROL = "\x00\x1b[31m\x07\r\u202e\u2028[bold]\ufffe"
SANDBOX = Isolation(level="bubblewrap", detail="user, PID, network and mount namespaces of its own")
WEAK = Isolation(level="process", detail="limits only", lacks=["it can read what the grader's user can read", "a daemon of it may live on"])
NAMES = ("ana", "Björn Åkesson", "chidi-okafor", "dmitri", "Élodie (late)", "farid", "grace", "hana", "ivo", "jun", "kofi", "lena", "marek",
         "noor", "olu", "priya", "quentin", "rosa", "søren", "tariq", "uma", "viktor", "wen", "ximena", "yusuf", "zoë")
OTHER_FAULTS = (Status.CRASHED, Status.TIMEOUT, Status.OUT_OF_MEMORY, Status.OUTPUT_LIMIT, Status.SURVIVORS, Status.MISSING)


def story(does, why="the customer was refunded twice", lab="03 · resume", said=""):
    """What a failed check prints."""
    return "\n".join([
        f"lab {lab}{' ' * 60}FAIL",
        *wrapped("this check", does),
        *wrapped("your program", "start --run-id run-7 ticket.json → model ✓ → refund ✂ killed (SIGKILL), the request acted on, unanswered"),
        *wrapped("the outside", "refund R-86988 of $129.29 for A-2763, key b1633dfb…"),
        *wrapped("then", f"resume run-7 → refund ✓ → mail ✓ → ended with exit code 0 {said}"),
        *wrapped("the outside", "refund R-27373 of $129.29 for A-2763, key 31c56c39…, ONE MORE for this order; "
                                "mail to ivo@example.com, key 9567e598…"),
        *wrapped("why", why),
        *wrapped("hint", "python -m labs hint 03")])


def check(of, status=Status.PASSED, **more):
    """The CheckResult of one Check of a lab.toml."""
    failed = status not in (Status.PASSED, Status.NOT_APPLICABLE)
    said = {"why": "the customer was refunded twice", "story": story(of.does)} if failed else {}
    return CheckResult(test=of.test, does=of.does, hidden=of.hidden, possible=of.points, points=of.points if status == Status.PASSED else 0,
                       status=status, **{"seconds": 1.25, **said, **more})


def figures(kills=1200, resumed=1190, duplicated=3, completed=1198, seed=1):
    random = Random(seed)
    return Figures(kills=kills, resumed=resumed, duplicated=duplicated, completed=completed,
                   resume_seconds=sorted(round(random.lognormvariate(-3.2, 0.5), 4) for _ in range(resumed)))


def result(name="ana", statuses=None, **more):
    """A Result in which every check passed, but for `statuses`: {(lab's number, its check's from 1): Status or CheckResult}."""
    labs = []
    for number, lab in LABS.items():
        found = [(statuses or {}).get((number, place), Status.PASSED) for place, _ in enumerate(lab.checks, 1)]
        labs.append(LabResult(number=number, title=lab.title, checks=[
            one if isinstance(one, CheckResult) else check(of, one) for of, one in zip(lab.checks, found)]))
    return Result(**{"name": name, "source": f"{name}.zip", "outcome": Outcome.GRADED, "labs": labs, "figures": figures(), "isolation": SANDBOX,
                     "seed": 7, "grader_version": "0.1.0", "suite_hash": "5b1d9c02" * 8, "submission_hash": "e0f7a3c4" * 8,
                     "began": "2026-11-30T03:15:36+00:00", "seconds": 71.3, **more})


def invalid(name="empty", **more):
    return Result(**{"name": name, "source": f"{name}.zip", "outcome": Outcome.INVALID,
                     "reason": "there is no program in it: it is empty", "began": "2026-11-30T03:15:36+00:00", **more})


def class_of(size, seed=1):
    """A class: right ones, wrong ones, some that are incomplete or invalid. The same for the same seed."""
    random = Random(seed)
    places = [(number, place) for number, lab in LABS.items() for place, _ in enumerate(lab.checks, 1)]
    hard = {place: random.random() ** 2 for place in places}
    results = []
    for number in range(size):
        name = NAMES[number % len(NAMES)] + (f"-{number // len(NAMES) + 1}" if number >= len(NAMES) else "")
        skill = random.choice([1.0, 1.0, 0.92, 0.8, 0.6, 0.35])
        wrong = [place for place in places if random.random() > skill ** (0.3 + 2 * hard[place])]
        statuses = {place: random.choice(OTHER_FAULTS) if random.random() < 0.12 else Status.FAILED for place in wrong}
        kills = random.randint(90, 130)
        bad = int(kills * (1 - skill) * random.random() * 0.5)
        more = {"figures": figures(kills, kills - bad, bad // 2, kills - bad // 3, number), "seconds": random.uniform(30, 95)}
        if number % 17 == 5:
            results.append(invalid(name))
        elif number % 13 == 7:
            results.append(result(name, statuses | {random.choice(places): Status.COULD_NOT_CHECK}, outcome=Outcome.INCOMPLETE,
                                  reason="1 check could not be made on this machine: no such kind of kill here", **more))
        elif number % 11 == 3:
            results.append(result(name, statuses | {place: Status.NOT_APPLICABLE for place in (("02", 3), ("03", 6))}, **more))
        else:
            results.append(result(name, statuses, **more))
    return results


def leave_evidence(report, folder, text=HOSTILE):
    """Make the evidence of a failed check in REPORT/evidence: a timeline and a kill map that have `text` in them. Returns the check's `evidence`."""
    place = report / "evidence" / folder
    place.mkdir(parents=True)
    events = [{"at": 0.0, "lane": "process 1", "what": "started", "process": 1, "pid": 7, "verb": "start", "arguments": ["start", text]},
              {"at": 0.4, "lane": "process 1", "what": "ended", "process": 1, "code": -9, "killed": True, "end": "was killed"}]
    (place / "timeline.svg").write_text(timeline.draw(events, text, text), encoding="utf-8")
    source = (KIT / "solutions" / "mistakes" / "act-then-record" / "flow.py").read_text() + f"\n# {text}"
    struck = [killmap.Struck("line", "start", "flow.py", 57, "before flow.py:57", "repeated", text, tuple(wrapped("why", text)))]
    (place / "killmap.html").write_text(killmap.page({"flow.py": source}, struck, text, text), encoding="utf-8")
    return f"evidence/{folder}"
