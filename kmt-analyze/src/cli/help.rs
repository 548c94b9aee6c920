//! Help of the program: the list of commands by the question that they answer, and examples for each command.
//!
//! Reports come from the registry, the other commands from the command line. A test runs the parser on all examples.

use std::fmt::Write;

use clap::Command;

use crate::pass::selection::SELECTION;
use crate::reports::registry::{REPORTS, ReportGroup};
use crate::source::SOURCE;

/// Commands that are no reports, by group, in the order of the help.
const OTHERS: [(ReportGroup, &[&str]); 4] = [
    (ReportGroup::Memory, &["balance", "all"]),
    (ReportGroup::Compare, &["diff", "allocinfo", "reconcile"]),
    (ReportGroup::Events, &["info", "dump", "verify"]),
    (
        ReportGroup::Exchange,
        &[
            "report",
            "chart",
            "export",
            "slice",
            "symbolize",
            "recover",
            "anonymize",
            "account",
            "footprint",
            "completions",
            "man",
        ],
    ),
];

/// What all commands have in common.
const COMMON: &str = "Sizes are in bytes, or end in K, M, G, KiB, MiB or GiB: powers of 1,024. Lengths
of time end in ns, us, ms, s, min or h; a plain number counts in the unit of the
trace's clock.

Exit codes: 0 done, 1 failed, or a report has no answer for this file, 2 usage,
3 done, but events were lost or input was damaged";

/// Layout of the help of the program.
const TEMPLATE: &str = "{about-with-newline}
Usage: kmt-analyze FILE              findings: the most important facts of the trace
       kmt-analyze COMMAND … FILE    one question, one command
       kmt-analyze COMMAND --help    its options, with examples
{before-help}{common}

Options:
{options}";

/// Gives the program's help a list of commands by group. Options that select events are in the help of each command.
pub fn grouped(cli: Command) -> Command {
    let list = list(&cli);
    let hide = |arg: clap::Arg| {
        let is_shared = [Some(SELECTION), Some(SOURCE)].contains(&arg.get_help_heading());
        let is_compat = matches!(
            arg.get_id().as_str(),
            "compat" | "slab" | "page" | "caller" | "alloc" | "sort" | "lines"
        );
        if is_shared || is_compat { arg.hide(true) } else { arg }
    };
    cli.mut_args(hide)
        .before_help(list)
        .after_help(COMMON)
        .help_template(TEMPLATE.replace("{common}", COMMON))
}

/// The commands of all groups.
fn list(cli: &Command) -> String {
    let mut out = String::new();
    for group in ReportGroup::ALL {
        let _ = writeln!(out, "\n{}:", group.title());
        for name in commands(group) {
            // A build may lack a command.
            let Some(command) = cli.find_subcommand(name) else { continue };
            let about = command.get_about().map(ToString::to_string);
            let _ = writeln!(out, "  {name:<14} {}", about.unwrap_or_default());
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// Names of the commands of a group: reports first.
fn commands(group: ReportGroup) -> impl Iterator<Item = &'static str> {
    let reports = REPORTS.iter().filter(move |entry| entry.group == group).map(|entry| entry.name);
    let others =
        OTHERS.iter().filter(move |(of, _)| *of == group).flat_map(|(_, names)| names.iter().copied());
    reports.chain(others)
}

/// A command line behind the name of the program, and its use.
type Example = (&'static str, &'static str);

/// Examples by command, in the order of the help.
pub const EXAMPLES: &[(&str, &[Example])] = &[
    ("findings", &[("findings trace.kmt", "the same as without a command")]),
    ("all", &[("all trace.kmt > trace.txt", "every report, in one text")]),
    ("summary", &[("summary trace.kmt", "all totals"), ("summary --cpu 1 trace.kmt", "of one CPU")]),
    (
        "callers",
        &[
            ("callers --sort wasted trace.kmt", "who wastes memory"),
            ("callers --at +2.5 trace.kmt", "what was live then"),
            ("callers --by dir trace.kmt", "by directory of the kernel's source"),
        ],
    ),
    ("callgraph", &[("callgraph --by live trace.kmt", "stacks that hold memory")]),
    ("caches", &[("caches --sort live trace.kmt", "caches that hold memory")]),
    ("sizes", &[("sizes trace.kmt", "sizes that kmalloc rounds up")]),
    ("tasks", &[("tasks --sort pages trace.kmt", "tasks with most pages")]),
    ("memory", &[("memory trace.kmt", "slab memory and pages"), ("memory --by task trace.kmt", "by task")]),
    ("peak", &[("peak trace.kmt", "when most was live, and who had it")]),
    ("timeline", &[("timeline --by cache trace.kmt", "live memory over time")]),
    ("boot", &[("boot boot.kmt", "memory of a boot, and its holders")]),
    (
        "leaks",
        &[
            ("leaks trace.kmt", "what grows"),
            ("leaks -l 0 --wide trace.kmt", "all call sites, all columns"),
            ("leaks --comm nginx trace.kmt", "of one program"),
        ],
    ),
    (
        "lifetimes",
        &[
            ("lifetimes trace.kmt", "how long objects live"),
            ("lifetimes --where 'cache~^dentry' trace.kmt", "of one cache"),
        ],
    ),
    ("temporary", &[("temporary trace.kmt", "objects that are freed at once")]),
    ("crosscpu", &[("crosscpu trace.kmt", "objects that another CPU frees")]),
    ("pages", &[("pages trace.kmt", "page allocations"), ("pages --by order,gfp trace.kmt", "by kind")]),
    ("fragmentation", &[("fragmentation trace.kmt", "unused memory by place")]),
    ("waste", &[("waste trace.kmt", "bytes beyond the requested ones")]),
    ("what-if", &[("what-if trace.kmt", "other size classes of kmalloc")]),
    (
        "latency",
        &[
            ("latency trace.kmt", "who waits for memory"),
            ("latency --threshold 10ms trace.kmt", "the long waits"),
        ],
    ),
    ("vmalloc", &[("vmalloc trace.kmt", "areas of vmalloc by call site")]),
    ("percpu", &[("percpu --by module trace.kmt", "memory of each CPU by module")]),
    ("events", &[("events trace.kmt", "events by task and CPU, with rates")]),
    ("anomalies", &[("anomalies trace.kmt", "what contradicts itself")]),
    (
        "who",
        &[
            ("who 0xffff888000010060 trace.kmt", "lives of one address"),
            ("who pfn=0x1c49a6 trace.kmt", "of one page"),
        ],
    ),
    (
        "slabinfo",
        &[
            ("slabinfo trace.kmt", "events beside the kernel's counts"),
            ("slabinfo before.txt after.txt", "two copies of /proc/slabinfo: caches that changed"),
        ],
    ),
    ("baseline", &[("baseline trace.kmt", "events beside the kernel's own accounts")]),
    (
        "diff",
        &[
            ("diff before.kmt after.kmt", "two recordings"),
            ("diff --time +0..+10 --against +10..+20 trace.kmt", "two windows of one"),
        ],
    ),
    ("allocinfo", &[("allocinfo before.txt after.txt", "copies of /proc/allocinfo")]),
    (
        "balance",
        &[
            ("balance trace.kmt", "where free memory went while it was recorded"),
            ("balance before after", "two folders with copies of /proc/meminfo and others"),
        ],
    ),
    ("reconcile", &[("reconcile trace.kmt", "events beside /proc/meminfo")]),
    (
        "info",
        &[("info trace.kmt", "the recording"), ("info --show slabinfo.after trace.kmt", "a stored file")],
    ),
    (
        "dump",
        &[
            ("dump -l 20 trace.kmt", "events as the kernel prints them"),
            ("dump --where 'size>1M' trace.kmt", "some of them"),
            ("dump --follow trace.kmt", "while they are recorded"),
        ],
    ),
    ("verify", &[("verify trace.kmt", "is each part sound?")]),
    ("report", &[("report -o page.html trace.kmt", "one page for a browser")]),
    (
        "chart",
        &[
            ("chart timeline -o a.svg trace.kmt", "live memory over time"),
            ("chart flame -o a.svg trace.kmt", "stacks"),
        ],
    ),
    (
        "export",
        &[
            ("export perfetto -o a.json trace.kmt", "for ui.perfetto.dev"),
            ("export csv --of callers -o a.csv trace.kmt", "a report as a table"),
            ("export sqlite -o a.sqlite trace.kmt", "for queries"),
        ],
    ),
    ("slice", &[("slice --time +10..+12 -o part.kmt trace.kmt", "two seconds of it")]),
    ("symbolize", &[("symbolize --vmlinux vmlinux -o a.kmt trace.kmt", "source lines into the file")]),
    ("recover", &[("recover -o whole.kmt damaged.kmt", "all that can be read")]),
    ("anonymize", &[("anonymize -o public.kmt trace.kmt", "to give away")]),
    ("account", &[("account trace.kmt", "slab memory by tracker")]),
    ("footprint", &[("footprint --vmlinux vmlinux trace.kmt", "code, data and memory by directory")]),
];

/// Adds examples to the help of all commands.
pub fn with_examples(mut cli: Command) -> Command {
    for (name, examples) in EXAMPLES {
        if cli.find_subcommand(name).is_some() {
            cli = cli.mut_subcommand(name, |command| {
                let details = command.get_after_help().map_or(String::new(), |text| format!("{text}\n\n"));
                command.after_help(details + &text(examples))
            });
        }
    }
    cli
}

fn text(examples: &[Example]) -> String {
    let widest = examples.iter().map(|(line, _)| line.len()).max().unwrap_or(0);
    let line = |(line, use_of): &Example| format!("\n  kmt-analyze {line:<widest$}  # {use_of}");
    let title = if examples.len() == 1 { "Example:" } else { "Examples:" };
    title.to_owned() + &examples.iter().map(line).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let cli = crate::cli::whole();
        let mut listed: Vec<&str> = ReportGroup::ALL.into_iter().flat_map(commands).collect();
        let mut all: Vec<&str> = cli.get_subcommands().map(Command::get_name).collect();
        listed.sort_unstable();
        all.sort_unstable();
        assert_eq!(listed, all);
    }

    #[test]
    fn options_come_last() {
        let help = crate::cli::whole().render_help().to_string();
        let at = |words: &str| help.find(words).unwrap_or_else(|| panic!("{words}: {help}"));
        assert!(at("callers ") < at("Exit codes:") && at("Exit codes:") < at("Options:"), "{help}");
        assert!(at("Options:") < at("--wide"), "{help}");
    }

    #[test]
    fn the_list_fits_80_columns() {
        let list = list(&crate::cli::whole());
        let long: Vec<&str> = list.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(long.is_empty(), "{long:#?}");
    }

    #[test]
    fn every_command_has_an_example_that_parses() {
        let cli = crate::cli::whole();
        for command in cli.get_subcommands().map(Command::get_name) {
            let has = EXAMPLES.iter().any(|(name, examples)| *name == command && !examples.is_empty());
            assert!(has || ["completions", "man"].contains(&command), "{command}");
        }
        let is_built = |(name, _): &&(&str, &[Example])| cli.find_subcommand(name).is_some();
        for (line, _) in EXAMPLES.iter().filter(is_built).flat_map(|(_, examples)| *examples) {
            let words =
                line.split(" > ").next().unwrap_or_default().split(' ').map(|word| word.trim_matches('\''));
            let parsed = cli.clone().try_get_matches_from(std::iter::once("kmt-analyze").chain(words));
            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
        }
    }
}
