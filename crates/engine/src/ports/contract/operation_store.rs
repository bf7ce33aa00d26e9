//! The suite of the operation store: what is taken ([`enqueuing`]), what an operation goes through ([`life`]), how it
//! is listed and forgotten ([`lists`]), and who owns which scheduler ([`ownership`]).

mod enqueuing;
mod life;
mod lists;
mod ownership;

use std::future::Future;
use std::sync::Arc;

use crate::ports::Store;

use super::run_cases;

pub async fn run_all<F, Fresh>(fresh: F)
where
    F: Fn() -> Fresh,
    Fresh: Future<Output = Arc<dyn Store>>,
{
    run_cases!(
        "operation store",
        fresh,
        [
            life::an_operation_comes_back_as_it_was_enqueued,
            life::every_definition_comes_back,
            life::every_origin_comes_back,
            life::an_unknown_operation_is_not_found,
            enqueuing::a_scheduler_being_deleted_takes_only_deletions,
            enqueuing::an_id_is_given_once,
            enqueuing::a_version_operation_is_refused_while_another_is_unfinished,
            enqueuing::a_version_operation_may_follow_one_that_ended,
            enqueuing::a_version_operation_may_follow_one_that_ends_in_the_same_transaction,
            enqueuing::of_two_version_operations_in_a_transaction_the_second_is_refused,
            enqueuing::the_first_of_several_version_operations_is_named,
            enqueuing::only_who_asks_for_it_is_kept_from_a_second_version_operation,
            enqueuing::other_operations_and_other_schedulers_keep_no_version_operation_away,
            enqueuing::a_version_operation_is_not_under_way_to_itself,
            life::starting_grants_the_lease_and_the_slot,
            life::an_update_changes_what_it_names_and_no_more,
            life::history_is_kept_in_the_order_of_writing,
            life::ending_takes_lease_and_slot,
            life::every_transition_of_the_table_and_no_other,
            life::only_pending_operations_start,
            life::only_operations_in_progress_are_updated_or_asked_to_end,
            life::only_pending_operations_are_cancelled_at_once,
            life::only_unfinished_operations_forget_their_part_of_the_fleet_size,
            life::the_slot_is_given_once,
            life::a_parked_operation_frees_the_slot,
            life::a_rollback_is_remembered,
            life::the_first_cancel_request_stays,
            lists::unfinished_are_listed_whole_in_the_order_of_enqueuing,
            lists::stages_are_listed_apart,
            lists::pages_are_cut_in_order_without_history_and_progress,
            lists::a_page_beyond_the_end_is_empty_and_knows_the_total,
            lists::operations_that_changed_nothing_are_hidden_unless_asked_for,
            lists::final_operations_are_forgotten_by_age,
            lists::operations_of_gone_schedulers_are_forgotten_apart,
            ownership::a_free_scheduler_is_owned_by_who_comes_first,
            ownership::a_scheduler_that_is_not_there_is_owned_by_nobody,
            ownership::an_owner_keeps_its_token,
            ownership::an_expired_ownership_is_taken_with_a_greater_token,
            ownership::tokens_are_one_sequence_for_all_schedulers,
            ownership::a_stale_guard_is_refused,
            ownership::an_expired_guard_that_nobody_took_still_holds,
            ownership::renewing_keeps_tokens_and_says_what_is_still_owned,
            ownership::renewing_renews_leases_of_operations_in_progress,
            ownership::disowning_frees_at_once,
            ownership::a_stale_token_disowns_nothing,
        ]
    );
}
