//! `who ADDRESS`: the objects that held an address, and their neighbours; `who pfn=N`: the allocations of a page frame.
//!
//! Two reports in one command: `objects` and `frame`. Kinds of ends of a life, which both show, are here.

mod frame;
mod objects;

pub use objects::WhoRows;

use serde::Serialize;

use crate::collect::{Collectors, Handle, Who, WhoFrame};
use crate::failure::{Failure, Result};
use crate::pass::Needs;
use crate::render::screen::{Cell, Screen};
use crate::reports::common::basis::Input;
use crate::reports::common::stated::Keys;
use crate::reports::common::{Context, ReportContext, View};
use crate::reports::report::Report;

/// Lives of the objects that held an address, or of the allocations that held a page frame.
#[derive(Debug, clap::Args)]
pub struct WhoReport {
    /// The address, hexadecimal; or pfn=N: a page frame, decimal or with 0x
    #[arg(value_name = "ADDRESS|pfn=N", value_parser = Place::parse)]
    place: Place,
}

/// A place in memory.
#[derive(Debug, Clone, Copy)]
enum Place {
    Address(u64),
    /// A page frame.
    Frame(u64),
}

impl Place {
    /// An address: hexadecimal, with or without 0x. A page frame: `pfn=`, and a number as `dump` prints it.
    fn parse(text: &str) -> std::result::Result<Self, String> {
        if let Some(number) = text.strip_prefix("pfn=") {
            let frame = match number.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16),
                None => number.parse(),
            };
            return frame
                .map(Self::Frame)
                .map_err(|_| format!("`{number}` is not a page frame: expected pfn=1234 or pfn=0x4d2"));
        }
        let digits = text.strip_prefix("0x").unwrap_or(text);
        u64::from_str_radix(digits, 16).map(Self::Address).map_err(|_| {
            format!("`{text}` is not an address: expected hexadecimal digits, or pfn=N for a page frame")
        })
    }
}

/// Collector of a place.
#[derive(Debug)]
pub enum WhoHandle {
    /// Of an address.
    Address(Handle<Who>, u64),
    /// Of a page frame.
    Frame(Handle<WhoFrame>, u64),
}

impl Report for WhoReport {
    type Handles = WhoHandle;
    type Rows = WhoRows;

    const NAME: &'static str = "who";
    const TITLE: &'static str = "objects at an address";
    const ABOUT: &'static str = "Objects that held an address, allocations of a page frame";
    const RESTS_ON: Input = Input::SlabAllocs;
    /// What is allocated in the selected time may be freed after it.
    const NEEDS: Needs = Needs::LATER_ENDS;

    fn rests_on(&self) -> Input {
        if matches!(self.place, Place::Frame(_)) { Input::Pages } else { Self::RESTS_ON }
    }

    fn keys(&self) -> Keys {
        if matches!(self.place, Place::Frame(_)) { Keys::Pages } else { Self::KEYS }
    }

    fn needs(&self) -> Needs {
        match self.place {
            Place::Address(_) => Self::NEEDS,
            Place::Frame(_) => Self::NEEDS | Needs::FLAG_NAMES,
        }
    }

    fn check(&self, context: &Context<'_, '_>) -> Result<()> {
        match context.session.no_addresses().filter(|_| matches!(self.place, Place::Address(_))) {
            Some(why) => Err(Failure::new(format!("{}: {why}", context.session.path.display()))
                .hint("record with `echo nohash-ptr > trace_options`, or convert the raw buffers")),
            None => Ok(()),
        }
    }

    fn collect(&self, _: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        match self.place {
            Place::Address(address) => WhoHandle::Address(collectors.add(Who { address }), address),
            Place::Frame(pfn) => WhoHandle::Frame(collectors.add(WhoFrame { pfn }), pfn),
        }
    }

    fn compute(&self, context: &ReportContext<'_, '_>, handle: &Self::Handles) -> WhoRows {
        let analysis = context.analysis;
        match *handle {
            WhoHandle::Address(lives, address) => objects::compute(context, analysis.get(lives), address),
            WhoHandle::Frame(frame, pfn) => {
                WhoRows::of_frame(frame::compute(context, analysis.get(frame), pfn))
            }
        }
    }

    fn screen(&self, rows: &WhoRows, view: &View) -> Screen {
        match &rows.frame {
            Some(frame) => frame::screen(frame, view),
            None => objects::screen(rows, view),
        }
    }
}

/// The end of a life in words, without the task that freed it.
fn ended(end: &LifeEnd, lifetime: Option<u64>, view: &View) -> String {
    let after = match lifetime {
        Some(lifetime) if *end == LifeEnd::FreedUnseen => {
            format!(" after at most {}", view.duration(lifetime))
        }
        Some(lifetime) => format!(" after {}", view.duration(lifetime)),
        None => String::new(),
    };
    match end {
        LifeEnd::Freed => format!(", and freed{after}"),
        LifeEnd::FreedUnseen => format!(", and freed without an event{after}"),
        LifeEnd::Live => ", and is still allocated".to_owned(),
    }
}

/// A lifetime in a table; empty where the life has not ended.
fn lifetime_cell(end: &LifeEnd, lifetime: Option<u64>, view: &View) -> Cell {
    match (end, lifetime) {
        (LifeEnd::Live, _) => Cell::Empty,
        (_, Some(lifetime)) => Cell::Duration(lifetime, view.unit),
        (_, None) => Cell::Unknown,
    }
}

/// Kind of the end of a life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LifeEnd {
    /// A free event.
    Freed,
    /// Implied free: the address or page was reused, and no free event was recorded.
    FreedUnseen,
    /// Still allocated at the end of the trace.
    Live,
}
