//! Answer where lost events forbid a verdict on growth: the cache that grew most by the kernel's counts, the call site of which
//! almost no object was freed, and the recording that would have a verdict.
//!
//! Both leads are one finding where they are of the same cache and their numbers agree. Sources: growth of caches
//! (`cache_growth`), and survivors of the events that are left.

use serde::Serialize;

use super::cache_growth::{CacheGrowth, by_task};
use super::row::LeakRow;
use crate::render::screen::{CommandLine, Screen};
use crate::render::words::{count, counted};
use crate::reports::common::basis::{WholeTime, lost, whole_time};
use crate::reports::common::record_again::{RecordAgain, not_judged_for};
use crate::reports::common::{ReportContext, View};
use crate::trace::names::function_of;

/// Leads, and the recording that would have a verdict.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Lossy {
    /// Where events were lost and growth is not judged: the cache that grew most by /proc/slabinfo, and the call site of which
    /// almost no object was freed, a sentence each, or one for both.
    pub perhaps: Vec<String>,
    /// Command of a recording that would not have lost events; `null`: growth is judged, or the command is unknown.
    pub record_again: Option<String>,
    /// The verdict; `None`: growth is judged.
    #[serde(skip)]
    pub verdict: Option<String>,
    #[serde(skip)]
    again: Option<RecordAgain>,
    /// The longest time without losses, if it is long enough for a verdict.
    #[serde(skip)]
    whole_time: Option<WholeTime>,
}

impl Lossy {
    /// The answer with these leads, beside rows that have no verdict.
    pub fn of(context: &ReportContext<'_, '_>, perhaps: Vec<String>) -> Self {
        let again = RecordAgain::of(context.session);
        let unit = context.session.unit();
        Self {
            perhaps,
            record_again: again.as_ref().and_then(RecordAgain::shown),
            verdict: lost(context).map(|(_, lost)| not_judged_for(&lost, again.as_ref())),
            again,
            whole_time: whole_time(context).filter(|whole| whole.can_judge_growth(unit)),
        }
    }

    /// Adds the verdict, the recording and the leads.
    pub fn answer(&self, screen: &mut Screen) {
        let Some(verdict) = &self.verdict else { return };
        match self.again.as_ref().and_then(|again| again.lead(verdict)) {
            Some(lead) => screen.leads(vec![lead]),
            None => screen.answer(verdict.clone()),
        }
        screen.answer.extend(self.perhaps.iter().cloned());
    }

    /// Proposes the time without losses, where growth is judged.
    pub fn next(&self, screen: &mut Screen) {
        if let Some(whole) = self.whole_time.as_ref().filter(|_| self.verdict.is_some()) {
            let command = CommandLine::from("leaks").option("--time", whole.range());
            screen.next(command, "what grows where nothing is missing");
        }
    }

    /// The whole screen where there are no tables; `None`: growth is judged.
    pub fn screen(&self) -> Option<Screen> {
        self.verdict.as_ref()?;
        let mut screen = Screen { says_losses: true, ..Screen::default() };
        self.answer(&mut screen);
        screen.note("Objects whose free events were lost look like leaks: call sites have no verdict.");
        self.next(&mut screen);
        screen.next("slabinfo", "growth of caches by the kernel's counts");
        screen.next("callers --sort live", "call sites with most objects without a free event");
        Some(screen)
    }
}

/// Sentences on the cache that grew most, and on the call site that may be a leak: one sentence if they belong together.
pub fn leads(grown: Option<&CacheGrowth>, suspect: Option<&LeakRow>, view: &View) -> Vec<String> {
    let both = grown.zip(suspect).and_then(|(grown, row)| grown.with_suspect(row, view));
    if both.is_some() {
        return both.into_iter().collect();
    }
    // The one with a task and a function first.
    let suspect = suspect.map(|row| suspect_sentence(row, view));
    suspect.into_iter().chain(grown.map(|grown| grown.sentence(view))).collect()
}

/// `Perhaps a leak: no free was seen of 387 of 390 objects (84.8 KiB) by sensord-24622 at __do_sys_timerfd_create, allocated at an
/// even pace; some free events may be lost.`
fn suspect_sentence(row: &LeakRow, view: &View) -> String {
    let freed = row.freed.saturating_add(row.freed_unseen);
    let part = if freed == 0 { String::new() } else { format!("{} of ", count(row.survivors)) };
    format!(
        "Perhaps a leak: no free was seen of {part}{} ({}){} at {}, allocated at an even pace; some free events may be lost.",
        counted(row.survivors.saturating_add(freed), "object", "objects"),
        view.bytes(row.bytes),
        by_task(row),
        function_of(&row.symbol)
    )
}
