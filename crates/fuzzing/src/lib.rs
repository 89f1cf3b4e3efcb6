//! What must hold whatever bytes come in, and a source of bytes to try it with.
//!
//! A [`Target`] is a plain function over bytes that panics when something does not hold, with seeds that are real
//! recordings. Three things run it: the tests of this crate, a bounded and repeatable number of cases; `cargo xtask
//! fuzz`, for as long as one likes; and the libFuzzer targets in `fuzz/`. Only tests use this crate: a panic is how it
//! reports, and it is no part of the product.

mod dice;
mod documents;
mod frames;
mod logs;
mod mutation;
mod runner;
mod seeds;
mod target;

pub use frames::conversation;
pub use runner::{Cases, Ran, input, run};
pub use target::{Target, target, targets};
