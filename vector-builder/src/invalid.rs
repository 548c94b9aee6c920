//! Vectors with a defect each.
use crate::Vector;

/// All of them.
pub fn vectors() -> Vec<Vector> {
    Vec::new()
}
