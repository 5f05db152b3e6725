"""What others wrote, made fit to be shown: cut to a length that can be read, and without characters that nobody can see."""

import re

from labs.harness.story import printable

SENTENCE, STORY = 2_000, 20_000   # characters
SOURCE = "in the source"
_TOLD = re.compile(r"  (.{13})  (.*)")


def line(text, longest=SENTENCE):
    """The text on one line; of one that is too long, its beginning."""
    text = str(text)
    return printable(text if len(text) <= longest else f"{text[:longest]} … and {len(text) - longest:,} characters more")


def lines(text, longest=STORY):
    """The text on its lines; of one that is too long, its head and its tail, and between them how much was cut."""
    text = str(text)
    if len(text) > longest:
        half = longest // 2
        text = f"{text[:half]}\n\n… {len(text) - 2 * half:,} characters are cut out here …\n\n{text[-half:]}"
    text = text.replace("\r\n", "\n").expandtabs(4)
    return "\n".join(map(printable, text.split("\n")))


def told(text):
    """A story as sections, each a list of [label, what happened] pairs, so that a page can break its lines where it likes.

    What a sweep adds after a blank line, the lines of the source at which kills did harm, is one more pair, its text on its lines. Of a text that is
    no such story: None.
    """
    sections, added = [], None
    for part in lines(text).strip("\n").split("\n"):
        match = _TOLD.fullmatch(part)
        if re.match(r"lab \d\d · ", part):
            sections.append([])
            added = None
        elif added is not None:
            added.append(part)
        elif not part.strip():
            if sections and sections[-1]:
                added = []
                sections[-1].append([SOURCE, added])
        elif not match or not sections:
            return None
        elif match[1].strip():
            sections[-1].append([match[1].strip(), match[2]])
        elif sections[-1]:
            sections[-1][-1][1] += f" {match[2]}"
    for section in sections:
        if section and section[-1][0] == SOURCE:
            section[-1][1] = "\n".join(section[-1][1]).strip("\n")
    return [[pair for pair in section if pair[1]] for section in sections if section] or None
