//! The command line.
//!
//! Commands that are not reports are dispatched here; those of the reports come from the registry (`report`). A command
//! line that the parser refuses goes to `mistakes`, which looks for the intended one. Each command gets an `Env` and
//! opens its files with `trace::open`; the result is an `Outcome`, of which `main` makes the exit code.

mod command;
mod foreign_words;
mod help;
mod mistakes;
mod other_report;
mod report;

use std::path::{Path, PathBuf};

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser};
use command::{Command, DiffArgs, InfoArgs, SummaryArgs};
use help::{grouped, with_examples};
use kmt_common::output::report_written;
use kmt_common::version::VERSION;
use kmt_common::{manual, usage};
use mistakes::{corrected, explained};
use report::with_reports;

use crate::allocinfo;
use crate::balance::{self, BalanceArgs};
use crate::built;
use crate::chart::{self, ChartOptions};
use crate::dump::{self, live};
use crate::edit;
use crate::env::Env;
use crate::export::{self, ExportOf, ExportOptions};
use crate::failure::{Failure, Outcome, Result};
#[cfg(feature = "dwarf")]
use crate::footprint::{self, FootprintArgs};
use crate::html::{self, PageOptions};
use crate::limits::{self, Limit, RunLimits};
use crate::pass::selection::Selection;
use crate::render::look::LookArgs;
use crate::render::out;
use crate::reports::column_order::ColumnOrder;
use crate::reports::common::stated::Keys;
use crate::reports::findings::Findings;
use crate::reports::output::{Output, Show};
use crate::reports::report::AnyReport;
use crate::reports::run::{self, one};
use crate::reports::summary::Summary;
use crate::reports::{account, compat, diff, info};
use crate::source::SourceArgs;
use crate::trace::named::with_names;
use crate::trace::names::SizeClasses;
use crate::trace::session::Session;
use crate::trace::{folded, open, parts, unknown};

/// Explain where a Linux kernel's memory went, from a .kmt file.
#[derive(Parser)]
#[command(
    name = "kmt-analyze",
    version = VERSION,
    about,
    args_conflicts_with_subcommands = true
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    // Without a command, the options are those of summary.
    #[command(flatten)]
    summary: SummaryArgs,
    /// Raise a limit on what a file may use, such as metadata=1G; errors name the limit
    #[arg(long = "limit", value_name = "NAME=SIZE", value_parser = limits::parse, global = true, help_heading = "Display")]
    limits: Vec<Limit>,
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    look: LookArgs,
    /// Without a command: the .kmt file to summarise; - is standard input
    file: Option<PathBuf>,
}

/// Help of an empty command line.
const SHORT: &str = "kmt-analyze explains where a Linux kernel's memory went, from a .kmt file.

  kmt-analyze trace.kmt            what matters in it
  kmt-analyze leaks trace.kmt      what grows, who allocates it, and where
  kmt-analyze callers trace.kmt    who allocates, and who holds memory

kmt-capture makes .kmt files: sudo kmt-capture record -d 30s -o trace.kmt
All commands, by question: kmt-analyze --help
Options of a command, with examples: kmt-analyze leaks --help
";

/// Parses the command line and runs its command.
pub fn run() -> Result<Outcome> {
    usage::without_arguments(SHORT);
    kmt_common::file_size::report_limit();
    let cli = whole();
    let args = corrected(&cli, std::env::args_os().collect());
    let matches = args.and_then(|args| {
        let matches = cli.clone().try_get_matches_from(&args);
        matches.map_err(|error| explained(error, &cli, &args))
    });
    execute(&matches.unwrap_or_else(|error| usage::end(&error)), Env::of_process())
}

/// The command line: commands of this module, and those of the reports.
fn whole() -> clap::Command {
    manual::with_names(with_examples(grouped(with_reports(Cli::command()))))
}

/// Runs a command line other than that of this process.
pub(crate) fn run_line<'a>(args: impl Iterator<Item = &'a str>, env: Env) -> Result<Outcome> {
    match whole().try_get_matches_from(std::iter::once("kmt-analyze").chain(args)) {
        Ok(matches) => execute(&matches, env),
        Err(error) => Err(Failure::new(error.to_string())),
    }
}

fn execute(matches: &ArgMatches, env: Env) -> Result<Outcome> {
    let limits: Vec<Limit> = matches.get_many("limits").unwrap_or_default().cloned().collect();
    let source = SourceArgs::from_arg_matches(matches).map_err(|error| Failure::new(error.to_string()))?;
    let env = &env.with_limits(RunLimits::with(&limits)).with_source(source);
    let show = show(matches, env)?;
    if let Some((entry, matches)) = report::asked(matches) {
        return report::run(entry, matches, show, env);
    }
    let cli = Cli::from_arg_matches(matches).map_err(|error| Failure::new(error.to_string()))?;
    match (cli.command, cli.file) {
        (Some(command), _) => dispatch(command, show, env),
        (None, Some(file)) => summarise(&[file], cli.summary, show, env, &Findings::default()),
        (None, None) => {
            Err(Failure::new("no file to summarise").hint("kmt-analyze --help lists the commands"))
        }
    }
}

/// Display options that a command line asks for.
fn show(matches: &ArgMatches, env: &Env) -> Result<Show> {
    let args = LookArgs::from_arg_matches(matches).map_err(|error| Failure::new(error.to_string()))?;
    Ok(Show { look: args.look(env), pager: !args.no_pager })
}

fn summarise(
    files: &[PathBuf],
    args: SummaryArgs,
    show: Show,
    env: &Env,
    report: &dyn AnyReport,
) -> Result<Outcome> {
    let selection = args.select;
    match args.options.compat {
        None => {
            let output = Output { limit: None, json: args.json, show };
            with_sums(env, files, |session| {
                one(session, &selection, output, (report, &ColumnOrder::default()))
            })
        }
        Some(tool) => {
            let options = args.options;
            with(env, files, |session| compat::run(session, tool, &options, args.json))
        }
    }
}

fn dispatch(command: Command, show: Show, env: &Env) -> Result<Outcome> {
    match command {
        Command::Summary { summary, files } => summarise(&files, summary, show, env, &Summary),
        Command::Info(args) => {
            let InfoArgs { show: name, at, diff, lines, target } = args;
            let output = Output { limit: lines.lines, json: target.json, show };
            shown(env, &target.files, |session| match (name, diff) {
                (Some(name), _) => info::show(session, &name, at.as_ref()),
                (None, true) => info::diff(session, &output),
                (None, false) => info::run(session, &output),
            })
        }
        Command::Dump(options) => dump(&options, env),
        Command::All { select, lines, target } => {
            let output = Output { limit: lines, json: target.json, show };
            with_sums(env, &target.files, |session| run::all(session, &select, output))
        }
        Command::Diff(args) => diff(*args, show, env),
        Command::Allocinfo(args) => allocinfo::run(&args, env, &show),
        Command::Balance(args) => balance(&args, env, &show),
        Command::Account { options, select, target } => with(env, &target.files, |session| {
            account::run(session, &options, &select, &plain(target.json, show))
        }),
        Command::Chart(options) => draw(*options, env),
        Command::Report(options) => page(&options, env),
        Command::Export(options) => export(&options, env),
        Command::Slice(options) => {
            copied(env, &options.input, &options.made, |session| edit::slice(session, &options))
        }
        Command::Recover { files, made } => {
            let file = parts::only(&files, "recover", parts::one_by_one)?;
            check_binary(&made.target(), env)?;
            edit::recover(file, &made, &open::bytes_in(file, env)?, env)
        }
        Command::Symbolize { input, made } => {
            check_binary(&made.target(), env)?;
            let parts::Opened { path, bytes } = parts::open(&input.files, env)?;
            let bytes = with_names(&path, bytes, env)?;
            edit::symbolize(&path, &made, &bytes, env)
        }
        #[cfg(feature = "dwarf")]
        Command::Footprint { args, select, files } => footprint(&args, &select, &files, env, &show),
        Command::Verify { json, files } => {
            let file = parts::only(&files, "verify", parts::one_by_one)?;
            let bytes = open::bytes_in(file, env)?;
            let trace = open::trace_in(file, &bytes, env)?;
            edit::verify(&Session::in_env(file, &trace, env), &bytes, &plain(json, show))
        }
        Command::Anonymize(options) => {
            copied(env, &options.input, &options.made, |session| edit::anonymize(session, &options))
        }
        Command::Reconcile { target } => {
            with(env, &target.files, |session| compat::reconcile(session, &plain(target.json, show)))
        }
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut whole(), "kmt-analyze", &mut script);
            print(&script, env)
        }
        Command::Man { command } => {
            let mut page = Vec::new();
            clap_mangen::Man::new(manual::subject(whole(), command.as_deref()))
                .render(&mut page)
                .map_err(|e| Failure::new(format!("cannot write the manual page: {e}")))?;
            print(&page, env)
        }
    }
}

/// Output of a command without `-l`.
fn plain(json: bool, show: Show) -> Output {
    Output { limit: None, json, show }
}

fn export(options: &ExportOptions, env: &Env) -> Result<Outcome> {
    let of = match options.of.as_str() {
        "events" => ExportOf::Events,
        "objects" => ExportOf::Objects,
        "call-sites" => ExportOf::CallSites,
        name => ExportOf::Report(run::all_report(name).map_err(Failure::usage)?),
    };
    if matches!(options.format, export::Format::Perfetto | export::Format::Pprof) {
        check_binary(&options.target(), env)?;
    }
    export::check(options)?;
    // Each format decides whether it has an answer for files with sums.
    let outcome = with_sums(env, &options.files, |session| export::run(session, options, &of))?;
    report_written(&options.output, &export::next(options));
    Ok(outcome)
}

fn draw(mut options: ChartOptions, env: &Env) -> Result<Outcome> {
    built::check_picture(&options.output)?;
    options.target().check()?;
    if let Some(against) = options.against.take() {
        if !options.kind.is_of_stacks() {
            return Err(Failure::new("--against compares stacks: it is for flame and icicle"));
        }
        options.before = Some(with_sums(env, &[against], |session| chart::before(session, &options))?);
    }
    // Profiles and reports decide whether they have an answer for files with sums.
    let outcome = with_sums(env, &options.files, |session| chart::run(session, &options))?;
    report_written(&options.output, "open it in a browser");
    Ok(outcome)
}

#[cfg(feature = "dwarf")]
fn footprint(
    args: &FootprintArgs,
    selection: &Selection,
    files: &[PathBuf],
    env: &Env,
    show: &Show,
) -> Result<Outcome> {
    if let Some(against) = &args.against {
        return footprint::compare(args, against, env, show);
    }
    if files.is_empty() {
        return footprint::run(args, None, selection, env, show);
    }
    let mut lined = env.clone();
    if let Some(build) = args.build.as_ref().filter(|_| !env.source.is_given()) {
        // Without debug information, names of functions show their objects.
        lined.source.vmlinux = footprint::lined_kernel(build)?;
    }
    with(&lined, files, |session| footprint::run(args, Some(session), selection, env, show))
}

fn balance(args: &BalanceArgs, env: &Env, show: &Show) -> Result<Outcome> {
    match balance::is_recording(args, env) {
        true => with_sums(env, &args.files, |session| balance::of_recording(args, session, show)),
        false => balance::run(args, env, show),
    }
}

fn page(options: &PageOptions, env: &Env) -> Result<Outcome> {
    if options.open && options.output == Path::new("-") {
        return Err(Failure::new("--open opens a file").hint("add -o FILE.html").usage());
    }
    check_binary(&options.target(), env)?;
    let outcome = with_sums(env, &options.files, |session| {
        let changes = |file: &PathBuf| {
            with_sums(env, std::slice::from_ref(file), |before| {
                Ok(html::changes(before, session, &options.selection))
            })
        };
        html::run(session, options, options.against.as_ref().map(changes).transpose()?)
    })?;
    report_written(
        &options.output,
        if options.open { "opened in a browser" } else { "open it in a browser" },
    );
    if options.open {
        html::open(&options.output)?;
    }
    Ok(outcome)
}

fn dump(options: &dump::DumpOptions, env: &Env) -> Result<Outcome> {
    if options.follow {
        return live::run(options, env);
    }
    shown(env, &options.files, |session| dump::run(session, options))
}

fn diff(args: DiffArgs, show: Show, env: &Env) -> Result<Outcome> {
    let (first, second) = args.selections();
    let DiffArgs { before, after, .. } = &args;
    let after = after.as_deref().unwrap_or(before);
    if before != after && open::has_proc_texts(before) && open::has_proc_texts(after) {
        return Err(open::proc_texts(&[before, after]));
    }
    let side = |file: &Path, more: &[PathBuf]| -> Vec<PathBuf> {
        std::iter::once(file).chain(more.iter().map(PathBuf::as_path)).map(Path::to_owned).collect()
    };
    let (before, after) = (side(before, &args.repeat_before), side(after, &args.repeat_after));
    if before.iter().chain(&after).any(|file| file == Path::new("-")) {
        return Err(Failure::new("diff reads each file twice, and standard input can be read once")
            .hint("save it to a file first"));
    }
    let (mut builds, mut classes, mut has_sums) = (Vec::new(), Vec::new(), false);
    for file in before.iter().chain(&after) {
        let of = |session: &Session<'_>| {
            // Sums have no task: all files are compared with what the recorder allocated.
            has_sums |= session.trace.header().folded;
            Ok((diff::build(session), SizeClasses::of(session.trace)))
        };
        let (build, names) = with_sums(env, std::slice::from_ref(file), of)?;
        builds.push(build);
        classes.push(names);
    }
    let [first, second] = [first, second].map(|selection| Selection {
        without_recorder: selection.without_recorder && !has_sums,
        ..selection
    });
    // Files without a build may be of different ones.
    let exact = before == after || builds.iter().all(|b| b.is_some() && *b == builds[0]);
    let naming = diff::Naming { by: args.by, exact, classes: SizeClasses::shared(classes) };
    let mut outcome = Outcome::Done;
    let mut profiles = |files: &[PathBuf], selection: &Selection| -> Result<Vec<diff::RunProfile>> {
        let mut out = Vec::new();
        for file in files {
            let ended = with_sums(env, std::slice::from_ref(file), |session| {
                selection.check(session, "diff", Keys::All)?;
                diff::check_sums(session, selection, naming.by)?;
                let (profile, faults) = diff::compute(session, selection, naming);
                out.push(profile);
                Ok(open::outcome(session, &faults))
            })?;
            if ended == Outcome::Incomplete {
                outcome = ended;
            }
        }
        Ok(out)
    };
    let (a, b) = (profiles(&before, &first)?, profiles(&after, &second)?);
    let name = |files: &[PathBuf], time: &Option<String>| {
        let names: Vec<String> = files.iter().map(|f| f.display().to_string()).collect();
        let time = time.as_ref().map_or(String::new(), |t| format!(" at {t}"));
        format!("{}{time}", names.join(" + "))
    };
    let options = diff::DiffOptions {
        names: [name(&before, &args.time_text()), name(&after, &args.against_text())],
        arguments: args.arguments(),
        by: args.by,
        per_second: args.per_second(),
        rates: false,
        all: args.all,
        fail_over: args.fail_over,
        output: Output { limit: args.lines.lines, json: args.json, show },
        order: args.order.clone(),
        by_function: !exact,
    };
    diff::run(&a, &b, &options, env)?;
    Ok(outcome)
}

/// Fails where an output that is not for a terminal cannot be written, before the file is read.
fn check_binary(target: &export::Target, env: &Env) -> Result<()> {
    if !env.is_in_memory() {
        target.refuse_terminal()?;
    }
    target.check()
}

/// Runs a command that accounts for memory: refused if this program cannot read the fields that it needs.
fn with<R>(env: &Env, files: &[PathBuf], run: impl FnOnce(&Session<'_>) -> Result<R>) -> Result<R> {
    with_sums(env, files, |session| {
        folded::check_all_events(&session.path, session.trace)?;
        run(session)
    })
}

/// Runs a command that accounts for memory, and adds the sums of folded lives to the events.
fn with_sums<R>(env: &Env, files: &[PathBuf], run: impl FnOnce(&Session<'_>) -> Result<R>) -> Result<R> {
    shown(env, files, |session| {
        unknown::check_accounting(&session.path, session.trace)?;
        run(session)
    })
}

/// Runs a command that rewrites events.
fn copied(
    env: &Env,
    input: &edit::InputArgs,
    made: &edit::OutputArgs,
    run: impl FnOnce(&Session<'_>) -> Result<Outcome>,
) -> Result<Outcome> {
    check_binary(&made.target(), env)?;
    shown(env, &input.files, |session| {
        unknown::check_copying(&session.path, session.trace)?;
        run(session)
    })
}

/// Runs a command that shows a file without accounting.
///
/// Several files are those of one recording.
fn shown<R>(env: &Env, files: &[PathBuf], run: impl FnOnce(&Session<'_>) -> Result<R>) -> Result<R> {
    let parts::Opened { path, bytes } = parts::open(files, env)?;
    let env = parts::env_of(files, env);
    let env = &*env;
    let bytes = with_names(&path, bytes, env)?;
    bytes.without_growing(|| {
        let trace = open::trace_in(&path, &bytes, env)?;
        run(&open::session_in(&path, &trace, env)?)
    })
}

fn print(text: &[u8], env: &Env) -> Result<Outcome> {
    out::print(env, false, text)?;
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_is_consistent() {
        whole().debug_assert();
    }

    /// `AllocinfoKey of the rows`, as after a type was renamed in all of the text.
    #[test]
    fn no_help_begins_with_the_name_of_a_type() {
        for command in whole().get_subcommands() {
            for option in command.get_arguments() {
                let help = option.get_help().map(ToString::to_string).unwrap_or_default();
                let first = help.split(' ').next().unwrap_or_default();
                let is_type = first.chars().skip(1).any(char::is_uppercase)
                    && first.chars().any(char::is_lowercase)
                    && first.chars().all(char::is_alphanumeric);
                assert!(!is_type, "{} {}: {help}", command.get_name(), option.get_id());
            }
        }
    }

    #[test]
    fn every_command_has_a_manual_page() {
        for command in whole().get_subcommands() {
            let name = command.get_name();
            let mut page = Vec::new();
            clap_mangen::Man::new(manual::subject(whole(), Some(name))).render(&mut page).unwrap();
            let title = format!(".TH kmt-analyze-{name} 1");
            assert!(String::from_utf8(page).unwrap().contains(&title), "{name}");
            assert!(whole().try_get_matches_from(["kmt-analyze", "man", name]).is_ok(), "{name}");
        }
        let mistyped = whole().try_get_matches_from(["kmt-analyze", "man", "leeks"]).unwrap_err();
        assert_eq!(mistyped.exit_code(), 2);
        let text = mistyped.to_string();
        assert!(text.contains("commands are ") && text.contains(" leaks"), "{text}");
    }
}
