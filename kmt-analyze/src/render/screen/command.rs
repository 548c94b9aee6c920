//! A command of this program on a screen: its words as the program gets them. They are quoted for a shell where they are shown.
//!
//! Next commands of a report and hints of the parser are made of words, so that a task name with blanks or quotes can
//! be pasted into a shell. `page` prints them with the program and the file. A recording is a command of `kmt-capture`, which
//! needs no file.

use kmt_common::shell;

/// Command and options, without the name of the program and the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandLine {
    words: Vec<String>,
    is_recording: bool,
}

impl CommandLine {
    /// `record` of the recorder, with these options.
    pub fn recording(options: &'static str) -> Self {
        let words = std::iter::once("record").chain(options.split_ascii_whitespace());
        Self { words: words.map(str::to_owned).collect(), is_recording: true }
    }

    /// True for a command of the recorder, which reads no file.
    pub fn is_recording(&self) -> bool {
        self.is_recording
    }

    /// The program and the command, as a shell reads it.
    pub fn with_program(&self) -> String {
        format!("{} {}", if self.is_recording { "kmt-capture" } else { "kmt-analyze" }, self.shown())
    }

    /// This command with an option and its value.
    #[must_use]
    pub fn option(mut self, name: &str, value: impl ToString) -> Self {
        self.add(name, Some(&value.to_string()));
        self
    }

    /// This command with an argument, such as an address.
    #[must_use]
    pub fn argument(mut self, argument: impl ToString) -> Self {
        self.words.push(argument.to_string());
        self
    }

    /// This command with an option that has no value.
    #[must_use]
    pub fn flag(mut self, name: &str) -> Self {
        self.add(name, None);
        self
    }

    /// Adds an option.
    pub fn add(&mut self, name: &str, value: Option<&str>) {
        match value {
            // It would be an option of its own.
            Some(value) if value.starts_with('-') => self.words.push(format!("{name}={value}")),
            Some(value) => self.words.extend([name.to_owned(), value.to_owned()]),
            None => self.words.push(name.to_owned()),
        }
    }

    /// The command without its options.
    pub fn name(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    /// True if an option of that name is among its words.
    pub fn has_option(&self, name: &str) -> bool {
        let is_it = |word: &String| word.split_once('=').map_or(word.as_str(), |(name, _)| name) == name;
        self.words.iter().any(is_it)
    }

    /// As a shell reads it.
    pub fn shown(&self) -> String {
        self.words.iter().map(shell::word).collect::<Vec<_>>().join(" ")
    }
}

/// Words of a text of the program's own, which are between blanks.
impl From<&'static str> for CommandLine {
    fn from(words: &'static str) -> Self {
        let words = words.split_ascii_whitespace().map(str::to_owned).collect();
        Self { words, is_recording: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_one_word_each() {
        let line =
            CommandLine::from("callers --sort live").option("--comm", "it's a task").flag("--children");
        assert_eq!(line.name(), "callers");
        assert_eq!(line.shown(), r"callers --sort live --comm 'it'\''s a task' --children");
        assert!(line.has_option("--comm") && !line.has_option("--com") && !line.has_option("a"));
        let line = CommandLine::from("callers").option("--comm", "--sort");
        assert_eq!(line.shown(), "callers --comm=--sort");
        assert!(line.has_option("--comm") && !line.has_option("--sort"));
    }
}
