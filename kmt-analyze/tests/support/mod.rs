//! What tests share.

// Each test uses a part of it.
#![allow(dead_code)]

pub mod agreement;
#[path = "../../../kmt-capture/tests/support/alone.rs"]
pub mod alone;
#[path = "../../../kmt-capture/tests/support/cgroup.rs"]
pub mod cgroup;
pub mod drop;
pub mod files;
pub mod findings;
#[path = "../../../kmt-capture/tests/support/folder.rs"]
pub mod folder;
pub mod foreign;
pub mod hostile;
pub mod model;
pub mod poisoned;
pub mod reference;
#[path = "../../../kmt-format/tests/suite/support/seeds.rs"]
pub mod seeds;
#[path = "../../../kmt-format/tests/suite/support/skip.rs"]
pub mod skip;
#[path = "../../../kmt-capture/tests/support/swap.rs"]
pub mod swap;
pub mod terminal;
