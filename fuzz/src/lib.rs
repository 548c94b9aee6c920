//! What the fuzz targets do with bytes. Each `run` panics where something that must hold does not.
//!
//! The same functions run over the seeds as plain tests, in `kmt-format/tests/suite/fuzz_seeds.rs` and
//! `kmt-analyze/tests/program/fuzz_seeds.rs`.

pub mod analyze;
pub mod capture;
pub mod codec;
pub mod counted;
pub mod cutting;
pub mod differential;
pub mod event_format;
pub mod images;
pub mod import;
pub mod index;
pub mod kernel_text;
pub mod library;
pub mod lists;
pub mod look;
pub mod made;
pub mod made_classes;
pub mod made_numbers;
pub mod made_tables;
pub mod made_texts;
pub mod open;
pub mod open_repaired;
pub mod print_fmt;
pub mod recover;
pub mod repair;
pub mod round_trip;
pub mod second;
pub mod story;
pub mod subbuffer;
