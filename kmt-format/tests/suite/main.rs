//! Integration tests of kmt-format: one program, so that the library is linked once.

mod api;
mod budgets;
mod c_header;
mod damage;
mod duplicates;
mod examples;
mod folds;
mod fuzz_seeds;
mod golden;
mod iterate;
mod real_captures;
mod recovered;
mod recovery;
mod round_trip;
mod support;
mod symbols;
mod vectors;
