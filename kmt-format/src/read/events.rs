//! Events one after another: of a run, a chunk, or a whole trace.

use core::ops::Range;
use std::rc::Rc;
use std::sync::LazyLock;

use super::contents::Contents;
use super::event::Held;
use super::{Event, EventChunk, Gap, Merge, Run, Schema, Trace};
use crate::error::Result;

/// The events of a run or a chunk, in their order.
#[derive(Debug, Clone)]
pub struct ChunkEvents<'t> {
    chunk: &'t EventChunk<'t>,
    schema: &'t Schema,
    contents: Option<&'t Contents<'t>>,
    range: Range<usize>,
}

impl<'t> ChunkEvents<'t> {
    /// All events of a chunk; without the contents of its file they have no fields.
    pub(super) fn of(chunk: &'t EventChunk<'t>, contents: Option<&'t Contents<'t>>) -> Self {
        static NONE: LazyLock<Schema> = LazyLock::new(Schema::default);
        let schema = contents.map_or(&*NONE, |contents| &contents.schema);
        Self { chunk, schema, contents, range: 0..chunk.records().len() }
    }
}

impl<'t> Iterator for ChunkEvents<'t> {
    type Item = Event<'t>;

    #[inline]
    fn next(&mut self) -> Option<Event<'t>> {
        let index = self.range.next()?;
        Event::borrowed(self.chunk, self.schema, self.contents, index)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.range.size_hint()
    }
}

impl ExactSizeIterator for ChunkEvents<'_> {}

impl<'t> EventChunk<'t> {
    /// The events of the chunk. `schema` is that of the file that the chunk is from.
    pub fn events(&'t self, schema: &'t Schema) -> ChunkEvents<'t> {
        ChunkEvents { chunk: self, schema, contents: None, range: 0..self.records().len() }
    }
}

impl<'m> Run<'m, '_> {
    /// The events of the run.
    ///
    /// ```
    /// # use kmt_format::{read::Trace, Result};
    /// fn print(trace: &Trace<'_>) {
    ///     let mut merge = trace.merge();
    ///     while let Some(run) = merge.next_run() {
    ///         if let Some(gap) = run.gap {
    ///             println!("CPU {}: {} events are missing here", run.cpu, gap.loss.counted);
    ///         }
    ///         for event in run.events() {
    ///             println!("{} {}", event.time(), event.class().name);
    ///         }
    ///     }
    /// }
    /// # let file = kmt_format::example()?;
    /// # print(&Trace::open(&file)?);
    /// # Ok::<(), kmt_format::Error>(())
    /// ```
    pub fn events(&self) -> ChunkEvents<'m> {
        let contents = self.contents;
        ChunkEvents {
            chunk: self.chunk,
            schema: &contents.schema,
            contents: Some(contents),
            range: self.range.clone(),
        }
    }
}

/// One item of [`Trace::items`](super::Trace::items).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Item<'t> {
    /// An event.
    Event(Event<'t>),
    /// Events of one CPU that are missing here: lost on the target, or damaged in the file.
    Loss(Gap),
}

/// Events and losses of a whole trace; see [`Trace::items`](super::Trace::items).
#[derive(Debug)]
pub struct Items<'t> {
    merge: Merge<'t, 't>,
    contents: &'t Contents<'t>,
    chunk: Option<Rc<EventChunk<'t>>>,
    range: Range<usize>,
    gap: Option<Gap>,
    /// The range of a run whose gap comes first.
    behind_gap: Range<usize>,
}

impl<'t> Items<'t> {
    pub(super) fn new(merge: Merge<'t, 't>, contents: &'t Contents<'t>) -> Self {
        Self { merge, contents, chunk: None, range: 0..0, gap: None, behind_gap: 0..0 }
    }

    /// Damage found in event chunks so far.
    pub fn damages(&self) -> &[super::Damage] {
        self.merge.damages()
    }

    #[inline(always)]
    fn event(&mut self) -> Option<Event<'t>> {
        let index = self.range.next()?;
        let chunk = self.chunk.as_ref()?;
        let hold = |_| Held::Shared(Rc::clone(chunk));
        Event::of(chunk, hold, &self.contents.schema, Some(self.contents), index)
    }

    /// Moves to the next run; false at the end.
    #[inline(never)]
    fn next_run(&mut self) -> bool {
        (self.chunk, self.behind_gap) = (None, 0..0);
        let Some((chunk, range, gap)) = self.merge.next_shared() else { return false };
        (self.chunk, self.range, self.gap) = (Some(chunk), range, gap);
        true
    }
}

impl<'t> Iterator for Items<'t> {
    type Item = Item<'t>;

    #[inline(always)]
    fn next(&mut self) -> Option<Item<'t>> {
        loop {
            // No gap is left once there are events to give.
            if let Some(event) = self.event() {
                return Some(Item::Event(event));
            }
            if let Some(gap) = self.gap.take() {
                core::mem::swap(&mut self.range, &mut self.behind_gap);
                return Some(Item::Loss(gap));
            }
            if !self.next_run() {
                return None;
            }
            if self.gap.is_some() {
                // The gap is before the first event of its run.
                core::mem::swap(&mut self.range, &mut self.behind_gap);
            }
        }
    }
}

/// The events of a whole trace; see [`Trace::events`](super::Trace::events).
#[derive(Debug)]
pub struct Events<'t>(pub(super) Items<'t>);

impl<'t> Iterator for Events<'t> {
    type Item = Event<'t>;

    #[inline(always)]
    fn next(&mut self) -> Option<Event<'t>> {
        loop {
            if let Some(event) = self.0.event() {
                return Some(event);
            }
            if !self.0.next_run() {
                return None;
            }
        }
    }
}

impl<'d> Trace<'d> {
    /// All events in the kernel's order, all CPUs merged.
    ///
    /// Every event of the file, or an error: [`Trace::check`] runs first, so that no event is left out silently.
    /// For losses on the target and damaged files use [`Trace::items`], which also reads each chunk only once.
    ///
    /// ```
    /// # use kmt_format::{read::Trace, Result};
    /// fn print(trace: &Trace<'_>) -> Result<()> {
    ///     for event in trace.events()? {
    ///         println!("{:>16} CPU {} {}", event.time(), event.cpu(), event.class().name);
    ///     }
    ///     Ok(())
    /// }
    /// # let file = kmt_format::example()?;
    /// # print(&Trace::open(&file)?)?;
    /// # Ok::<(), kmt_format::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the first damage.
    pub fn events(&self) -> Result<Events<'_>> {
        self.check()?;
        Ok(Events(self.items()))
    }

    /// All events in the kernel's order, and among them, where they occurred, the losses: events that the target lost,
    /// and events of chunks that are damaged or missing, as far as they are counted.
    ///
    /// ```
    /// # use kmt_format::read::{Item, Trace};
    /// fn print(trace: &Trace<'_>) {
    ///     for item in trace.items() {
    ///         match item {
    ///             Item::Event(event) => println!("{:>16} {}", event.time(), event.class().name),
    ///             Item::Loss(gap) => println!("CPU {}: {} events or more are missing", gap.cpu, gap.counted()),
    ///             _ => {}
    ///         }
    ///     }
    /// }
    /// # let file = kmt_format::example()?;
    /// # print(&Trace::open(&file)?);
    /// # Ok::<(), kmt_format::Error>(())
    /// ```
    pub fn items(&self) -> Items<'_> {
        Items::new(self.merge(), self.contents())
    }

    /// [`Trace::items`] for events whose time is within `first..=last`; chunks outside are not read.
    pub fn items_between(&self, first: u64, last: u64) -> Items<'_> {
        Items::new(self.merge_between(first, last), self.contents())
    }

    /// Merges the CPUs in the kernel's order, run by run: what [`Trace::events`] is made of; see [`Merge`].
    pub fn merge(&self) -> Merge<'_, 'd> {
        Merge::new(self, None, u64::MAX)
    }

    /// [`Trace::merge`] of events whose time is within `first..=last`, and gaps that reach into that time; chunks outside
    /// are not read.
    pub fn merge_between(&self, first: u64, last: u64) -> Merge<'_, 'd> {
        Merge::new(self, Some((first, last)), u64::MAX)
    }

    /// [`Trace::merge`] of events of some classes, by their bits ([`Schema::class_bits`](super::Schema::class_bits)), and
    /// within `window` where there is one.
    ///
    /// Chunks without a loss whose heads have none of these bits are not read. Those that are read give all their events.
    /// To know which event a stack belongs to takes all events of its CPU: nothing may be left out then.
    ///
    /// ```
    /// # use kmt_format::read::Trace;
    /// # let file = kmt_format::example()?;
    /// let trace = Trace::open(&file)?;
    /// let frees = trace.schema().class_bits(|class| class.name == "kfree");
    /// let (mut merge, mut found) = (trace.merge_of(frees, None), 0);
    /// while let Some(run) = merge.next_run() {
    ///     found += run.events().filter(|event| event.class().name == "kfree").count();
    /// }
    /// # assert_eq!(found, 0);
    /// # Ok::<(), kmt_format::Error>(())
    /// ```
    pub fn merge_of(&self, classes: u64, window: Option<(u64, u64)>) -> Merge<'_, 'd> {
        Merge::new(self, window, classes)
    }
}
