//! Contents of an anonymized file, for the person who shares it.

mod rows;
mod text;

pub use rows::{AnonymizeRows, ManifestRow};
use rows::{KeptRow, LeftOutRow, ReplacedRow};

use super::AnonymizeOptions;
use super::fields::ClassMask;
use super::record::Masks;
use super::treatment::Treatment;
use crate::env::Env;
use crate::failure::Result;
use crate::render::out::{Schema, print_json};
use crate::trace::session::Session;

impl ManifestRow {
    /// What is known before the file is written.
    pub fn new(session: &Session<'_>, plans: &[Option<ClassMask>], options: &AnonymizeOptions) -> Self {
        let hidden = plans.iter().flatten().filter(|plan| plan.is_hidden()).count();
        let zeroed = |plan: &ClassMask| plan.treatments.iter().filter(|t| **t == Treatment::Zero).count();
        Self {
            kept: KeptRow {
                event_classes: plans.iter().flatten().count() - hidden,
                cpus: session.trace.streams().len(),
                ..KeptRow::default()
            },
            replaced: ReplacedRow {
                print_fmts: plans.iter().flatten().filter(|plan| plan.is_reprinted).count(),
                ..ReplacedRow::default()
            },
            left_out: LeftOutRow {
                chunks: session.trace.unknown_kinds().values().sum(),
                event_classes: hidden,
                fields: plans.iter().flatten().map(zeroed).sum(),
                ..LeftOutRow::default()
            },
            seeded: options.seed.is_some(),
            shows_symbols: !options.hide_symbols,
        }
    }

    /// Prints it with what was replaced: text on standard error, JSON on standard output.
    pub fn print(mut self, masks: &Masks, as_json: bool, env: &Env) -> Result<()> {
        (self.kept.function_names, self.replaced.functions) = masks.code.functions();
        self.replaced.modules = masks.texts.count("module");
        self.replaced.cache_names = masks.texts.count("cache");
        self.replaced.task_names = masks.texts.count("task");
        self.replaced.pids = masks.pids.len();
        self.replaced.memory_blocks = masks.memory.blocks();
        self.replaced.other_pages = masks.memory.pages();
        if as_json {
            return print_json(env, Schema::first("anonymize"), &AnonymizeRows { anonymize: self });
        }
        kmt_common::text::to_stderr(format_args!("{}", text::text(&self)));
        Ok(())
    }
}
