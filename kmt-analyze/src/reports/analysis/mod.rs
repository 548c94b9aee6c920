//! Findings that take more than one collector's sums, for reports and pages.

pub mod leaks;
