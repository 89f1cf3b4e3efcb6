//! Goals driven in process: the store is real, time is paused, and the test does the work of the executors.

mod adoption;
mod baseline_results;
mod baselines;
mod budgets;
mod driving;
mod faulty_store;
mod following;
mod harness;
mod interrupted;
mod last_words;
mod leases;
mod outages;
mod projects;
mod questions;
mod slots;
mod stops;
mod store_errors;
mod values;
mod waiting;
