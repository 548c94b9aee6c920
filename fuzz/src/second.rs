//! The second reader, and how the test suite of kmt-format compares.
#![allow(dead_code)]

#[path = "../../kmt-format/tests/suite/support/found.rs"]
pub mod found;
#[path = "../../kmt-format/tests/suite/support/naive.rs"]
pub mod naive;
#[path = "../../kmt-format/tests/suite/support/naive_codecs.rs"]
pub mod naive_codecs;
#[path = "../../kmt-format/tests/suite/support/naive_events.rs"]
pub mod naive_events;
#[path = "../../kmt-format/tests/suite/support/naive_folds.rs"]
pub mod naive_folds;
#[path = "../../kmt-format/tests/suite/support/naive_lookups.rs"]
pub mod naive_lookups;
#[path = "../../kmt-format/tests/suite/support/naive_metadata.rs"]
pub mod naive_metadata;
#[path = "../../kmt-format/tests/suite/support/naive_raw.rs"]
pub mod naive_raw;
