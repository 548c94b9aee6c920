//! `saved_cmdlines` and `saved_tgids`: the names of tasks.

/// A task's name as the kernel had it when the trace was saved.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskName {
    /// Thread id in the initial namespace.
    pub pid: i32,
    /// Name: at most 15 bytes, any but NUL.
    pub comm: Vec<u8>,
}

/// Parses `saved_cmdlines`: lines of `PID COMM`; a name may hold blanks. Lines that are none are passed over.
pub fn parse_saved_cmdlines(text: &[u8]) -> Vec<TaskName> {
    let mut names = Vec::new();
    for line in text.split(|&b| b == b'\n') {
        let Some(blank) = line.iter().position(|&b| b == b' ') else { continue };
        let (pid, comm) = (line.get(..blank), line.get(blank.saturating_add(1)..));
        let pid = pid.and_then(|p| core::str::from_utf8(p).ok()).and_then(|p| p.parse().ok());
        if let (Some(pid), Some(comm)) = (pid, comm) {
            names.push(TaskName { pid, comm: comm.iter().copied().take(15).collect() });
        }
    }
    names
}

/// Parses `saved_tgids`: lines of `PID TGID`.
pub fn parse_saved_tgids(text: &str) -> Vec<(i32, i32)> {
    let pair = |line: &str| {
        let (pid, tgid) = line.trim().split_once(' ')?;
        Some((pid.parse().ok()?, tgid.trim().parse().ok()?))
    };
    text.lines().filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_hold_blanks_and_any_byte() {
        let names = parse_saved_cmdlines(b"12 sh\n7 my prog (x)\n\n9 \xff\xfe\nx y\n");
        assert_eq!(names.len(), 3);
        assert_eq!(names[1], TaskName { pid: 7, comm: b"my prog (x)".to_vec() });
        assert_eq!(names[2].comm, b"\xff\xfe");
    }

    #[test]
    fn tgids_are_pairs() {
        assert_eq!(parse_saved_tgids("100 99\nx\n7 7\n"), [(100, 99), (7, 7)]);
    }
}
