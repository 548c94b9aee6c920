//! The report of an OOM kill: which processes were killed, and the resident memory of each process.
//!
//! Sources: the kernel log (`kmsg`) and the list of processes (`processes.after`) of a ring that stopped. The log has the
//! table of `dump_tasks` (mm/oom_kill.c, 5.10 to 7.2), in pages: a head `[  pid  ]   uid  tgid total_vm      rss … name`,
//! then a line for each process; columns differ between versions. `__oom_kill_process` adds the line of the victim:
//! `Killed process PID (NAME) total-vm:NkB, anon-rss:NkB, file-rss:NkB, shmem-rss:NkB`.

/// A process of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Name, as it is in the text.
    pub name: String,
    /// Resident memory in bytes; `None`: the text has no number.
    pub resident: Option<u64>,
}

/// The process with the most resident memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Largest {
    /// The process; the first one of equal ones.
    pub process: Process,
    /// Number of processes in the list.
    pub processes: u64,
}

/// Processes that were killed, in the order of the log.
pub fn killed(log: &str) -> Vec<Process> {
    log.lines().filter_map(victim).collect()
}

fn victim(line: &str) -> Option<Process> {
    let (_, rest) = line.split_once("Killed process ")?;
    let (pid, rest) = rest.split_once(" (")?;
    let pid = pid.parse().ok()?;
    // A name may have parentheses.
    let end = rest.find(") total-vm:").or_else(|| rest.rfind(')')).or_else(|| rest.rfind(','))?;
    let kib = |key: &str| -> Option<u64> {
        let (_, number) = rest.get(end..)?.split_once(key)?;
        number.split_once("kB")?.0.parse().ok()
    };
    let parts = [kib("anon-rss:"), kib("file-rss:"), kib("shmem-rss:")];
    let resident = parts[0].map(|_| parts.iter().flatten().fold(0, |sum: u64, kib| sum.saturating_add(*kib)));
    let name = rest.get(..end)?.to_owned();
    Some(Process { pid, name, resident: resident.map(|kib| kib.saturating_mul(1024)) })
}

/// The largest process of the last table in the log; `None`: the log has no table with its head.
pub fn of_last_table(log: &str, page_size: u64) -> Option<Largest> {
    let mut head: Option<Columns> = None;
    let mut largest = None;
    for line in log.lines() {
        // Behind the time.
        let Some((_, row)) = line.split_once("] ") else { continue };
        let Some((first, rest)) = row.trim_start().strip_prefix('[').and_then(|row| row.split_once(']'))
        else {
            continue;
        };
        if first.trim() == "pid" {
            (head, largest) = (Columns::of(rest), None);
        } else if let (Some(columns), Ok(pid)) = (&head, first.trim().parse()) {
            add(&mut largest, columns.row(pid, rest, page_size));
        }
    }
    largest
}

/// The largest process of lines `PID RSS_KIB OOM_SCORE_ADJ NAME`.
pub fn of_list(text: &str) -> Option<Largest> {
    let mut largest = None;
    for line in text.lines() {
        let mut words = line.splitn(4, ' ');
        let mut number = || words.next()?.parse::<u64>().ok();
        let (pid, kib) = (number(), number());
        let name = words.nth(1).unwrap_or_default().to_owned();
        let pid = pid.and_then(|pid| u32::try_from(pid).ok());
        let row = pid.zip(kib).map(|(pid, kib)| (Process { pid, name, resident: None }, kib));
        add(&mut largest, row.map(|(row, kib)| Process { resident: Some(kib.saturating_mul(1024)), ..row }));
    }
    largest
}

/// Counts a process, and keeps it if it is larger.
fn add(largest: &mut Option<Largest>, row: Option<Process>) {
    let Some(process) = row else { return };
    match largest {
        Some(before) => {
            before.processes = before.processes.saturating_add(1);
            if process.resident > before.process.resident {
                before.process = process;
            }
        }
        None => *largest = Some(Largest { process, processes: 1 }),
    }
}

/// Columns of a table, behind that of the id: numbers, then the name.
struct Columns {
    resident: usize,
    name: usize,
}

impl Columns {
    fn of(head: &str) -> Option<Self> {
        let names: Vec<&str> = head.split_whitespace().collect();
        let resident = names.iter().position(|name| *name == "rss")?;
        let name = names.len().checked_sub(1).filter(|&last| names.get(last) == Some(&"name"))?;
        Some(Self { resident, name })
    }

    fn row(&self, pid: u32, row: &str, page_size: u64) -> Option<Process> {
        let mut rest = row;
        let mut pages = None;
        for column in 0..self.name {
            rest = rest.trim_start();
            let (word, after) = rest.split_once(' ')?;
            // A score may be below 0.
            let number: i64 = word.parse().ok()?;
            if column == self.resident {
                pages = u64::try_from(number).ok();
            }
            rest = after;
        }
        Some(Process { pid, name: rest.trim().to_owned(), resident: Some(pages?.saturating_mul(page_size)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, name: &str, resident: Option<u64>) -> Process {
        Process { pid, name: name.to_owned(), resident }
    }

    #[test]
    fn killed_processes_have_a_name_and_their_memory() {
        let log = "[ 51.9] oom-kill:constraint=CONSTRAINT_MEMCG,task=python3,pid=93,uid=0\n\
            [ 51.9] Memory cgroup out of memory: Killed process 93 (python3) total-vm:116020kB, anon-rss:28544kB, file-rss:4kB, shmem-rss:0kB, UID:0\n\
            [ 52.0] Out of memory: Killed process 94 (a (b)) total-vm:1kB\n\
            [ 52.0] Killed process x (c)\n\
            [ 52.1] oom_reaper: reaped process 93 (python3)\n";
        let expected = [process(93, "python3", Some(28548 << 10)), process(94, "a (b)", None)];
        assert_eq!(killed(log), expected);
        assert!(killed("\u{fffd}\nKilled process 5").is_empty());
    }

    /// Of 6.1, and of 6.12 with more columns; lines of others are between them.
    #[test]
    fn the_last_table_of_any_version_is_read() {
        let old = "[   51.900000] [  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name\n\
             [   51.900001] [     77]     0    77      682      300    45056        0             0 sh\n\
             [   51.900002] eth0: link up\n\
             [   51.900003] [    893]  1000   893   116020    85760   450560        0         -1000 my name\n\
             [   51.900004] [     78]     0    78      682      x    45056        0             0 sh\n";
        let found = of_last_table(old, 4096).unwrap();
        let largest = process(893, "my name", Some(85760 * 4096));
        assert_eq!(found, Largest { process: largest, processes: 2 });
        let new = format!(
            "{old}[   60.000000] [  pid  ]   uid  tgid total_vm      rss rss_anon rss_file rss_shmem pgtables_bytes swapents oom_score_adj name\n\
             [   60.000001] [     90]     0    90      682      120      100       20         0    45056        0             0 b\n"
        );
        let found = of_last_table(&new, 65536).unwrap();
        assert_eq!(found, Largest { process: process(90, "b", Some(120 * 65536)), processes: 1 });
        for none in ["", "[ 1.0] [     90]     0    90\n", "[ 1.0] [  pid  ] uid rss\n[ 1.0] [ 9] 0 5\n"] {
            assert_eq!(of_last_table(none, 4096), None, "{none}");
        }
    }

    #[test]
    fn the_list_of_the_recorder_is_read() {
        let found = of_list("5 300 0 a b\n6 400 ? c\nx\n7 18446744073709551615 0 d\n").unwrap();
        assert_eq!(found, Largest { process: process(7, "d", Some(u64::MAX)), processes: 3 });
        assert_eq!(of_list("5 300 0 a b\n").unwrap().process, process(5, "a b", Some(300 << 10)));
        assert_eq!(of_list("5\n\n"), None);
    }
}
