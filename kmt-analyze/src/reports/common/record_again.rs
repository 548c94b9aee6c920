//! The recording that would not have lost events: the same one with larger buffers.
//!
//! The recorder stores the buffer size that it would have needed, and the command that it recorded. The length is that of the
//! file. A command is proposed only if its words are known: the file has them without the quotes of a shell.

use kmt_format::kernel::ClockUnit;

use crate::render::screen::{CommandLine, Lead};
use crate::trace::session::Session;

/// A recording with larger buffers.
#[derive(Debug, Clone)]
pub struct RecordAgain {
    /// Its command; `None`: the size of the buffers is unknown.
    command: Option<CommandLine>,
}

const SECOND: u64 = 1_000_000_000;

impl RecordAgain {
    /// Of a file that a recorder made from buffers of its own.
    pub fn of(session: &Session<'_>) -> Option<Self> {
        let metadata = session.trace.metadata();
        let is_live = metadata.text("source") == Some("live") && metadata.text("record.adopted").is_none();
        let bytes = metadata.text("recorder.buffer_needed").and_then(|number| number.parse::<u64>().ok());
        is_live.then(|| Self { command: bytes.map(|bytes| command(session, bytes.div_ceil(1 << 20))) })
    }

    /// The command, as a shell reads it.
    pub fn shown(&self) -> Option<String> {
        self.command.as_ref().map(CommandLine::with_program)
    }

    /// The verdict, with the command below it; `None`: the command is unknown.
    pub fn lead(&self, verdict: &str) -> Option<Lead> {
        let command = self.command.clone()?;
        Some(Lead { sentence: format!("{verdict} Record again with larger buffers:"), command })
    }
}

/// `6.7 % of all events were lost; growth is not judged.`
pub fn not_judged_for(lost: &str, again: Option<&RecordAgain>) -> String {
    let first = lost.chars().next().map_or(String::new(), |first| first.to_ascii_uppercase().to_string());
    let lost = format!("{first}{}", lost.get(first.len()..).unwrap_or_default());
    let remedy = match again {
        Some(RecordAgain { command: None }) => " Record again with larger buffers (--buffer-size).",
        _ => "",
    };
    format!("{lost}; growth is not judged.{remedy}")
}

/// The recording with buffers of that size, in MiB.
fn command(session: &Session<'_>, mib: u64) -> CommandLine {
    let metadata = session.trace.metadata();
    let recorded = metadata.text("record.command").filter(|line| !line.trim().is_empty());
    let size = |line: CommandLine| line.option("--buffer-size", format!("{mib}M"));
    let recording = CommandLine::recording("");
    if let Some(words) = recorded.and_then(words) {
        let line = size(recording).argument("--");
        return words.into_iter().fold(line, CommandLine::argument);
    }
    // A ring waits for an event, however long that takes.
    let is_timed = session.unit() == ClockUnit::Nanoseconds && metadata.text("record.ring").is_none();
    let length =
        session.first_time().zip(session.last_time()).map(|(first, last)| last.saturating_sub(first));
    match length.filter(|_| is_timed) {
        Some(length) => {
            let seconds = (length.saturating_add(SECOND / 2) / SECOND).max(1);
            size(recording.option("-d", format!("{seconds}s")))
        }
        None => size(recording),
    }
}

/// Words of a command whose blanks certainly divide words; `None`: one of them may have been quoted.
fn words(line: &str) -> Option<Vec<&str>> {
    let words: Vec<&str> = line.split(' ').collect();
    let is_plain = |word: &&str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
        !word.is_empty() && word.chars().all(is_plain)
    };
    // A script behind -c has blanks of its own.
    let is_script = |word: &&str| word.starts_with('-') && !word.starts_with("--") && word.ends_with('c');
    (words.iter().all(is_plain) && !words.iter().any(is_script)).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_command_are_known_unless_they_may_have_been_quoted() {
        assert_eq!(words("/usr/bin/find / -xdev"), Some(vec!["/usr/bin/find", "/", "-xdev"]));
        for line in ["sh -c sleep 3", "bash -lc make all", "find / -name *.c", "echo  two", "echo $HOME"] {
            assert_eq!(words(line), None, "{line}");
        }
    }

    #[test]
    fn a_verdict_names_the_option_where_the_size_is_unknown() {
        let unknown = RecordAgain { command: None };
        assert!(unknown.lead("Lost.").is_none());
        assert_eq!(
            not_judged_for("an unknown number of events was lost", Some(&unknown)),
            "An unknown number of events was lost; growth is not judged. Record again with larger buffers (--buffer-size)."
        );
        let known = RecordAgain { command: Some(CommandLine::recording("--buffer-size 9M")) };
        let verdict = not_judged_for("2.0 % of all events were lost", Some(&known));
        assert_eq!(verdict, "2.0 % of all events were lost; growth is not judged.");
        let least = not_judged_for("at least 12 events were lost", Some(&known));
        assert_eq!(least, "At least 12 events were lost; growth is not judged.");
        assert_eq!(
            known.lead(&verdict).unwrap().sentence,
            format!("{verdict} Record again with larger buffers:")
        );
        assert_eq!(known.shown().unwrap(), "kmt-capture record --buffer-size 9M");
    }
}
