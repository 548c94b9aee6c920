#!/usr/bin/env python3
"""Plants memory of each account on this machine, and checks what `balance` of a recording says of it.

    run.py BIN FOLDER [--mib N] [--nothing RUNS] [--nothing-seconds S] [--keep] [NAME...]

The planted account has to be the one that grew most, by N MiB (within 5 % or 4 MiB), and the planting task its first holder where the
pages are in no account. With nothing planted, what is in no account changes by less than 1 % of MemTotal. Needs root and tracefs.
"""
import argparse, json, os, signal, subprocess, sys, time

HERE = os.path.dirname(os.path.abspath(__file__))
MIB = 1 << 20
NO_ACCOUNT = "in_no_account"


def kinds():
    command = [sys.executable, f"{HERE}/plants.py", "--list"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return {line.split("\t")[0]: line.split("\t")[1:] for line in lines}


def analyze(options, path, *arguments):
    command = [f"{options.bin}/kmt-analyze", "balance", *arguments, path]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 3):
        raise RuntimeError(f"balance ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    return done.stdout


class Recording:
    """A recording of pages with stacks, until it is left."""

    def __init__(self, options, path):
        self.command = [f"{options.bin}/kmt-capture", "record", "-q", "--force", "-p", "pages", "-b", "32M", "-o", path]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stderr=subprocess.PIPE, text=True)
        time.sleep(1.5)

    def __exit__(self, *_):
        # The kernel's counters are up to date after a second (vm.stat_interval).
        time.sleep(1.5)
        self.process.send_signal(signal.SIGINT)
        _, said = self.process.communicate(timeout=60)
        if self.process.returncode not in (0, 3):
            raise RuntimeError(f"record ended with {self.process.returncode}: {said.strip()[-300:]}")


def plant(options, name, path):
    planter = subprocess.Popen([sys.executable, f"{HERE}/plants.py", name, str(options.mib)],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        planter.stdout.readline()
        with Recording(options, path):
            planter.stdin.write("\n")
            planter.stdin.flush()
            if planter.stdout.readline() != "planted\n":
                raise RuntimeError(f"{name} could not be planted")
    finally:
        planter.stdin.close()
        planter.wait(60)


def change(row):
    return row["bytes_change"] or 0


def judge(options, name, wanted, task, beside, path):
    """True if the figures are right, and a line with them."""
    rows = json.loads(analyze(options, path, "--json"))
    rows = rows.get("balance", rows)
    accounts = {row["account"]: row for row in rows["accounts"]}
    is_counted = wanted in accounts
    account = accounts.get(wanted if is_counted else NO_ACCOUNT)
    taken = [row for row in accounts.values() if row["account"] not in ("free", "cpu_lists")]
    room = max(4 * MIB, options.mib * MIB * 5 // 100)
    expected = {account["account"]: options.mib * MIB}
    if beside:
        expected[beside.split()[0]] = float(beside.split()[1]) * options.mib * MIB
    first = max(taken, key=change)["account"]
    amounts_are_right = all(abs(change(accounts[name]) - amount) <= room for name, amount in expected.items())
    is_right = first in expected and amounts_are_right
    text = f"{name:20} {account['account']} {change(account) / MIB:+.2f} MiB of {options.mib}, first: {first}"
    if not is_counted:
        holder = (rows["pages"]["holders"] or [{}])[0]
        text += f"; holder: {holder.get('symbol')} ({holder.get('use')}), {holder.get('task')}, {(holder.get('bytes_live') or 0) / MIB:.2f} MiB"
        is_right = is_right and wanted in (holder.get("use") or "") and (holder.get("task") or "").startswith(task)
        is_right = is_right and abs((holder.get("bytes_live") or 0) - options.mib * MIB) <= room
    return is_right, text


def nothing(options, run):
    path = f"{options.folder}/nothing-{run}.kmt"
    with Recording(options, path):
        time.sleep(options.nothing_seconds)
    rows = json.loads(analyze(options, path, "--json"))
    rows = rows.get("balance", rows)
    rest = next(row for row in rows["accounts"] if row["account"] == NO_ACCOUNT)
    percent = 100 * abs(change(rest)) / rows["total"]
    return path, percent < 1, f"{'nothing':20} {NO_ACCOUNT} {change(rest) / MIB:+.2f} MiB, {percent:.3f} % of MemTotal"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("folder")
    parser.add_argument("--mib", type=int, default=96)
    parser.add_argument("--nothing", type=int, default=3, help="recordings without a plant")
    parser.add_argument("--nothing-seconds", type=float, default=20)
    parser.add_argument("--keep", action="store_true", help="keep all recordings, not only those that are wrong")
    parser.add_argument("names", nargs="*")
    options = parser.parse_intermixed_args()
    os.makedirs(options.folder, exist_ok=True)
    all_kinds = kinds()
    if unknown := set(options.names) - set(all_kinds):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    right, wrong = 0, []

    def count(name, path, is_right, text):
        nonlocal right
        print(("" if is_right else "WRONG ") + text, flush=True)
        right += is_right
        if not is_right:
            wrong.append(name)
        elif not options.keep:
            os.remove(path)

    for name, (wanted, task, needs, beside) in all_kinds.items():
        if options.names and name not in options.names:
            continue
        if missing := [need for need in needs.split() if not os.path.exists(need)]:
            print(f"SKIPPED {name}: needs {', '.join(missing)}")
            continue
        path = f"{options.folder}/{name}.kmt"
        plant(options, name, path)
        count(name, path, *judge(options, name, wanted, task, beside, path))
    for run in range(0 if options.names else options.nothing):
        count(f"nothing-{run}", *nothing(options, run))
    print(f"{right} of {right + len(wrong)} as they should be")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
