//! Traces that own their bytes, and events that own their trace: for languages without lifetimes.
//!
//! The only module that iterates kmt-format: the functions of C and the Python package are built on it.

use core::fmt;
use std::path::Path;
use std::sync::Arc;

use kmt_format::print::PrintEnv;
use kmt_format::read::{ChunkEvents, DuplicateKmallocs, Event, EventChunk, Merge, Run, StackJoiner, Trace};
use kmt_format::schema::{Meaning, Role};
use kmt_format::{Error, ErrorKind, Limits, Result};

use crate::bytes::{Bytes, OpenError};

/// A trace and its bytes.
#[derive(Debug)]
pub struct OwnedTrace {
    /// Borrows `bytes`: declared before it, and so dropped before it.
    trace: Trace<'static>,
    #[allow(dead_code, reason = "`trace` points into it")]
    bytes: Bytes,
}

impl OwnedTrace {
    /// Opens a file: a regular one is mapped, anything else is read to its end.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, or is not a trace.
    pub fn open(path: &Path, limits: Limits) -> core::result::Result<Arc<Self>, OpenError> {
        Ok(Self::new(Bytes::of_file(path)?, limits)?)
    }

    /// Opens bytes.
    ///
    /// # Errors
    ///
    /// Returns an error if they are not a trace.
    pub fn of_bytes(bytes: Vec<u8>, limits: Limits) -> Result<Arc<Self>> {
        Self::new(Bytes::Read(bytes), limits)
    }

    /// Opens bytes that somebody else keeps.
    ///
    /// # Errors
    ///
    /// Returns an error if they are not a trace.
    ///
    /// # Safety
    ///
    /// They stay as they are until the trace and all events that were made of it are dropped.
    pub unsafe fn of_memory(bytes: &[u8], limits: Limits) -> Result<Arc<Self>> {
        // SAFETY: the caller promises that they live as long as anything that can use this reference.
        let bytes = unsafe { core::slice::from_raw_parts(bytes.as_ptr(), bytes.len()) };
        Self::new(Bytes::Foreign(bytes), limits)
    }

    fn new(bytes: Bytes, limits: Limits) -> Result<Arc<Self>> {
        let slice = bytes.as_slice();
        // SAFETY: the bytes are in a mapping, at the pointer of a Vec that is never touched again, or where the
        // caller of `of_memory` keeps them: they do not move with `bytes`. `bytes` is dropped after `trace`, and no
        // reference with this lifetime is handed out: `trace()` shortens it to that of the borrow of `self`.
        let slice = unsafe { core::slice::from_raw_parts(slice.as_ptr(), slice.len()) };
        let trace = Trace::builder().limits(limits).open(slice)?;
        Ok(Arc::new(Self { trace, bytes }))
    }

    /// The trace.
    pub fn trace(&self) -> &Trace<'_> {
        &self.trace
    }

    /// Reads and checks the whole file: then no event of it is damaged or missing.
    ///
    /// # Errors
    ///
    /// Returns the first damage, or that the numbering of chunks and events has gaps, which is no damage of a chunk.
    pub fn check(&self) -> Result<()> {
        self.trace.check()?;
        let mut streams = self.trace.streams().values();
        if streams.any(|stream| stream.chunks_missing > 0 || stream.events_missing > 0)
            || self.trace.folds_missing() > 0
        {
            let what = "chunks or events are missing from the file, as their numbering shows";
            return Err(Error::new(ErrorKind::Malformed(what)));
        }
        Ok(())
    }

    /// The name of a task at a time; `None` if not recorded.
    pub fn comm(&self, pid: i32, time: u64) -> Option<&[u8]> {
        self.trace.metadata().comm(pid, time)
    }

    /// An address as `symbol+0xoffset/0xsize [module]`, or in hex.
    pub fn symbol(&self, address: u64) -> Vec<u8> {
        let header = self.trace.header();
        let env = PrintEnv::new(header.order, header.long_size).with_symbols(self.trace.symbols());
        env.symbol_with_offset(address)
    }
}

/// Events that are missing at one place of one CPU's stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LossItem {
    /// CPU.
    pub cpu: u32,
    /// Events lost on the target, as the kernel counted them.
    pub lost: u64,
    /// At least one more was lost, and the kernel did not count.
    pub is_uncounted: bool,
    /// Part of what the kernel wrote was damaged and could not be decoded.
    pub is_input_damaged: bool,
    /// Events of chunks of the file that are missing or damaged.
    pub damaged: u64,
    /// Time of the event of that CPU before the gap; `None` if there is none.
    pub after: Option<u64>,
    /// Time of the next event of that CPU; `None` if there is none.
    pub before: Option<u64>,
}

impl LossItem {
    /// The gap before a run; `None` if there is none.
    pub fn of_run(run: &Run<'_, '_>) -> Option<Self> {
        let gap = run.gap.filter(|gap| !gap.is_empty())?;
        let before = run.range.clone().next().and_then(|first| run.chunk.time(first));
        Some(Self {
            cpu: run.cpu,
            lost: gap.loss.counted,
            is_uncounted: gap.loss.uncounted,
            is_input_damaged: gap.loss.damaged_input,
            damaged: gap.events_damaged,
            after: gap.after,
            before,
        })
    }
}

/// Position of [`OwnedEvents`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// At an event.
    Event,
    /// At a gap.
    Loss,
    /// After the last event.
    End,
}

/// The events of a trace in the kernel's order, and the gaps between them.
pub struct OwnedEvents {
    /// These two point into `merge`: they are cleared before it advances.
    event: Option<Event<'static>>,
    run: Option<ChunkEvents<'static>>,
    loss: Option<LossItem>,
    /// Events passed so far, the current one included.
    count: u64,
    stack_of: Option<u64>,
    /// `None` where the trace has no stacks.
    joiner: Option<StackJoiner<u64>>,
    duplicate_call_site: Option<u64>,
    /// With the call site of each; `None` where the trace has no kmalloc.
    duplicates: Option<DuplicateKmallocs<Option<u64>>>,
    /// Borrows `owner`: declared before it, and so dropped before it.
    merge: Merge<'static, 'static>,
    owner: Arc<OwnedTrace>,
}

impl OwnedEvents {
    /// Events from the first one on.
    pub fn new(owner: &Arc<OwnedTrace>) -> Self {
        let owner = Arc::clone(owner);
        // SAFETY: the trace is in an Arc that is kept beside what borrows it and is dropped after it. Nothing
        // has it as `&mut`: the Arc is shared, and `OwnedTrace` hands out shared references alone.
        let trace: &'static Trace<'static> = unsafe { &*core::ptr::from_ref(&owner.trace) };
        let has = |meaning| trace.schema().classes().any(|(_, class)| class.meaning == meaning);
        Self {
            event: None,
            run: None,
            loss: None,
            count: 0,
            stack_of: None,
            joiner: has(Meaning::KERNEL_STACK).then(StackJoiner::default),
            duplicate_call_site: None,
            duplicates: has(Meaning::KMALLOC).then(|| DuplicateKmallocs::new(trace)),
            merge: trace.merge(),
            owner,
        }
    }

    /// The trace.
    pub fn trace(&self) -> &Arc<OwnedTrace> {
        &self.owner
    }

    /// Goes to the next event or gap.
    pub fn advance(&mut self) -> Step {
        (self.event, self.loss) = (None, None);
        (self.stack_of, self.duplicate_call_site) = (None, None);
        loop {
            if let Some(event) = self.run.as_mut().and_then(Iterator::next) {
                return self.enter(event);
            }
            self.run = None;
            let Some(run) = self.merge.next_run() else { return Step::End };
            self.loss = LossItem::of_run(&run);
            // SAFETY: the events point to the trace, for which `new` has the argument, and to a chunk on the heap, which
            // `merge` keeps unchanged until `next_run` is called again: not before `run` and `event` were cleared above.
            // `event()` shortens the lifetime to that of a borrow of `self`, which the next `advance` ends.
            self.run =
                Some(unsafe { core::mem::transmute::<ChunkEvents<'_>, ChunkEvents<'static>>(run.events()) });
            if let Some(loss) = self.loss {
                if let Some(joiner) = &mut self.joiner {
                    joiner.gap(loss.cpu);
                }
                return Step::Loss;
            }
        }
    }

    fn enter(&mut self, event: Event<'static>) -> Step {
        self.count = self.count.saturating_add(1);
        if let Some(joiner) = &mut self.joiner {
            self.stack_of = joiner.see(&event, self.count);
        }
        if let Some(duplicates) = &mut self.duplicates {
            self.duplicate_call_site = duplicates.see(&event, event.uint_with(Role::CALL_SITE)).flatten();
        }
        self.event = Some(event);
        Step::Event
    }

    /// The current event, if it is at one.
    #[inline]
    pub fn event(&self) -> Option<&Event<'_>> {
        self.event.as_ref()
    }

    /// The current gap, if it is at one.
    pub fn loss(&self) -> Option<&LossItem> {
        self.loss.as_ref()
    }

    /// Number of the current event in the kernel's order, from 1.
    pub fn number(&self) -> u64 {
        self.count
    }

    /// Of a `kernel_stack`: number of the event that the stack belongs to.
    pub fn stack_of(&self) -> Option<u64> {
        self.stack_of
    }

    /// Of the second event of one large kmalloc: call site of the first event, at which the allocation does not count.
    pub fn duplicate_call_site(&self) -> Option<u64> {
        self.duplicate_call_site
    }
}

// SAFETY: all of it is `Send` and `Sync` but the `Rc` in which `merge` keeps each chunk, for iterators that share chunks
// with their events. `next_run` hands out chunks by reference: every count is 1 and never changes but with `merge`, which
// only `&mut self` reaches. Events of a run hold that reference; neither they nor copies of them have an `Rc`.
unsafe impl Send for OwnedEvents {}
// SAFETY: as above.
unsafe impl Sync for OwnedEvents {}

/// Premise of the argument above: the other fields may be shared by threads.
const _: () = {
    const fn may_be_shared<T: Send + Sync>() {}
    may_be_shared::<Trace<'static>>();
    may_be_shared::<EventChunk<'static>>();
    may_be_shared::<StackJoiner<u64>>();
    may_be_shared::<DuplicateKmallocs<Option<u64>>>();
    may_be_shared::<OwnedTrace>();
};

impl fmt::Debug for OwnedEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedEvents").field("count", &self.count).finish_non_exhaustive()
    }
}
