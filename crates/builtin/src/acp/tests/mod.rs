//! The whole agent except the provider: a client on one side, a scripted model on the other, real tools and files.

mod compaction;
mod permissions;
mod protocol;
mod sessions;
mod support;
mod trouble;
mod turns;
