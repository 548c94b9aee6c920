//! `who ADDRESS`: the objects that held an address, and their neighbours.

mod rows;
mod text;

pub use rows::WhoRows;

use crate::collect::{Collectors, Handle, Who};
use crate::failure::{Failure, Result};
use crate::render::screen::Screen;
use crate::reports::common::ReportContext;
use crate::reports::common::basis::Input;
use crate::reports::common::{Context, View};
use crate::reports::report::Report;

/// Lives of the objects that held an address.
#[derive(Debug, clap::Args)]
pub struct WhoReport {
    /// The address, hexadecimal
    #[arg(value_parser = address_of)]
    address: u64,
}

/// An address: hexadecimal, with or without 0x.
fn address_of(text: &str) -> std::result::Result<u64, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u64::from_str_radix(digits, 16)
        .map_err(|_| format!("`{text}` is not an address: expected hexadecimal digits"))
}

impl Report for WhoReport {
    type Handles = Handle<Who>;
    type Rows = WhoRows;

    const NAME: &'static str = "who";
    const TITLE: &'static str = "objects at an address";
    const ABOUT: &'static str = "Objects that held an address, and their neighbours";
    const RESTS_ON: Input = Input::SlabAllocs;

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

    fn compute(&self, context: &ReportContext<'_, '_>, handle: &Self::Handles) -> WhoRows {
        rows::of(context, context.analysis.get(*handle), self.address)
    }

    fn screen(&self, rows: &WhoRows, view: &View) -> Screen {
        text::of(rows, view)
    }
}
