"""Rules for the output of `leaks`: of a made leak, and of an ordinary load. Only this file knows the keys of the JSON."""
import re

GROWING = ("grows", "grows_in_batches")


def rows(leaks):
    return leaks["callers"] + leaks["page_callers"] + leaks["pages"]


def growing(leaks):
    return [r for r in rows(leaks) if r["verdict"] in GROWING]


def leader(leaks, family):
    """The row of a family that has most bytes."""
    members = [r for r in rows(leaks) if r["family"] == family]
    name = leaks["families"][family]["leader"]
    return next((r for r in members if r["symbol"] == name), members[0] if members else None)


def held(row, tasks):
    """Share of the survivors that tasks with these names allocated: of all, or of those of the listed short-lived tasks.

    Beside other work only old survivors count: young ones are of the tasks that are running at the end.
    """
    if not row or not row["holders"]:
        return 0.0
    is_beside_others = any(name.startswith("kmt-") for name in tasks)
    key = "old_survivors" if is_beside_others else "survivors"
    own = sum(h[key] for h in row["holders"] if any((h["task"] or "").startswith(name) for name in tasks))
    is_of_all = is_beside_others or tasks == ["python"]
    return own / max(1, row[key] if is_of_all else sum(h["survivors"] for h in row["holders"]))


def sentence(text):
    """The first sentence of a screen, which can take several lines."""
    lines = []
    for line in text.splitlines():
        lines.append(line.strip())
        if line.endswith(".") or not line:
            break
    return " ".join(lines).strip()


class Verdict:
    """Result of one recording: right or wrong, why, and whether the first sentence names the object."""

    def __init__(self, is_right, text, is_telling=True):
        self.is_right, self.text, self.is_telling = is_right, text, is_telling


def made(leaks, screen, kind):
    """One family is due to the load, it is the first, and its tasks are those of the kind. Pages without a family count as one."""
    first = sentence(screen)
    is_telling = bool(re.search(kind.telling, first, re.IGNORECASE))
    due = [f for f in range(len(leaks["families"])) if held(leader(leaks, f), kind.tasks) >= 0.5]
    others = len(leaks["families"]) - len(due)
    if not leaks["families"]:
        pages = [r for r in growing(leaks) if r in leaks["page_callers"] + leaks["pages"]]
        shares = [held(r, kind.tasks) for r in pages]
        are_held = bool(pages) and all(share >= 0.5 for share in shares) and first.startswith("Pages grew by ")
        text = ", ".join(f"{r['symbol']} {100 * share:.0f} %" for r, share in zip(pages, shares))
        return Verdict(are_held, f"pages: {text}" if pages else f"NOT FOUND; {len(growing(leaks))} rows grow", is_telling)
    row = leader(leaks, 0)
    share, task = held(row, kind.tasks), row["holders"][0]["task"] if row and row["holders"] else None
    wrong = [] if 0 in due else ["the first is not held by the maker"]
    wrong += [] if len(due) == 1 else [f"{len(due)} findings of one leak"]
    text = f"first {leaks['families'][0]['leader']} by {task} {100 * share:.0f} %, {len(due)} findings, {others} of other tasks"
    return Verdict(not wrong, text + (f" WRONG: {', '.join(wrong)}" if wrong else ""), is_telling)


def ordinary(leaks):
    """Nothing grows: no call site, no kind of pages, no family."""
    names = [f"{r['symbol']} ({r['cache']}, {r['old_survivors']} old)" for r in growing(leaks)]
    names += [f"family {f['leader']}" for f in leaks["families"]]
    return Verdict(not names, f"FALSE: {', '.join(names)}" if names else "nothing grows")
