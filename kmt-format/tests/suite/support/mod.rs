//! What the integration tests share.
#![allow(dead_code)]

pub mod captures;
pub mod model;
pub mod naive;
pub mod naive_metadata;
pub mod skip;
pub mod texts;
pub mod told;
pub mod written;
