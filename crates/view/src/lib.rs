//! What people see of a goal in a terminal: its story line by line, a block below it with the present state, the end, lists
//! and notices. Values in, lines of text out: nothing here prints, reads a clock or knows a terminal.

mod asking;
mod board;
mod ending;
mod facts;
pub mod hints;
mod journal;
mod letters;
mod line;
mod list;
mod notices;
mod paint;
mod question;
mod status;
mod story;
mod table;
mod text;
mod time;
mod tools;

pub use asking::AnswerBy;
pub(crate) use board::spent_of_limits;
#[cfg(test)]
pub(crate) use board::tests as samples;
pub use board::{Board, Canvas};
pub(crate) use ending::spent;
pub use ending::{ending, step_lines};
pub use facts::{attempt_lines, fact_lines};
pub use journal::{is_worth_a_line, journal_line, what_happened};
pub use letters::Letters;
pub use line::{columns, cut, wrapped};
pub use list::goal_table;
pub use notices::{few, note_unprotected, notice_text};
pub use paint::{Medium, Paint, Tone};
pub use question::{how_to_answer, question_lines, time_left};
pub use status::{Group, Status, Step, reason, status};
pub use story::{Detail, Place, Story};
pub use table::table;
pub use text::{brief, bytes, clean, counted, mask, printable, secrets, short_id};
pub use time::{age, clock_time, use_time_zone};
