//! What people see of a goal: its story line by line, a block below it with the present state, and the end.

mod asking;
mod board;
mod drawer;
mod ending;
mod input;
mod letters;
mod line;
mod live;
mod paint;
mod question;
mod story;
mod time;
mod tools;

pub(crate) use board::spent_of_limits;
#[cfg(test)]
pub(crate) use board::tests as samples;
pub(crate) use ending::{ending, spent, step_lines};
pub(crate) use input::Input;
pub(crate) use letters::Letters;
pub(crate) use line::{columns, cut, wrapped};
pub(crate) use live::{LastLine, Live, Prompt, TICK, TypedAs};
pub(crate) use paint::{Paint, Tone};
pub(crate) use question::{how_to_answer, question_lines};
pub(crate) use story::{Detail, PASSED_ONLY_WARM, Story, in_words, speaks_to_towline};
pub(crate) use time::{age, clock_time, use_local_time};
