//! The shell on the target: it is greeted, becomes root's, reports facts, takes files, and leaves nothing.

use std::io::Read;
use std::time::{Duration, Instant};

use kmt_common::shell::quoted;

use super::connection::Connection;
use super::facts::{self, RemoteFacts, RemoteFolder};
use crate::failure::{Failure, Result};

/// Functions for the target's shell.
const SCRIPT: &str = include_str!("target.sh");
/// Time for an answer of the target.
pub const ANSWER: Duration = Duration::from_secs(30);
/// Text that a login may print before the shell reads commands.
const GREETING_MAX: u64 = 64 << 10;

/// Ways to become root. None of them may ask for a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum RootBy {
    /// sudo -n
    Sudo,
    /// doas -n
    Doas,
    /// su root -c
    Su,
}

impl RootBy {
    fn command(self) -> &'static str {
        match self {
            Self::Sudo => "exec sudo -n sh",
            Self::Doas => "exec doas -n sh",
            Self::Su => "exec su root -c sh",
        }
    }
}

/// A shell that answers.
pub struct Shell {
    /// Connection to the shell.
    pub line: Connection,
    /// Random word that marks the lines of our script.
    nonce: String,
}

impl Shell {
    /// Greets the shell. The command may ask for a password on the terminal first: `timeout` is the time for both.
    pub fn greet(line: Connection, timeout: Duration) -> Result<Self> {
        let mut shell = Self { line, nonce: nonce()? };
        let until = Instant::now() + timeout;
        match shell.hello(until) {
            Err(_) if Instant::now() >= until => Err(Failure::new(format!(
                "{}: the shell on the target did not answer within {} s",
                shell.line.name,
                timeout.as_secs_f64()
            ))
            .hint("check that the target is up and reachable, and run this command by hand; --connect-timeout gives it more time")),
            greeted => greeted.map(|()| shell),
        }
    }

    /// Sends a line that the shell must answer, and skips what comes before the answer.
    fn hello(&mut self, until: Instant) -> Result<()> {
        // An echo of the command is not the answer.
        let text = format!("printf '\\nKMT-''%s hello\\n' {}\n", self.nonce);
        self.line.send(text.as_bytes())?;
        let before = self.line.received;
        let wanted = format!("KMT-{} hello", self.nonce);
        loop {
            let line = self.line.line(Some(until))?;
            if line == wanted.as_bytes() {
                return Ok(());
            }
            if line.strip_suffix(b"\r").is_some_and(|line| line == wanted.as_bytes()) {
                return Err(Failure::new(format!(
                    "{} gives a terminal, which changes binary data",
                    self.line.name
                ))
                .hint("use `ssh -T`, `adb shell -T`, `docker exec -i` without -t"));
            }
            if self.line.received - before > GREETING_MAX {
                return Err(Failure::new(format!(
                    "{}: the target sends text, but its shell does not answer",
                    self.line.name
                ))
                .hint("the command must give a POSIX shell that reads commands from standard input"));
            }
        }
    }

    /// Replaces the shell by one of root.
    pub fn become_root(&mut self, by: RootBy) -> Result<()> {
        self.line.send(format!("{}\n", by.command()).as_bytes())?;
        self.hello(Instant::now() + ANSWER).map_err(|failure| {
            Failure::new(format!(
                "`{}` gives no root shell on the target: {failure}",
                by.command().trim_start_matches("exec ")
            ))
            .hint("allow it without a password (NOPASSWD, nopass), or log in as root")
        })
    }

    /// Facts about the target.
    pub fn facts(&mut self) -> Result<RemoteFacts> {
        let text = format!("{}echo \"KMT-{} end\"\n", facts::SCRIPT, self.nonce);
        self.line.send(text.as_bytes())?;
        let mut facts = RemoteFacts::default();
        let end = format!("KMT-{} end", self.nonce);
        let until = Some(Instant::now() + ANSWER);
        for _ in 0..facts::LINES_MAX {
            let line = self.line.line(until)?;
            if line == end.as_bytes() {
                return Ok(facts);
            }
            facts.add(&line);
        }
        Err(Failure::new(format!(
            "{}: the target reports more than {} facts",
            self.line.name,
            facts::LINES_MAX
        )))
    }

    /// Defines the functions of the script. `silence`: the target gives up after this time without data.
    pub fn define(&mut self, silence: Duration) -> Result<()> {
        let seconds = silence.as_secs_f64().ceil().max(1.0);
        let text = format!("N={} S={seconds} H={} d= a= o= p= w=\n{SCRIPT}", self.nonce, seconds / 2.0);
        self.line.send(text.as_bytes())
    }

    /// Makes a folder in the first of these where it can be made. With `execute`, where programs may run. `None`: nowhere.
    pub fn folder(&mut self, folders: &[&RemoteFolder], execute: bool) -> Result<Option<String>> {
        let mut text = format!("folder {}", if execute { "exec" } else { "any" });
        folders.iter().for_each(|folder| text.extend([" ", folder.path.as_str()]));
        text.push('\n');
        self.line.send(text.as_bytes())?;
        let answer = self.answer("folder", Some(Instant::now() + ANSWER))?;
        let expected = |folder: &&&RemoteFolder| {
            answer == format!("{}/kmt-{}", folder.path.trim_end_matches('/'), self.nonce)
        };
        match folders.iter().find(expected) {
            Some(_) => Ok(Some(answer)),
            None if answer.is_empty() => Ok(None),
            None => Err(self.unexpected("the name of a folder")),
        }
    }

    /// Sends a file, and compares its checksum there with the `expected` one. Returns the time that it took.
    pub fn send(&mut self, path: &str, bytes: &[u8], expected: u32, facts: &RemoteFacts) -> Result<Duration> {
        let begin = Instant::now();
        let how = if facts.has_head { "head" } else { "dd" };
        let text = [
            b"take ",
            bytes.len().to_string().as_bytes(),
            b" ",
            &quoted(path.as_bytes()),
            b" ",
            how.as_bytes(),
            b"\n",
        ]
        .concat();
        self.line.send(&text)?;
        self.answer("ready", Some(Instant::now() + ANSWER))?;
        self.line.send(bytes)?;
        let answer = self.arrived(bytes.len() as u64)?;
        let mut numbers = answer.split_whitespace().map(|word| word.parse::<u64>().ok());
        let (len, sum) = (numbers.next().flatten(), numbers.next().flatten());
        let is_same = !facts.has_cksum || sum == Some(expected.into());
        if len != Some(bytes.len() as u64) || !is_same {
            return Err(Failure::new(format!(
                "{}: the file that was sent arrived changed or cut ({answer})",
                self.line.name
            ))
            .hint("is the folder on the target full? Is the connection without translation of characters?"));
        }
        Ok(begin.elapsed())
    }

    /// Waits for the end of a file, as long as it grows there. On a slow line much is on its way when all was sent.
    fn arrived(&mut self, len: u64) -> Result<String> {
        let mut there = 0;
        loop {
            let (word, rest) = self.one_of(&["grown", "got"], Some(Instant::now() + ANSWER))?;
            match rest.trim().parse::<u64>() {
                _ if word == "got" => return Ok(rest),
                Ok(now) if now > there && now <= len => there = now,
                _ => return Err(self.unexpected("the length of a file that grows")),
            }
        }
    }

    /// Waits for our line with this word, and returns its rest.
    pub fn answer(&mut self, word: &str, until: Option<Instant>) -> Result<String> {
        self.one_of(&[word], until).map(|(_, rest)| rest)
    }

    /// Waits for our line with one of these words; the word, and its rest. Other text, which commands on the target print,
    /// is shown.
    fn one_of(&mut self, words: &[&str], until: Option<Instant>) -> Result<(String, String)> {
        loop {
            let line = self.line.line(until)?;
            let line = String::from_utf8_lossy(&line).into_owned();
            let Some(rest) = line.strip_prefix(&format!("KMT-{} ", self.nonce)) else {
                self.line.messages.show(line.as_bytes());
                continue;
            };
            let (found, rest) = rest.split_once(' ').unwrap_or((rest, ""));
            if !words.contains(&found) {
                return Err(self.unexpected(&words.join(", ")));
            }
            return Ok((found.to_owned(), rest.to_owned()));
        }
    }

    /// A line of ours with these words.
    pub fn marked(&self, words: &str) -> String {
        format!("KMT-{} {words}", self.nonce)
    }

    /// The failure of a target with another answer than the script gives.
    pub fn unexpected(&self, expected: &str) -> Failure {
        Failure::new(format!("{}: the target sent something else than expected ({expected})", self.line.name))
            .hint("check that the command reaches the target that you mean, and that its shell is a POSIX shell")
    }

    /// Sends a command.
    pub fn run(&mut self, command: &[u8]) -> Result<()> {
        self.line.send(&[command, b"\n"].concat())
    }
}

/// A random word of 16 hexadecimal digits.
fn nonce() -> Result<String> {
    let mut bytes = [0; 8];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(|e| Failure::io("reading", std::path::Path::new("/dev/urandom"), &e))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
