//! Parts of a rewritten file, and those that are missing from it.

use std::collections::HashSet;

use super::loss_alone::loss_alone;
use super::rewrite::{Job, Rewrite};
use super::salvage::salvage;
use super::scan::ScannedPiece;
use crate::raw::{ChunkKind, chunk_flags};
use crate::read::{ChunkRef, Damage, EarlyEnd};

impl Rewrite<'_> {
    /// Decides what is copied, in which order: as it was, but all classes before the first events.
    pub(super) fn plan(&mut self) {
        let is_schema = |chunk: &ChunkRef| chunk.kind == ChunkKind::SCHEMA;
        let schemas: Vec<ChunkRef> = self.scan.chunks.iter().copied().filter(is_schema).collect();
        let mut planned = HashSet::new();
        let mut is_new = |c: &ChunkRef| planned.insert((c.body_crc, c.body_len));
        let mut has_events = false;
        for piece in self.scan.pieces() {
            let chunk = match piece {
                ScannedPiece::Chunk(chunk) => chunk,
                ScannedPiece::Head(chunk) => {
                    self.plan_head(&chunk);
                    continue;
                }
            };
            match chunk.kind {
                ChunkKind::HEADER_COPY | ChunkKind::INDEX | ChunkKind::TRAILER => {}
                ChunkKind::SCHEMA if is_new(&chunk) => self.todo.push_back(Job::Chunk(chunk)),
                ChunkKind::SCHEMA => {}
                ChunkKind::EVENTS | ChunkKind::SUB_BUFFERS | ChunkKind::FOLD => {
                    if !core::mem::replace(&mut has_events, true) {
                        self.todo.extend(schemas.iter().filter(|c| is_new(c)).copied().map(Job::Chunk));
                    }
                    if chunk.kind == ChunkKind::FOLD {
                        self.plan_fold(chunk)
                    } else {
                        self.plan_events(chunk)
                    }
                }
                kind if !kind.is_known() && chunk.flags & chunk_flags::SAFE_TO_COPY == 0 => {
                    self.recovery.unknown_left_out = self.recovery.unknown_left_out.saturating_add(1);
                }
                _ => self.todo.push_back(Job::Chunk(chunk)),
            }
        }
        self.plan_torn();
        self.todo.extend(schemas.last().copied().map(Job::Chunk));
        self.sum_up();
        if !self.recovery.is_sound() {
            self.todo.push_back(Job::Summary);
        }
        self.todo.push_back(Job::Close);
    }

    fn plan_events(&mut self, chunk: ChunkRef) {
        match self.scan.contents.events(&chunk, self.scan.stored(self.data, &chunk)) {
            Ok(events) => {
                self.recovery.events =
                    self.recovery.events.saturating_add(u64::from(events.info().event_count));
                self.todo.push_back(Job::Chunk(chunk));
            }
            Err(error) => {
                self.scan.contents.add_damage(Damage { offset: chunk.offset, len: chunk.total_len, error });
                self.plan_head(&chunk);
            }
        }
    }

    /// Leaves an interval of folded lives out if it cannot be read: its number shows then that it is missing.
    fn plan_fold(&mut self, chunk: ChunkRef) {
        match self.scan.contents.fold(&chunk, self.scan.stored(self.data, &chunk)) {
            Ok(_) => self.todo.push_back(Job::Chunk(chunk)),
            Err(error) => {
                self.scan.contents.add_damage(Damage { offset: chunk.offset, len: chunk.total_len, error });
            }
        }
    }

    /// Counts the events of a chunk that cannot be used, and keeps its loss.
    fn plan_head(&mut self, chunk: &ChunkRef) {
        let start = usize::try_from(chunk.body_offset()).unwrap_or(usize::MAX);
        let stored = self.data.get(start..).unwrap_or_default();
        let contents = &mut self.scan.contents;
        let Ok(info) = contents.head_alone(chunk, stored) else { return };
        contents.add_missing(chunk, &info);
        if let Some((chunk, body, info)) = loss_alone(contents, chunk, stored) {
            self.todo.push_back(Job::Salvaged(chunk, body, info));
        }
    }

    fn plan_torn(&mut self) {
        let Some(chunk) = self.scan.torn else { return };
        let start = usize::try_from(chunk.body_offset()).unwrap_or(usize::MAX);
        let stored = self.data.get(start..).unwrap_or_default();
        let taken = self.scan.contents.add_torn(&chunk, stored);
        let Ok(true) = taken else { return };
        let has_records = chunk.kind == ChunkKind::EVENTS && chunk.codec == 0;
        let salvaged = has_records.then(|| salvage(&self.scan.contents, &chunk, stored)).flatten();
        if let Some((body, events)) = salvaged {
            let count = u64::from(events.info().event_count);
            self.recovery.events = self.recovery.events.saturating_add(count);
            self.recovery.events_unverified = self.recovery.events_unverified.saturating_add(count);
            self.todo.push_back(Job::Salvaged(chunk, body, *events.info()));
        } else {
            self.plan_head(&chunk);
        }
    }

    /// Counts the missing events: by the trailer, or else by the gaps between event chunks and the head of the torn one.
    fn sum_up(&mut self) {
        let contents = &self.scan.contents;
        let recovery = &mut self.recovery;
        let last_events = contents.streams.values().fold(0u64, |sum, s| sum.saturating_add(s.last_event()));
        let counted = contents.metadata.trailer.filter(|_| contents.finished).map(|t| t.event_count);
        recovery.was_finished = contents.finished;
        recovery.ended_early = EarlyEnd::of(contents).is_some();
        recovery.missing_is_exact = counted.is_some();
        recovery.events_missing = counted.unwrap_or(last_events).saturating_sub(recovery.events);
        recovery.damages.clone_from(&contents.damages);
        recovery.damage_count = contents.damage_count;
    }
}
