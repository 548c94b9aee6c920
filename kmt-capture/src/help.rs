//! The help of the program: commands by their use, and a short one for an empty command line.

use clap::Command;

/// Help of an empty command line.
pub const SHORT: &str = "kmt-capture records where a Linux kernel's memory goes, into .kmt files.

  sudo kmt-capture record -d 30s -o trace.kmt    this machine, 30 seconds
  kmt-capture remote root@board -o trace.kmt     another machine, over ssh
  kmt-capture convert perf.data -o trace.kmt     a recording of another tool

kmt-analyze trace.kmt shows what matters in a recording.
Can this system record? sudo kmt-capture check
All commands: kmt-capture --help
";

/// Commands by their use, each with what it is for.
const GROUPS: [(&str, &[(&str, &str)]); 4] = [
    (
        "Record",
        &[
            ("record", "This machine: for a time, until Ctrl-C, or while a command runs"),
            ("watch", "Wait until memory grows, then record who allocates it"),
            ("remote", "Another machine, through a shell: ssh, adb, docker exec"),
            ("convert", "Saved ring buffers, trace.dat, perf.data, Perfetto, text"),
        ],
    ),
    (
        "Crashes",
        &[
            ("arm", "Record into memory that survives a crash, and leave"),
            ("collect", "After a crash: the events before it, to a file"),
        ],
    ),
    (
        "Prepare and repair",
        &[
            ("check", "Can this system record, and what not? With remedies"),
            ("snippet", "A shell script for targets without kmt-capture"),
            ("clean", "Restore tracefs after a recorder was killed"),
        ],
    ),
    (
        "Program",
        &[
            ("completions", "Print a completion script"),
            ("man", "Print the manual page of the program, or of one command"),
        ],
    ),
];

/// What all commands have in common.
const COMMON: &str = "Sizes are in bytes, or end in K, M, G, KiB, MiB or GiB: powers of 1,024. Times
are in seconds, or end in ns, us, ms, s, min or h.

Exit codes: 0 done, 1 failed, 2 usage, 3 done, but events were lost or input was
damaged";

/// Layout of the help: commands, then what all have in common, options last.
const TEMPLATE: &str = "{about-with-newline}
Usage: kmt-capture COMMAND …
       kmt-capture COMMAND --help    its options, with examples
{before-help}{common}

Options:
{options}";

/// Gives the program's help a list of commands by use.
pub fn grouped(cli: Command) -> Command {
    let list = list(&cli);
    cli.before_help(list)
        .after_help(COMMON)
        .help_template(TEMPLATE.replace("{common}", COMMON))
        .subcommand_required(true)
}

/// The commands of all groups; a build may lack some.
fn list(cli: &Command) -> String {
    let mut out = String::new();
    for (title, commands) in GROUPS {
        out += &format!("\n{title}:\n");
        for (name, about) in commands.iter().filter(|(name, _)| cli.find_subcommand(name).is_some()) {
            out += &format!("  {name:<12} {about}\n");
        }
    }
    out.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_the_list_and_options_come_last() {
        let mut cli = crate::cli::whole();
        let help = cli.render_help().to_string();
        for command in cli.get_subcommands().map(Command::get_name).filter(|name| *name != "help") {
            assert!(help.contains(&format!("\n  {command} ")), "{command}: {help}");
        }
        let at = |words: &str| help.find(words).unwrap_or_else(|| panic!("{words}: {help}"));
        assert!(at("Record:") < at("Exit codes:") && at("Exit codes:") < at("Options:"), "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
    }
}
