//! What the tests against running kernels share.

// Each test uses a part of it.
#![allow(dead_code)]

pub mod agreement;
pub mod model;
pub mod reference;
