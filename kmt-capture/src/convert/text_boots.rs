//! Boots in a text: a log of a console, or the text of a persistent ring buffer, can hold the events of several.
//!
//! `boots` decides, by the times of the lines of each CPU. With `--boot` the text is read twice: first for the times, then for the
//! lines of that boot.

use kmt_format::kernel::ClockUnit;

use super::boots::{Boot, Boots, Side};
use super::description::Description;
use crate::import::text::{CPUS_MAX, Stamp, TextLayout, TextLine, parse};

/// Boots of the lines so far.
pub struct TextBoots {
    /// Times of the lines that are converted.
    pub times: Boots,
    /// The part of each CPU that is converted, where a text holds several boots.
    side: Option<Side>,
    /// True if the last event is not in that part.
    is_outside: bool,
}

impl TextBoots {
    /// Of a text of that name and layout, of which `boot` is converted.
    pub fn new(
        (name, bytes): (&str, &[u8]),
        layout: &TextLayout,
        boot: Option<Boot>,
        description: &mut Description,
    ) -> Self {
        let unit = description.clock.as_ref().map_or(ClockUnit::Nanoseconds, |clock| clock.unit);
        let times = || Boots::of_text(unit, name.to_owned());
        let side = boot.and_then(|boot| {
            let side = times_of(bytes, layout, times()).side(boot);
            description.take_side(boot, side)
        });
        Self { times: times(), side, is_outside: false }
    }

    /// Looks at the next line; false if it is of a boot that is not converted.
    pub fn is_converted(&mut self, line: &TextLine<'_>) -> bool {
        if let Some((cpu, time)) = timed(line) {
            let position = self.times.next_line(cpu);
            self.is_outside = self.side.as_ref().is_some_and(|side| !side.part(cpu).contains(&position));
            if !self.is_outside {
                self.times.event(time);
            }
        }
        !self.is_outside
    }
}

/// CPU and time of the event of a line.
fn timed(line: &TextLine<'_>) -> Option<(u32, u64)> {
    let (TextLine::Event(event) | TextLine::Function(event, ..) | TextLine::Graph(event, _)) = line else {
        return None;
    };
    let (Stamp::Time(time, _) | Stamp::Count(time)) = event.stamp;
    (event.cpu < CPUS_MAX).then_some((event.cpu, time))
}

/// Times of all events of a text.
fn times_of(bytes: &[u8], layout: &TextLayout, mut boots: Boots) -> Boots {
    for line in bytes.split(|&b| b == b'\n') {
        if let Some((cpu, time)) = timed(&parse(line, layout).line) {
            boots.next_line(cpu);
            boots.event(time);
        }
    }
    boots
}
