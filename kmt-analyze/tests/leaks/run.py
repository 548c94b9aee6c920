#!/usr/bin/env python3
"""Records made leaks and ordinary loads on this machine, and checks the output of `leaks`.

    run.py BIN FOLDER [--seconds S] [--made-seconds S] [--runs N] [--jobs N] [--headline] [--keep] [--record=OPTION]... [NAME...]

BIN has kmt-capture and kmt-analyze; FOLDER takes one recording a job at a time. NAME is a kind, a load, or a group:
`made` and `loads`, which are the default, or `more-made` and `more-loads`, on which no rule was tuned. A made leak is
one finding, the first, held by the process that made it; of an ordinary load nothing may be called growing. Needs root
and tracefs.
"""
import argparse, collections, concurrent.futures, json, os, shutil, subprocess, sys, time

sys.dont_write_bytecode = True
import checks

HERE = os.path.dirname(os.path.abspath(__file__))
Kind = collections.namedtuple("Kind", "group name tasks telling seconds needs", defaults=((), "", 0, ()))
DEFAULT = ("made", "loads")


def listed(script):
    command = [sys.executable, f"{HERE}/{script}", "--list"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return [line.split("\t") for line in lines]


def kinds():
    made = [Kind(group, name, tasks.split(","), telling, float(seconds), needs.split())
            for group, name, tasks, telling, seconds, needs in listed("made.py")]
    return made + [Kind(group, name, needs=needs.split()) for group, name, needs in listed("loads.py")]


def is_made(kind):
    return kind.group.endswith("made")


def is_there(need):
    """A program, or a file by its path."""
    return os.path.exists(need) if need.startswith("/") else shutil.which(need)


class Runner:
    def __init__(self, options):
        self.options = options
        self.failed, self.skipped, self.not_telling = [], [], []

    def analyze(self, *arguments):
        command = [f"{self.options.bin}/kmt-analyze", "leaks", *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode not in (0, 3) and '"refused"' not in done.stdout:  # 3: events were lost
            raise RuntimeError(f"{arguments[-1]}: leaks ended with {done.returncode}: {done.stderr.strip()[-300:]}")
        return done.stdout

    def record(self, kind, run, seconds):
        """Records SECONDS of it from before its start to before its end: an end takes back what a process leaked."""
        path = f"{self.options.folder}/{kind.name}-{run}.kmt"
        command = [f"{self.options.bin}/kmt-capture", "record", "-q", "--force", "-o", path, "-d", f"{seconds}s"]
        command += self.options.record
        work = None
        if not is_made(kind):
            work = self.start(kind, seconds)
            work.stdout.readline()  # it is prepared
        recorder = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        time.sleep(0.5)
        if work:
            work.stdin.close()
        else:
            work = self.start(kind, seconds)
        _, said = recorder.communicate()
        is_alive = work.poll() is None
        work.terminate()
        work.wait()
        if recorder.returncode not in (0, 3):
            raise RuntimeError(f"{kind.name}: record ended with {recorder.returncode}: {said.strip()[-300:]}")
        if not is_alive:
            raise RuntimeError(f"{kind.name}: ended before its recording, with {work.returncode}")
        return path

    def start(self, kind, seconds):
        command = [sys.executable, f"{HERE}/{'made.py' if is_made(kind) else 'loads.py'}", kind.name, str(seconds + 30)]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def judge(self, kind, path):
        out = json.loads(self.analyze("--json", "-l", "0", path))
        leaks = out.get("leaks", out)
        screen = self.analyze(path)
        if "refused" in leaks:
            return out, screen, checks.Verdict(False, f"refused: {leaks['refused']}")
        return out, screen, checks.made(leaks, screen, kind) if is_made(kind) else checks.ordinary(leaks)

    def one(self, job):
        kind, run, seconds = job
        missing = [program for program in kind.needs if not is_there(program)]
        if missing:
            self.skipped.append((kind.name, missing))
            return None
        try:
            path = self.record(kind, run, seconds)
            out, screen, verdict = self.judge(kind, path)
        except RuntimeError as error:
            print(f"{kind.name:20} run {run}  {error}", flush=True)
            self.failed.append((kind.name, run))
            return False
        lost = out.get("trace", {}).get("lost_events")
        text = f"{kind.name:20} run {run}  {seconds:4.0f} s  {os.path.getsize(path) / 1e6:7.1f} MB  lost {lost}  {verdict.text}"
        if is_made(kind):
            text += f"\n{'':22}{checks.sentence(screen)}"
        if not verdict.is_telling:
            self.not_telling.append(kind.name)
            text += f"\n{kind.name}: headline not telling, expected {kind.telling}"
        print(text, flush=True)
        is_right = verdict.is_right and (verdict.is_telling or not self.options.headline)
        if not is_right:
            self.failed.append((kind.name, run))
        elif not self.options.keep:
            os.remove(path)
        return is_right


def options_of(parser):
    parser.add_argument("bin")
    parser.add_argument("folder")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--made-seconds", type=float, default=30)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="recordings of loads at once; each sees the work of all")
    parser.add_argument("--headline", action="store_true", help="fail if the first sentence does not name the leaked object")
    parser.add_argument("--keep", action="store_true", help="keep all recordings, not only those that are wrong")
    parser.add_argument("--record", action="append", default=[], help="an option of kmt-capture record")
    parser.add_argument("names", nargs="*")
    return parser.parse_intermixed_args()


def main():
    parser = argparse.ArgumentParser()
    options = options_of(parser)
    os.makedirs(options.folder, exist_ok=True)
    runner, all_kinds = Runner(options), kinds()
    unknown = set(options.names) - {name for kind in all_kinds for name in (kind.name, kind.group)}
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    names = options.names or DEFAULT
    wanted = lambda kind: kind.name in names or kind.group in names
    seconds = lambda kind: max(options.made_seconds, kind.seconds) if is_made(kind) else options.seconds
    jobs = [(kind, run, seconds(kind)) for run in range(options.runs) for kind in all_kinds if wanted(kind)]
    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(runner.one, [job for job in jobs if not is_made(job[0])]))
    # A made leak has to be the first finding: no two at once.
    results += [runner.one(job) for job in jobs if is_made(job[0])]
    results = [is_right for is_right in results if is_right is not None]
    print(f"{sum(results)} of {len(results)} as they should be, {time.monotonic() - begin:.0f} s")
    for name, missing in runner.skipped:
        print(f"SKIPPED {name}: needs {', '.join(missing)}")
    if runner.not_telling:
        print(f"headline not telling: {len(runner.not_telling)}: {', '.join(runner.not_telling)}")
    for name, run in runner.failed:
        print(f"wrong: {name}, run {run}; its recording is kept")
    is_strict = os.environ.get("KMT_STRICT") == "1"
    sys.exit(0 if all(results) and not (is_strict and runner.skipped) else 1)


if __name__ == "__main__":
    main()
