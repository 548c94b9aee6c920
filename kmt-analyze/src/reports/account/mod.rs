//! `account`: the account file of trace_analyze.py.

use kmt_common::tell;
use kmt_format::schema::{Meaning, Role};
use serde_json::json;

use crate::analysis::account::{Account, Caller};
use crate::failure::{Failure, Outcome, Result};
use crate::render::json;
use crate::render::out::{Out, print_json};
use crate::render::text::escaped;
use crate::trace::open::outcome;
use crate::trace::session::Session;

/// What the rows are ordered by, the largest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Order {
    /// Bytes of all allocations
    TotalDynamic,
    /// Bytes in use
    CurrentDynamic,
    /// Allocations
    AllocCount,
    /// Frees
    FreeCount,
    /// Bytes in use that nobody asked for
    Waste,
}

/// What is accounted, and how.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Order of the rows
    #[arg(short, long, value_enum, default_value = "current_dynamic")]
    order_by: Order,
    /// Only kmalloc and kfree
    #[arg(long, conflicts_with = "cache")]
    malloc: bool,
    /// Only kmem_cache_alloc and kmem_cache_free
    #[arg(long)]
    cache: bool,
    /// Only callers in this directory of the kernel's source
    #[arg(short = 'b', long, value_name = "DIR")]
    start_branch: Option<String>,
    /// Print so many rows
    #[arg(short, long = "lines", value_name = "N")]
    lines: Option<usize>,
}

/// Prints the account.
pub fn run(session: &Session<'_>, options: &Options, as_json: bool) -> Result<Outcome> {
    if let Some(branch) = &options.start_branch {
        return Err(Failure::new(format!(
            "{} does not tell which functions lie in {branch}: its symbols have no paths",
            session.path.display()
        ))
        .hint("--where 'call_site~^ext4_' in other reports selects by name"));
    }
    let (account, damages) = read(session, options);
    let env = session.print_env();
    let name = |address: u64| {
        let text = escaped(&env.symbol_with_offset(address));
        text.split(['/', ' ']).next().unwrap_or_default().to_owned()
    };
    let mut rows: Vec<(u64, Caller)> = account.callers.iter().map(|(&site, &sums)| (site, sums)).collect();
    rows.sort_by_key(|(_, c)| {
        std::cmp::Reverse(match options.order_by {
            Order::TotalDynamic => c.total_dynamic,
            Order::CurrentDynamic => c.current_dynamic,
            Order::AllocCount => c.alloc_count,
            Order::FreeCount => c.free_count,
            Order::Waste => c.waste(),
        })
    });
    let (sum, callers) = (account.sum(), rows.len());
    rows.truncate(options.lines.unwrap_or(usize::MAX));
    if as_json {
        let mut out = json::head(session.trace, &session.losses);
        let row = |(site, c): &(u64, Caller)| {
            json!({
                "address": json::address(*site),
                "caller": name(*site),
                "total": c.total_dynamic,
                "waste": c.waste(),
                "net": c.current_dynamic,
                "alloc": c.alloc_count,
                "free": c.free_count,
            })
        };
        out.insert(
            "account".into(),
            json!({
                "current_bytes_allocated": sum.current_dynamic,
                "current_bytes_requested": sum.current_req,
                "current_wasted_bytes": sum.waste(),
                "allocs": sum.alloc_count,
                "frees": sum.free_count,
                "callers": callers,
                "duplicate_pointers": account.duplicates,
                "unmatched_frees": account.unmatched_frees,
                "rows": rows.iter().map(row).collect::<Vec<_>>(),
            }),
        );
        print_json(out)?;
    } else {
        let mut out = Out::stdout();
        out.page(&page(&sum, callers, &rows, &name))?;
        out.finish()?;
        if account.duplicates > 0 {
            tell!(
                "note: {} pointers were allocated again without a free: the account keeps both, the exact live bytes are in summary",
                account.duplicates
            );
        }
    }
    Ok(outcome(&session.path, session.trace, &damages, session.losses.any()))
}

fn read(session: &Session<'_>, options: &Options) -> (Account, Vec<kmt_format::read::Damage>) {
    let trace = session.trace;
    let mut account = Account::default();
    let mut merge = trace.merge();
    while let Some(run) = merge.next_run() {
        for event in run.events() {
            let meaning = event.class().meaning;
            let is_malloc = matches!(meaning, Meaning::KMALLOC | Meaning::KFREE);
            let is_cache = matches!(meaning, Meaning::CACHE_ALLOC | Meaning::CACHE_FREE);
            if (options.malloc && !is_malloc) || (options.cache && !is_cache) {
                continue;
            }
            let number = |role| event.uint_with(role).unwrap_or(0);
            if meaning.is_slab_alloc() {
                let (req, alloc) = (number(Role::BYTES_REQ), number(Role::BYTES_ALLOC));
                account.alloc(number(Role::PTR), number(Role::CALL_SITE), req, alloc);
            } else if meaning.is_slab_free() {
                account.free(number(Role::PTR));
            }
        }
    }
    (account, merge.damages().to_vec())
}

fn page(sum: &Caller, callers: usize, rows: &[(u64, Caller)], name: &dyn Fn(u64) -> String) -> String {
    let mut out = String::new();
    for (heading, value) in [
        ("current bytes allocated:", sum.current_dynamic),
        ("current bytes requested:", sum.current_req),
        ("current wasted bytes:", sum.waste()),
        ("number of allocs:", sum.alloc_count),
        ("number of frees:", sum.free_count),
        ("number of callers:", callers as u64),
    ] {
        out.push_str(&format!("{heading}{value:>width$}\n", width = 35 - heading.len()));
    }
    out.push_str(
        "\n   total    waste      net alloc/free  caller\n---------------------------------------------\n",
    );
    for (site, c) in rows {
        out.push_str(&format!(
            "{:>8} {:>8} {:>8} {:>5}/{:<5} {}\n",
            c.total_dynamic,
            c.waste(),
            c.current_dynamic,
            c.alloc_count,
            c.free_count,
            name(*site),
        ));
    }
    out
}
