//! Text for a terminal: colours, widths, tables and times, and a goal in words, from the events of its log and the names of the wire.
//!
//! Values in, lines of text out: nothing here prints, reads a clock or knows a store, an engine or a terminal. Views of stored
//! goals build on it in `towline-view`, and the dashboard in `towline-watch`.

mod asking;
mod letters;
mod line;
mod paint;
mod question;
mod status;
mod story;
mod table;
mod text;
mod time;
mod tools;
mod usage;

pub use asking::AnswerBy;
pub use letters::Letters;
pub use line::{columns, cut, wrapped};
pub use paint::{Medium, Paint, Tone};
pub use question::{how_to_answer, question_lines, time_left};
pub use status::{Group, Status, Step, reason, status};
pub use story::{Detail, PASSED_ONLY_WARM, Place, Story, in_words, speaks_to_towline};
pub use table::table;
pub use text::{brief, bytes, clean, counted, mask, printable, secrets, short_id};
pub use time::{age, clock_time, use_time_zone};
pub use tools::{Tools, named, sign};
pub use usage::{short_number, spent};
