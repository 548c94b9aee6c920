#!/usr/bin/env python3
"""Records made leaks and ordinary loads on this machine, and holds what `leaks` says against what was done.

    run.py BIN FOLDER [--seconds S] [--made-seconds S] [--runs N] [--jobs N] [--record=OPTION]... [NAME...]

BIN has kmt-capture and kmt-analyze; FOLDER takes one recording a job at a time. Of a made leak the first finding has to
be held by the process that made it; of an ordinary load nothing may be called growing. Needs root and tracefs.
"""
import argparse, concurrent.futures, json, os, subprocess, sys, time

HERE = os.path.dirname(os.path.abspath(__file__))
GROWING = ("grows", "grows_in_batches")


def names(script):
    command = [sys.executable, f"{HERE}/{script}", "--list"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return [line.split("\t")[0] for line in lines]


class Runner:
    def __init__(self, options):
        self.options = options
        self.failed = []

    def record(self, script, name, run, seconds):
        """Records SECONDS of it from before its start to before its end: an end takes back what a process leaked."""
        path = f"{self.options.folder}/{name}-{run}.kmt"
        command = [f"{self.options.bin}/kmt-capture", "record", "-q", "--force", "-o", path, "-d", f"{seconds}s", *self.options.record]
        recorder = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        time.sleep(0.5)
        work = subprocess.Popen([sys.executable, f"{HERE}/{script}", name, str(seconds + 30)], stdout=subprocess.DEVNULL)
        _, said = recorder.communicate()
        work.terminate()
        work.wait()
        if recorder.returncode not in (0, 3):
            raise RuntimeError(f"{name}: record ended with {recorder.returncode}: {said.strip()[-300:]}")
        return path

    def leaks(self, path):
        command = [f"{self.options.bin}/kmt-analyze", "leaks", "--json", "-l", "1000", path]
        done = subprocess.run(command, capture_output=True, text=True)
        out = json.loads(done.stdout) if done.stdout.startswith("{") else {}
        if "refused" in out:
            return out, {"refused": out["refused"]}
        if done.returncode not in (0, 3):  # 3: events were lost
            raise RuntimeError(f"{path}: leaks ended with {done.returncode}: {done.stderr.strip()[-300:]}")
        return out, out["leaks"]

    def tell(self, name, run, seconds, out, verdict, path):
        lost = out.get("trace", {}).get("lost_events")
        print(f"{name:20} run {run}  {seconds:4.0f} s  {os.path.getsize(path) / 1e6:7.1f} MB  lost {lost}  {verdict}", flush=True)

    def one(self, job):
        script, name, run, seconds = job
        path = self.record(script, name, run, seconds)
        out, leaks = self.leaks(path)
        if "refused" in leaks:
            verdict, is_right = f"refused: {leaks['refused']}", False
        else:
            verdict, is_right = (made if script == "made.py" else ordinary)(leaks)
        self.tell(name, run, seconds, out, verdict, path)
        if is_right:
            os.remove(path)
        else:
            self.failed.append((name, run))
        return is_right


def growing(leaks):
    return [r for r in leaks["callers"] + leaks["page_callers"] if r["verdict"] in GROWING]


def made(leaks):
    rows = [r for r in leaks["callers"] if r["family"] == 0]
    if not rows:
        return f"NOT FOUND; {len(growing(leaks))} rows grow", False
    leader = next(r for r in rows if r["symbol"] == leaks["families"][0]["leader"])
    holder = leader["holders"][0] if leader["holders"] else {"task": None, "pid": None, "survivors": 0}
    share = holder["survivors"] / max(1, leader["survivors"])
    others = len(leaks["families"]) - 1
    is_right = bool(holder["task"]) and "python" in holder["task"] and share >= 0.5
    return (f"first {leader['symbol']} ({leader['cache']}) by {holder['task']} {100 * share:.0f} %, {len(rows)} sites, "
            f"{others} other findings{'' if is_right else ' WRONG'}"), is_right


def ordinary(leaks):
    rows = growing(leaks)
    names = ", ".join(f"{r['symbol']} ({r['cache']}, {r['old_survivors']} old)" for r in rows)
    return (f"FALSE: {names}" if rows else "nothing grows"), not rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("folder")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--made-seconds", type=float, default=60)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="recordings at once; each sees the work of all")
    parser.add_argument("--record", action="append", default=[], help="an option of kmt-capture record")
    parser.add_argument("names", nargs="*")
    options = parser.parse_intermixed_args()
    os.makedirs(options.folder, exist_ok=True)
    runner = Runner(options)
    kinds, loads = names("made.py"), names("loads.py")
    unknown = set(options.names) - set(kinds) - set(loads) - {"made", "loads"}
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    wanted = lambda group, name: not options.names or group in options.names or name in options.names
    jobs = [("loads.py", n, run, options.seconds) for run in range(options.runs) for n in loads if wanted("loads", n)]
    made_jobs = [("made.py", n, run, options.made_seconds) for run in range(options.runs) for n in kinds if wanted("made", n)]
    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(runner.one, jobs))
    # A made leak has to be the first finding: no two at once.
    results += [runner.one(job) for job in made_jobs]
    print(f"{sum(results)} of {len(results)} as they should be, {time.monotonic() - begin:.0f} s")
    for name, run in runner.failed:
        print(f"wrong: {name}, run {run}; its recording is kept")
    sys.exit(0 if all(results) else 1)


main()
