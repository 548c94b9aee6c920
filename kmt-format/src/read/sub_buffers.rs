//! Decoding a chunk of verbatim sub-buffers: into the event chunk that a writer would have made of it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use zerocopy::ByteOrder as Order;

use super::cast::{head_len, struct_at};
use super::missing_schema::UNKNOWN_CLASSES;
use super::schema_table::FIRST_DECODING_SHAPE;
use super::{ChunkRef, EventChunk, Header, Schema};
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::{HeaderPage, Missed, SubBuffer, SubBufferItem, with_order};
use crate::limits::{Budget, within_at};
use crate::pack::{
    CHUNK_LEN, ClassRepeats, EventChunkBuilder, RecordPlan, VERBATIM_EVENTS_MAX as EVENTS_MAX,
};
use crate::raw::SubBuffersHead;
use crate::{Limits, Loss};

/// Decoder of sub-buffers: the plan of each class, by event id.
#[derive(Debug, Default, Clone)]
pub(super) struct SubBufferDecoder {
    plans: Vec<Option<RecordPlan>>,
    /// Index of the last plan plus one by event id; 0 if there is none.
    plan_of_id: Vec<u16>,
    /// All plans of an id that several classes have, lowest first.
    shared_ids: BTreeMap<u16, Vec<u16>>,
}

/// Classes of sub-buffers: shapes of a chunk have 16 bits, and there are three for each class.
const CLASSES_MAX: usize = 21_840;

/// Memory of a plan for each field of its class, in bytes: three slots, and steps.
const PLAN_PER_FIELD: usize = 160;

impl SubBufferDecoder {
    /// Makes plans for the classes of `schema` that have none yet; their shapes are added to the schema. `offset`
    /// is that of the chunk that they come with.
    pub fn learn(
        &mut self,
        schema: &mut Schema,
        long_size: usize,
        budget: &mut Budget,
        offset: u64,
    ) -> Result<()> {
        if self.plan_of_id.is_empty() {
            self.plan_of_id = vec![0; 1 << 16];
        }
        let count = schema.class_count().min(CLASSES_MAX);
        self.plans.resize_with(count.max(self.plans.len()), || None);
        for index in schema.take_fresh() {
            let class = schema.class(index).filter(|_| index < count);
            let Some(class) = class else { continue };
            budget.take(class.fields.len().saturating_mul(PLAN_PER_FIELD), offset)?;
            let Ok(plan) = RecordPlan::new(class.clone(), index, index.saturating_mul(3), long_size) else {
                continue;
            };
            self.add_id(plan.class.id, index as u16);
            schema.set_decoding(index, &plan.shapes);
            if let Some(slot) = self.plans.get_mut(index) {
                *slot = Some(plan);
            }
        }
        Ok(())
    }

    fn add_id(&mut self, id: u16, index: u16) {
        let Some(place) = self.plan_of_id.get_mut(usize::from(id)) else { return };
        if let Some(other) = place.checked_sub(1).filter(|&other| other != index) {
            let all = self.shared_ids.entry(id).or_insert_with(|| vec![other]);
            if let Err(at) = all.binary_search(&index) {
                all.insert(at, index);
            }
        }
        *place = (*place).max(index.saturating_add(1));
    }

    /// The class of that id: of several the one with the highest number below `class_limit`.
    fn plan(&self, id: u16, class_limit: usize) -> Option<(usize, &RecordPlan)> {
        let mut index = usize::from(self.plan_of_id.get(usize::from(id))?.checked_sub(1)?);
        if index >= class_limit {
            let all = self.shared_ids.get(&id)?;
            let before = all.partition_point(|&i| usize::from(i) < class_limit);
            index = usize::from(*all.get(before.checked_sub(1)?)?);
        }
        Some((index, self.plans.get(index)?.as_ref()?))
    }

    /// The events of a chunk, whose decoded body is `body`.
    pub fn decode(
        &self,
        body: &[u8],
        chunk: &ChunkRef,
        header: &Header,
        schema: &Schema,
        limits: &Limits,
    ) -> Result<EventChunk<'static>> {
        let base = chunk.body_offset();
        let layout = with_order!(header.order, O => Layout::parse::<O>(body, base)?);
        let info = EventChunk::head(body, chunk, header.order)?;
        let bad = |what| Error::at(base, ErrorKind::Malformed(what));
        if schema.complete_count() < layout.class_limit {
            return Err(bad(UNKNOWN_CLASSES));
        }
        let mut builder = EventChunkBuilder::new(header.order, header.long_size, CHUNK_LEN);
        builder.add_loss(info.loss);
        builder.continue_after(info.first_event, info.t_last);
        let mut class_repeats = vec![ClassRepeats::default(); self.plans.len()];
        let bytes = body.get(layout.head_len..).unwrap_or_default();
        for (number, sub_buffer) in bytes.chunks_exact(layout.page.sub_buffer_len()).enumerate() {
            let start = base.saturating_add(
                layout.head_len.saturating_add(number.saturating_mul(layout.page.sub_buffer_len())) as u64,
            );
            let at = |e: Error| Error::at(start.saturating_add(e.offset().unwrap_or(0)), e.kind().clone());
            let sub_buffer = SubBuffer::parse(sub_buffer, &layout.page, header.order).map_err(at)?;
            let is_known = number == 0 && info.loss != Loss::default();
            if sub_buffer.missed() != Missed::No && !is_known {
                let what = "the head of a chunk lacks a loss of its sub-buffers";
                let commit = start.saturating_add(layout.page.commit_offset as u64);
                return Err(Error::at(commit, ErrorKind::Malformed(what)));
            }
            for item in sub_buffer.items() {
                let SubBufferItem::Event { time, record, offset } = item.map_err(at)? else { continue };
                let id = header.order.uint_at(record, 0, 2).unwrap_or(0) as u16;
                let here = start.saturating_add(offset as u64);
                let (index, plan) = self
                    .plan(id, layout.class_limit)
                    .ok_or_else(|| Error::at(here, ErrorKind::UnknownEventId { id }))?;
                if builder.falls_at(time) {
                    return Err(Error::at(
                        here,
                        ErrorKind::Malformed("the times of a chunk are not in ascending order"),
                    ));
                }
                if builder.record_count() >= EVENTS_MAX {
                    return Err(bad("a chunk holds more events than its head states"));
                }
                let (name, what) = ("event_body_len", "the decoded length of an event chunk");
                within_at(base, name, what, builder.heap_len() as u64, limits.event_body_len)?;
                let Some(repeats) = class_repeats.get_mut(index) else { continue };
                builder.push(plan, repeats, time, record).map_err(|e| Error::at(here, e.kind().clone()))?;
            }
        }
        let summary = builder.summary();
        let times = (summary.t_base, summary.t_last);
        let has_other_times = summary.record_count > 0 && times != (info.t_first, info.t_last);
        if summary.record_count != info.event_count || has_other_times {
            return Err(bad("the head of a chunk has other events than its sub-buffers"));
        }
        if summary.classes & !info.classes != 0 {
            return Err(bad("the head of a chunk lacks the class of an event"));
        }
        let mut events = Vec::new();
        builder.take_body(&mut events);
        EventChunk::parse(Cow::Owned(events), chunk, header, Some(schema), limits, FIRST_DECODING_SHAPE)
    }
}

struct Layout {
    head_len: usize,
    class_limit: usize,
    page: HeaderPage,
}

impl Layout {
    fn parse<O: Order>(body: &[u8], base: u64) -> Result<Self> {
        let bad = |what| Error::at(base, ErrorKind::Malformed(what));
        let head = struct_at::<SubBuffersHead<O>>(body, 0, base)?;
        let head_len = head_len::<SubBuffersHead<O>>(head.head_len.get(), body, base)?;
        let (len, data_offset) = (head.sub_buffer_len.get() as usize, usize::from(head.data_offset.get()));
        let data_size =
            len.checked_sub(data_offset).filter(|&n| n > 0 && len <= HeaderPage::SUB_BUFFER_LEN_MAX);
        let commit_size = usize::from(head.commit_size.get());
        let data_size = data_size.filter(|_| matches!(commit_size, 4 | 8));
        let (timestamp, commit) =
            (usize::from(head.timestamp_offset.get()), usize::from(head.commit_offset.get()));
        let are_inside = timestamp.saturating_add(8) <= len && commit.saturating_add(commit_size) <= len;
        let data_size = data_size.filter(|_| are_inside);
        let data_size = data_size.ok_or_else(|| bad("the layout of a sub-buffer is invalid"))?;
        if head.record_count.get() as usize > EVENTS_MAX {
            return Err(bad("a chunk of sub-buffers has more than 60,000 events"));
        }
        if head.class_limit.get() as usize > CLASSES_MAX {
            return Err(bad("a chunk of sub-buffers has more than 21,840 classes"));
        }
        let count = head.sub_buffer_count.get() as usize;
        if count.checked_mul(len) != body.len().checked_sub(head_len) {
            return Err(bad("a chunk has another number of sub-buffers than its head states"));
        }
        let page = HeaderPage {
            timestamp_offset: timestamp,
            commit_offset: commit,
            commit_size,
            data_offset,
            data_size,
        };
        Ok(Self { head_len, class_limit: head.class_limit.get() as usize, page })
    }
}
