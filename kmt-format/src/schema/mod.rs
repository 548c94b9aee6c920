//! Event classes, what their fields mean, and where a file keeps them.

mod class;
mod meaning;
mod shape;

pub use class::EventClass;
pub use meaning::{Meaning, Role};
pub use shape::{Place, Shape, Slot, Transform};
pub(crate) use shape::{SHAPE_COMPACT, SHAPE_PAYLOAD, SHAPE_WIDE, shapes_of};
