//! The store in one SQLite file: the default, inside the binary.
//!
//! `handle` is what others hold; it turns each method of [`crate::Store`] into a job for the one `writer` thread
//! or for the `readers`. The statements of a job are in `writes` and `reads`, with `text` between domain
//! values and columns, `parts` for the rows of a state and `caches` for the tables that repeat part of it; `lists` reads the summaries, `ledger` has spend and accounts, `pool` who is next, `placing` writes the places of goals for that and `prerequisites` what they wait for, `notices` and `replies` what a server is to deliver and has answered.
//! `connection` opens files,
//! `schema` brings them up to date and `upgrade` copies them before, `failure` puts SQLite's errors into our words.

mod baselines;
mod caches;
mod connection;
mod failure;
mod handle;
mod ledger;
mod lists;
mod notices;
mod parts;
mod placing;
mod pool;
mod prerequisites;
mod readers;
mod reads;
mod replies;
mod schema;
#[cfg(test)]
mod tests;
mod text;
mod threads;
mod upgrade;
mod writer;
mod writes;

pub use handle::SqliteStore;
