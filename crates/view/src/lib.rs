//! What people see of a stored goal in a terminal: a block below its story with the present state, the end, facts, lists, hints
//! and notices, drawn and worded with `towline-terminal`. Values in, lines of text out: nothing here prints, reads a clock or
//! knows a terminal.

mod board;
mod ending;
mod facts;
pub mod hints;
mod journal;
mod list;
mod notices;

pub(crate) use board::spent_of_limits;
#[cfg(test)]
pub(crate) use board::tests as samples;
pub use board::{Board, Canvas};
pub use ending::{ending, step_lines, trust_line};
pub use facts::{attempt_lines, fact_lines};
pub use journal::{ShownQuestions, is_worth_a_line, journal_line, what_happened};
pub use list::goal_table;
pub use notices::{few, note_unprotected, notice_text};
