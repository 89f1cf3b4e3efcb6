//! Repositories, workspaces, candidates and verification checkouts against the real git program.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod candidate;
mod comparison;
mod conversion;
mod copy;
mod create;
mod deep;
mod diff;
mod dirty;
mod environment;
mod filters;
mod hostile_files;
mod hostile_git;
mod hostile_objects;
mod in_place;
mod kinds;
mod large_files;
mod merge;
mod merge_styles;
mod nested;
mod private_clone;
mod protect;
mod protect_through;
mod proven_commit;
mod removal;
mod repository;
mod standing;
mod support;
mod verification;
mod warm;
