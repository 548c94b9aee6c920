//! `balance`: MemTotal split into accounts that do not overlap, at two times, and what is in no account.
//!
//! The kernel's texts are in a recording, or were saved in folders: then no trace is needed. Accounts are made in
//! `trace/accounts`, rows, pages by use and the screen in `reports/balance`.

mod folder;
mod page_pool;

use folder::Source;

use std::path::{Path, PathBuf};

use kmt_common::{shell, tell};

use crate::env::Env;
use crate::export;
use crate::failure::{Failure, Outcome, Result};
use crate::limits;
use crate::pass::may_have_any;
use crate::render::out::{Schema, losses, print, print_json};
use crate::render::screen::page;
use crate::reports::balance::{self, BalanceRows};
use crate::reports::grouped::GroupKey;
use crate::reports::output::Show;
use crate::trace::accounts::{SavedTexts, Texts};
use crate::trace::folded;
use crate::trace::session::Session;

/// Caches and holders on the screen without `-l`.
const ROWS: usize = 10;

/// Options of `balance`.
#[derive(Debug, clap::Args)]
pub struct BalanceArgs {
    /// Show at most N caches, and N holders of pages; 0: all [default: 10, all with --json]
    #[arg(short, long = "lines", value_name = "N", value_parser = limits::lines)]
    lines: Option<usize>,
    /// Show the pages of a recording by these keys, in place of the holders of those in no account: call_site, function, line,
    /// file, dir, subsystem, module, order, migratetype, task, comm, cgroup, cpu, gfp. Several keys: a row for each combination
    #[arg(long, value_name = "GROUP", value_delimiter = ',', value_parser = GroupKey::parse_pages)]
    by: Vec<&'static GroupKey>,
    /// Print JSON (docs/json.md)
    #[arg(long)]
    json: bool,
    /// Print the accounts as CSV
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// A .kmt file, or the files of one recording; or a folder with saved /proc texts (meminfo, zoneinfo, vmstat, slabinfo),
    /// or one meminfo; with a second, later one: the changes
    #[arg(value_name = "FILE|FOLDER", required = true)]
    pub files: Vec<PathBuf>,
}

impl BalanceArgs {
    /// Largest number of caches, and of holders.
    fn rows(&self) -> usize {
        self.lines.unwrap_or(if self.json { usize::MAX } else { ROWS })
    }
}

/// True if the command line names a recording, not saved texts.
pub fn is_recording(args: &BalanceArgs, env: &Env) -> bool {
    args.files.iter().all(|path| Source::of(path, env) == Source::Recording)
}

/// Prints the balance of saved texts.
pub fn run(args: &BalanceArgs, env: &Env, show: &Show) -> Result<Outcome> {
    if !args.by.is_empty() {
        return Err(
            Failure::new("--by needs a recording: saved texts do not have the events of pages").usage()
        );
    }
    let parsed = |path: &Path, saved: &SavedTexts<'_>| Texts::parse(&path.display().to_string(), saved, None);
    let (before, after) = match args.files.as_slice() {
        [first, second] => {
            let [first, second] =
                [first, second].map(|path| folder::read(path, None, env).map(|saved| (path, saved)));
            let ((first, of_first), (second, of_second)) = (first?, second?);
            (Some(parsed(first, &of_first)?), parsed(second, &of_second)?)
        }
        [one] => match Source::of(one, env) {
            Source::TwoTimes => {
                let [before, after] = ["before", "after"].map(|when| folder::read(one, Some(when), env));
                (Some(parsed(one, &before?)?), parsed(one, &after?)?)
            }
            _ => (None, parsed(one, &folder::read(one, None, env)?)?),
        },
        several => {
            return Err(Failure::new(format!("balance compares two times, and {} are given", several.len()))
                .hint("give the first and the last folder")
                .usage());
        }
    };
    let rows = balance::compute(before, after, args.rows());
    put(args, &rows, env, show, &[])?;
    Ok(Outcome::Done)
}

/// Prints the balance of a recording, from its snapshots at the begin and at the end.
pub fn of_recording(args: &BalanceArgs, session: &Session<'_>, show: &Show) -> Result<Outcome> {
    let rows = match balance::of_recording(session, args.rows())? {
        None => balance::of_end(session, args.rows())?,
        rows => rows,
    };
    let Some(mut rows) = rows else {
        let name = session.path.display();
        return Err(Failure::new(format!(
            "{name}: no balance: the file does not have /proc/meminfo of its begin and its end"
        ))
        .hint(
            "kmt-capture record stores it, and convert takes meminfo.before and meminfo.after of a folder",
        ));
    };
    args.by.iter().try_for_each(|key| key.check(session))?;
    if !args.by.is_empty() {
        folded::check_all_events(&session.path, session.trace)?;
    }
    let (pages, largest, outcome) = balance::pages(session, &rows, &args.by, args.rows());
    if pages.is_none() && !args.by.is_empty() {
        return Err(Failure::new(format!("{}: --by needs events of pages", session.path.display()))
            .hint("kmt-capture record stores them unless --preset or --event leaves them out"));
    }
    rows.pages = pages;
    rows.largest_holder = largest;
    let is_of_slab = |name: &str| ["kmalloc", "kmem_cache_alloc"].contains(&name);
    let mut classes = session.trace.schema().classes();
    rows.shown.has_slab_events = classes.any(|(_, class)| class.system == "kmem" && is_of_slab(&class.name));
    let has_areas = |system: &str, name: &str| {
        may_have_any(session.trace, |class| class.system == system && class.name == name)
    };
    rows.shown.has_vmalloc_events = has_areas("vmalloc", "alloc_vmap_area");
    rows.shown.has_percpu_events = has_areas("percpu", "percpu_alloc_percpu");
    rows.page_pools = session.trace.header().page_size.and_then(|size| page_pool::pools(session, size));
    let trust: Vec<String> = losses(session).into_iter().collect();
    put(args, &rows, &session.env, show, &trust)?;
    Ok(outcome)
}

fn put(args: &BalanceArgs, rows: &BalanceRows, env: &Env, show: &Show, trust: &[String]) -> Result<()> {
    if args.csv {
        trust.iter().for_each(|sentence| tell!("warning: {sentence}"));
        return export::csv_of_rows(env, "balance", rows, ("accounts", &balance::COLUMNS));
    }
    if args.json {
        return print_json(env, Schema::first("balance"), rows);
    }
    let paths: Vec<String> = args.files.iter().map(|path| shell::path(path)).collect();
    let text = page(&balance::screen(rows, &show.look), trust, &paths, &show.look);
    print(env, show.pager, text.as_bytes())
}
