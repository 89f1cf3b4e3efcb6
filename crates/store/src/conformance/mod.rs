//! What every [`Store`] must hold to, as one suite.
//!
//! An implementation gives a [`Place`] and writes `towline_store::conformance_tests!(place())`, which makes one
//! test of each case. Cases know the trait alone: what one implementation promises beyond it is tested beside it.
#![expect(clippy::expect_used, reason = "a broken promise of the store is to be seen as a failed test")]

mod appends;
mod baselines;
mod leases;
mod ledger;
mod listing;
mod outbox;
mod pool;
mod reading;
mod removal;
pub(crate) mod samples;
mod server;
mod values;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

pub use appends::*;
pub use baselines::*;
pub use leases::*;
pub use ledger::*;
pub use listing::*;
pub use outbox::*;
pub use pool::*;
pub use reading::*;
pub use removal::*;
pub use server::*;
pub use values::*;

use crate::Store;

/// How long a case may take before it counts as stuck.
const DEADLINE: Duration = Duration::from_secs(120);

/// Somewhere a store can be, empty at first.
#[async_trait]
pub trait Place: Send + Sync {
    /// Opens what is stored here, as a process that has just started would. Stores opened before may still be open.
    async fn open(&self) -> Arc<dyn Store>;
}

/// Runs one case on a runtime of its own.
pub fn run(case: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime can be started");
    runtime.block_on(async { tokio::time::timeout(DEADLINE, case).await.expect("the case ends in time") });
}

/// Makes one test of each case of the suite. The expression gives a fresh, empty [`Place`] every time.
#[macro_export]
macro_rules! conformance_tests {
    ($place:expr) => {
        $crate::conformance_tests! {
            $place =>
            a_created_goal_is_there_with_its_first_event
            a_goal_is_created_once
            goals_are_created_together_or_not_at_all
            appended_events_get_places_without_gaps
            an_append_without_events_still_moves_state_and_outbox
            of_appenders_that_expect_the_same_place_one_wins_and_the_others_change_nothing
            appenders_that_try_again_leave_a_log_without_gaps
            an_append_that_expects_another_place_changes_nothing
            an_append_of_another_generation_changes_nothing
            what_does_not_exist_is_not_found
            generations_grow_with_every_claim
            a_lease_is_held_until_it_runs_out
            a_lease_is_taken_from_exactly_the_worker_that_is_proven_dead
            of_workers_that_claim_at_once_one_wins
            a_renewed_lease_holds_longer
            a_lease_that_is_lost_cannot_be_renewed
            giving_back_a_lease_that_is_lost_changes_nothing
            leases_do_not_touch_the_log
            effects_wait_in_the_order_in_which_they_were_written
            an_effect_is_taken_once_whether_it_waits_or_is_over
            settling_ends_exactly_what_it_names
            a_log_is_read_page_by_page
            goals_are_listed_in_the_order_of_their_creation
            a_list_is_read_page_by_page
            a_list_has_what_its_filters_name
            a_summary_is_that_of_the_stored_goal
            queued_goals_and_goals_whose_wait_is_over_are_found_oldest_first
            a_goal_is_found_by_what_a_person_types
            finding_is_bounded
            a_reader_never_sees_half_a_transition
            a_removed_goal_leaves_nothing_and_the_others_stay
            a_goal_that_was_claimed_again_is_not_removed
            every_value_survives_reopening
            the_session_is_stored_with_the_first_state_that_has_it
            at_most_one_attempt_of_a_goal_runs
            a_baseline_is_found_by_its_key
            the_oldest_baselines_go_first
            a_goal_is_loaded_with_the_checks_in_force
            events_of_all_goals_have_one_order
            a_place_among_all_events_is_never_used_twice
            what_an_attempt_used_is_counted_once
            accounts_are_as_judges_last_saw_them
            what_a_judge_used_is_counted_once
            what_was_spent_counts_when_it_was_reported
            what_was_spent_is_summed_up_over_all_goals
            what_was_spent_in_a_time_is_what_was_reported_in_its_quarters
            what_no_agent_reported_is_unknown
            an_attempt_that_reported_nothing_is_counted_as_unknown
            what_is_lacking_is_what_no_agent_reported
            accounts_are_as_attempts_last_saw_them
            an_account_is_as_it_was_set
            what_was_spent_is_summed_up_by_agent_model_and_goal
            the_usual_cost_of_an_agent_is_the_median_of_its_last_attempts
            the_queue_is_in_the_order_of_ranks
            goals_that_could_start_are_read_in_pages
            a_pool_has_the_first_goals_of_each_lane
            a_pool_has_the_goals_that_hold_a_slot
            a_goal_waits_for_its_prerequisites
            prerequisites_count_whenever_a_goal_is_queued
            the_next_wake_is_that_of_the_first_goal_that_nobody_holds
            notifications_wait_until_they_are_settled
            the_first_reply_to_a_request_holds
            of_requests_with_the_same_key_one_is_first
        }
    };
    ($place:expr => $($case:ident)+) => {
        $(
            #[test]
            fn $case() {
                let place = $place;
                $crate::conformance::run($crate::conformance::$case(&place));
            }
        )+
    };
}
