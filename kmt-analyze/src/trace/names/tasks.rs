//! Names of tasks: `bash-1234`. The name is that of a time ([`comms`](crate::trace::comms)).

use kmt_common::text::{escaped, shown};

/// Name and id of a task.
pub fn task_name(comm: &[u8], pid: i32) -> String {
    format!("{}-{pid}", escaped(comm))
}

/// Name and id of a task in a message, which has the beginning of a long name.
pub fn task_in_message(comm: &[u8], pid: i32) -> String {
    format!("{}-{pid}", shown(comm))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_has_its_name_and_id() {
        assert_eq!(task_name(b"bash", 7), "bash-7");
        assert_eq!(task_name(b"a\x1bb", 7), "a\\x1bb-7");
        assert_eq!(task_in_message(b"bash", 7), task_name(b"bash", 7));
        assert!(task_in_message(&[b'x'; 5_000], 7).len() < 1_100);
    }
}
