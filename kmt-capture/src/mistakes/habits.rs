//! Options of `perf record` and `trace-cmd record` that `record` does not have: what they are called here.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use kmt_common::programs::line;

/// The name of such an option, and the command line with its own options; `None`: it is not one of these.
pub fn of(error: &clap::Error, args: &[OsString], cli: &clap::Command) -> Option<(String, String)> {
    let ContextValue::String(word) = error.get(ContextKind::InvalidArg)? else { return None };
    let what = match word.as_str() {
        "-a" | "--all-cpus" => "all CPUs are always recorded",
        "-t" | "--time" => "-d is the time of a recording",
        _ => return None,
    };
    let words = with_command(own_words(args), cli);
    Some((format!("record has no option {word}: {what}"), line("kmt-capture", words.into_iter().skip(1))))
}

/// The words with the options of `record`, up to the recorded command.
fn own_words(args: &[OsString]) -> Vec<OsString> {
    let mut out = Vec::new();
    let mut words = args.iter();
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("--") => {
                out.push(word.clone());
                out.extend(words.cloned());
                break;
            }
            Some("-a" | "--all-cpus") => {}
            Some("-t" | "--time") => {
                let time = words.as_slice().first().and_then(|next| seconds(next.to_str()?));
                words =
                    if time.is_some() { words.as_slice().get(1..).unwrap_or_default().iter() } else { words };
                out.push("-d".into());
                out.push(time.unwrap_or_else(|| "10s".to_owned()).into());
            }
            other => match other.and_then(|word| seconds(word.strip_prefix("-t")?)) {
                Some(time) => out.push(format!("-d{time}").into()),
                None => out.push(word.clone()),
            },
        }
    }
    out
}

/// Units as a word of its own, with those of this program.
const UNITS: [(&str, &[&str]); 4] = [
    ("ms", &["ms", "msec", "millisecond", "milliseconds"]),
    ("s", &["s", "sec", "secs", "second", "seconds"]),
    ("min", &["m", "min", "mins", "minute", "minutes"]),
    ("h", &["h", "hour", "hours"]),
];

/// The line of a time whose unit is a word of its own (`-d 10 sec`); `None`: it is another line.
pub fn time_in_two_words(
    error: &clap::Error,
    args: &[OsString],
    cli: &clap::Command,
) -> Option<(String, String)> {
    let at = command_at(error, args).filter(|_| error.kind() == ErrorKind::UnknownArgument)?;
    let word = args.get(at)?.to_str()?;
    let (unit, _) = UNITS.iter().find(|(_, words)| words.contains(&word))?;
    let number = args.get(at.checked_sub(1)?)?.to_str()?;
    let is_number = |text: &str| text.parse::<f64>().is_ok_and(|number| number > 0.0);
    let is_option = |text: &str| text.starts_with('-');
    let joined = number.split_once('=').map_or(number.get(2..), |(_, value)| Some(value));
    let is_it = match is_option(number) {
        true => joined.is_some_and(is_number),
        false => is_number(number) && args.get(at.checked_sub(2)?)?.to_str().is_some_and(is_option),
    };
    if !is_it {
        return None;
    }
    let mut words = args.to_vec();
    words.remove(at);
    *words.get_mut(at - 1)? = format!("{number}{unit}").into();
    let words = with_command(words, cli);
    cli.clone().try_get_matches_from(&words).ok()?;
    let what = format!("a time is one word: {}{unit}", if is_option(number) { joined? } else { number });
    Some((what, line("kmt-capture", words.into_iter().skip(1))))
}

/// A number of seconds, with its unit.
fn seconds(word: &str) -> Option<String> {
    let number: f64 = word.strip_suffix('s').unwrap_or(word).parse().ok()?;
    (number > 0.0 && number.is_finite()).then(|| format!("{number}s"))
}

/// The words with `--` before a command that they record.
fn with_command(words: Vec<OsString>, cli: &clap::Command) -> Vec<OsString> {
    let Err(error) = cli.clone().try_get_matches_from(&words) else { return words };
    match command_at(&error, &words).filter(|_| error.kind() == ErrorKind::UnknownArgument) {
        Some(at) => {
            let (before, command) = words.split_at(at);
            [before, &[OsString::from("--")], command].concat()
        }
        None => words,
    }
}

/// Place of the first word of a command that is recorded.
pub fn command_at(error: &clap::Error, args: &[OsString]) -> Option<usize> {
    let ContextValue::String(word) = error.get(ContextKind::InvalidArg)? else { return None };
    let at = args.iter().position(|arg| arg == word.as_str())?;
    (!word.starts_with('-')).then_some(at)
}
