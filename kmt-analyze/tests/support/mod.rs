//! What the tests against running kernels share.

pub mod agreement;
pub mod reference;
