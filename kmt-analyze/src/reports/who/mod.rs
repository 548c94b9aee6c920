//! `who ADDRESS`: every life of an address, and its neighbours.

use serde_json::{Map, Value, json};

use crate::collect::{Collectors, Handle, Who};
use crate::failure::{Failure, Result};
use crate::ledger::Closed;
use crate::ledger::lives::{ADDRESS_BITS, End};
use crate::pass::Analysis;
use crate::pass::selection::Selection;
use crate::render::json;
use crate::render::text::{count, duration, escaped, time};
use crate::reports::common::basis::Input;
use crate::reports::common::sums::{more, shown};
use crate::reports::common::{Context, View};
use crate::reports::report::{Page, Report};
use crate::stream::Origin;
use crate::trace::session::Session;
use crate::trace::session::task_names;

/// Options of the report.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The address, hexadecimal
    #[arg(value_parser = address_of)]
    address: u64,
}

/// An address: hexadecimal, with or without 0x.
fn address_of(text: &str) -> std::result::Result<u64, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u64::from_str_radix(digits, 16)
        .map_err(|_| format!("`{text}` is no address: expected hexadecimal digits"))
}

/// Lives of the objects that held an address.
#[derive(Debug)]
pub struct WhoReport {
    address: u64,
}

impl Report for WhoReport {
    type Options = Options;
    type Handles = Handle<Who>;
    type Rows = Page;

    const NAME: &'static str = "who";
    const KEY: &'static str = "who";
    const TITLE: &'static str = "who";
    const ABOUT: &'static str = "Every life of an address, and its neighbours";

    fn new(options: Options, _: &Selection) -> Self {
        Self { address: options.address }
    }

    fn usual() -> Option<Self> {
        None
    }

    fn rests_on(&self) -> Input {
        Input::SlabAllocs
    }

    fn check(&self, context: &Context<'_, '_>) -> Result<()> {
        match context.session.no_addresses() {
            Some(why) => Err(Failure::new(format!("{}: {why}", context.session.path.display()))
                .hint("record with `echo nohash-ptr > trace_options`, or convert the raw buffers")),
            None => Ok(()),
        }
    }

    fn collect(&self, _: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        collectors.add(Who { address: self.address })
    }

    fn compute(&self, context: &Context<'_, '_>, result: &Analysis, handles: &Self::Handles) -> Page {
        let (session, address, near) = (context.session, self.address, result.get(*handles));
        let low = address & ADDRESS_BITS;
        let holds = |c: &&Closed| (c.address..c.address.saturating_add(c.bytes_alloc.max(1))).contains(&low);
        let lives: Vec<&Closed> = near.iter().filter(holds).collect();
        let tell = Teller { session, result, top: address & !ADDRESS_BITS, near };
        let shown = shown(Some(context.limit), lives.len());
        let mut out = Map::new();
        out.insert("address".into(), json::address(address));
        out.insert("lives_total".into(), json!(lives.len()));
        out.insert("lives".into(), lives.iter().take(shown).map(|c| tell.json(c)).collect());
        if lives.is_empty() {
            let text = format!("no object that was born in the trace ever held {address:#x}\n");
            return Page { json: out, text };
        }
        let mut text = format!("{} lives held {address:#x}\n", count(lives.len() as u64));
        for (number, life) in lives.iter().take(shown).enumerate() {
            text.push_str(&tell.text(number + 1, life));
        }
        text.push_str(&more(shown, lives.len(), "lives"));
        Page { json: out, text }
    }

    fn text(&self, rows: &Page, _: &View) -> String {
        rows.text.clone()
    }
}

/// Tells of lives.
struct Teller<'r> {
    session: &'r Session<'r>,
    result: &'r Analysis,
    /// Upper byte of the kernel's pointers.
    top: u64,
    near: &'r [Closed],
}

impl Teller<'_> {
    fn symbol(&self, address: u64) -> String {
        escaped(&self.session.print_env().symbol_with_offset(address))
    }

    fn place(&self, origin: Origin) -> String {
        let names = task_names(self.session);
        let comm = names.get(&origin.pid).map_or("<...>".to_owned(), |n| escaped(n));
        format!("{comm}-{} on CPU {}", origin.pid, origin.cpu)
    }

    fn origin(&self, number: u32) -> Origin {
        self.result.interner.origins.get(number).copied().unwrap_or_default()
    }

    fn cache(&self, life: &Closed) -> Option<&[u8]> {
        life.cache.map(|c| self.result.interner.name(c))
    }

    /// Neighbours below and above, alive when the object was born or at some time before its end.
    fn neighbours(&self, life: &Closed) -> [Option<&Closed>; 2] {
        let end = life.end.time().unwrap_or(u64::MAX);
        let together = |c: &&Closed| c.life.born <= end && c.end.time().unwrap_or(u64::MAX) >= life.life.born;
        let below = self.near.iter().filter(together).filter(|c| c.address < life.address);
        let above = self.near.iter().filter(together).filter(|c| c.address > life.address);
        [below.max_by_key(|c| (c.address, c.life.born)), above.min_by_key(|c| (c.address, c.life.born))]
    }

    fn call_site(&self, life: &Closed) -> u64 {
        self.result.interner.sites.get(life.life.site).map_or(0, |s| s.call_site)
    }

    fn text(&self, number: usize, life: &Closed) -> String {
        let unit = self.session.unit();
        let cache = self.cache(life).map_or(String::new(), |c| format!(" of {}", escaped(c)));
        let mut out = format!(
            "\n{number}. {:#x}: {} of {} bytes{cache}\n   allocated {} at {} by {}\n",
            life.address | self.top,
            count(life.bytes_req),
            count(life.bytes_alloc),
            time(life.life.born, unit),
            self.symbol(self.call_site(life)),
            self.place(life.born_at),
        );
        let span = |end: u64| duration(end.saturating_sub(life.life.born), unit);
        out.push_str(&match life.end {
            End::Freed { free, end, late } => format!(
                "   freed {} at {} by {}, after {}{}\n",
                time(free.time, unit),
                self.symbol(self.result.interner.frees.get(free.site).map_or(0, |f| f.call_site)),
                self.place(self.origin(free.origin)),
                span(end),
                if late.is_some() { ", logged late" } else { "" },
            ),
            End::Unseen { end, .. } => {
                format!(
                    "   freed unseen, after {} at most: then the address or its page was in other use\n",
                    span(end)
                )
            }
            End::Live => "   goes on\n".to_owned(),
        });
        if life.uncertain {
            out.push_str("   uncertain: it crosses a loss, or its free is ambiguous\n");
        }
        for (side, neighbour) in ["below", "above"].into_iter().zip(self.neighbours(life)) {
            if let Some(other) = neighbour {
                let cache = self.cache(other).map_or(String::new(), |c| format!(" of {}", escaped(c)));
                out.push_str(&format!(
                    "   {side}: {:#x}, {} bytes{cache}, allocated at {} by {}\n",
                    other.address | self.top,
                    count(other.bytes_alloc),
                    self.symbol(self.call_site(other)),
                    self.place(other.born_at),
                ));
            }
        }
        out
    }

    fn json(&self, life: &Closed) -> Value {
        let (end, freed) = match life.end {
            End::Freed { free, late, .. } => {
                let site = self.result.interner.frees.get(free.site).map_or(0, |f| f.call_site);
                let origin = self.origin(free.origin);
                let freed = json!({
                    "time": free.time,
                    "call_site": json::address(site),
                    "symbol": self.symbol(site),
                    "pid": origin.pid,
                    "cpu": origin.cpu,
                    "late": late.is_some(),
                });
                ("freed", freed)
            }
            End::Unseen { .. } => ("freed_unseen", Value::Null),
            End::Live => ("live", Value::Null),
        };
        let [below, above] = self.neighbours(life).map(|n| n.map(|n| json::address(n.address | self.top)));
        json!({
            "address": json::address(life.address | self.top),
            "bytes_req": life.bytes_req,
            "bytes_alloc": life.bytes_alloc,
            "cache": self.cache(life).map(json::text),
            "born": life.life.born,
            "call_site": json::address(self.call_site(life)),
            "symbol": self.symbol(self.call_site(life)),
            "pid": life.born_at.pid,
            "cpu": life.born_at.cpu,
            "end": end,
            "ended": life.end.time(),
            "freed": freed,
            "uncertain": life.uncertain,
            "neighbour_below": below,
            "neighbour_above": above,
        })
    }
}
