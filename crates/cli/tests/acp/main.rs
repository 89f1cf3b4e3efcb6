//! `towline acp`, the program itself, over a scripted model in all four wire formats: what an ACP client sees.

mod agent;
mod sessions;
mod tools;
mod trouble;
mod words;
