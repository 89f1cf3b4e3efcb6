//! What the transition table must hold to: first every pair of phase and event, then each way through in whole
//! values, at last what no sequence of news may break.

mod agent_news;
mod baseline;
mod budgets;
mod each;
mod endings;
mod fencing;
mod handover;
mod judging;
mod life;
mod news;
mod pausing;
mod pool;
mod properties;
mod provider;
mod questions;
mod reopening;
mod sessions;
mod stopping;
mod table;
mod talk;
