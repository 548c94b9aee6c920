//! Shared parts of the live tests, here and in kmt-analyze.
#![allow(dead_code)]

pub mod alone;
pub mod cgroup;
pub mod folder;
#[path = "../../../kmt-format/tests/suite/support/skip.rs"]
pub mod skip;
pub mod swap;
