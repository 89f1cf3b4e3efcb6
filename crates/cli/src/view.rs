//! What people see of a goal: its story line by line, a living last line, and the end.

mod ending;
mod live;
mod paint;
mod question;
mod story;

pub(crate) use ending::{ending, next_steps, spent};
pub(crate) use live::Live;
pub(crate) use paint::Paint;
pub(crate) use question::question_lines;
pub(crate) use story::Story;
