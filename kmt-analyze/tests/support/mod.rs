//! What tests share.

// Each test uses a part of it.
#![allow(dead_code)]

pub mod agreement;
pub mod drop;
pub mod files;
pub mod foreign;
pub mod model;
pub mod reference;
