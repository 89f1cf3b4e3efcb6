//! What people see of a goal: its story line by line, a living last line, and the end.

mod asking;
mod ending;
mod live;
mod paint;
mod question;
mod story;

pub(crate) use ending::{ending, next_steps, spent};
pub(crate) use live::{LastLine, Live, TICK};
pub(crate) use paint::Paint;
pub(crate) use question::{how_to_answer, question_lines};
pub(crate) use story::{Story, in_words, speaks_to_towline};
