//! The suite of the operation store: what is taken ([`enqueuing`]), what an operation goes through ([`life`],
//! [`rolling_back`]), how it is listed and forgotten ([`lists`], [`no_action`]), who owns which scheduler ([`ownership`]), which
//! workers there are ([`workers`]), who gets a named lock ([`locks`]), and how long it holds ([`held_locks`]).

mod enqueuing;
mod held_locks;
mod life;
mod lists;
mod locks;
mod no_action;
mod ownership;
mod rolling_back;
mod workers;

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
            enqueuing::people_cannot_ask_without_end,
            enqueuing::schedulers_in_hand_are_counted,
            enqueuing::a_version_operation_is_refused_while_another_is_unfinished,
            enqueuing::a_second_deletion_is_refused_while_one_is_unfinished,
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
            life::only_pending_operations_are_canceled_at_once,
            life::only_unfinished_operations_forget_their_part_of_the_fleet_size,
            life::the_slot_is_given_once,
            life::a_parked_operation_frees_the_slot,
            life::a_rollback_is_remembered,
            life::the_first_cancel_request_stays,
            rolling_back::only_unfinished_operations_roll_back,
            rolling_back::the_first_reason_to_roll_back_stays,
            rolling_back::a_parked_operation_turns_round_where_it_is,
            lists::unfinished_are_listed_whole_in_the_order_of_enqueuing,
            lists::version_operations_are_listed_whole_and_newest_first,
            lists::stages_are_listed_apart,
            lists::pages_are_cut_in_order_without_history_and_progress,
            lists::a_page_beyond_the_end_is_empty_and_knows_the_total,
            lists::operations_that_changed_nothing_are_hidden_unless_asked_for,
            lists::only_what_is_asked_for_is_listed_and_counted,
            lists::final_operations_are_forgotten_by_age,
            lists::operations_of_gone_schedulers_are_forgotten_apart,
            no_action::a_record_comes_back_as_a_finished_operation,
            no_action::records_are_listed_with_others_in_the_order_of_writing,
            no_action::records_that_say_the_same_or_not_are_told_apart,
            no_action::a_record_is_refused_where_an_operation_would_be,
            no_action::records_are_forgotten_by_age_of_all_schedulers,
            no_action::a_deleted_scheduler_leaves_no_records_behind,
            no_action::what_clean_up_would_drop_is_seen_before,
            ownership::a_free_scheduler_is_owned_by_who_comes_first,
            ownership::a_scheduler_that_is_not_there_is_owned_by_nobody,
            ownership::an_owner_keeps_its_token,
            ownership::an_expired_ownership_is_taken_with_a_greater_token,
            ownership::an_ownership_of_before_the_clock_was_set_back_runs_out,
            ownership::tokens_are_one_sequence_for_all_schedulers,
            ownership::a_stale_guard_is_refused,
            ownership::an_expired_guard_that_nobody_took_still_holds,
            ownership::renewing_keeps_tokens_and_says_what_is_still_owned,
            ownership::renewing_renews_leases_of_operations_in_progress,
            ownership::several_are_owned_at_once_as_far_as_they_are_free,
            ownership::disowning_frees_at_once,
            ownership::a_stale_token_disowns_nothing,
            workers::renewing_makes_a_worker_known,
            workers::owning_alone_makes_no_worker_known,
            workers::workers_and_ownerships_are_listed_by_name,
            workers::what_has_run_out_is_listed_until_it_is_taken,
            workers::retiring_ends_a_worker_and_what_it_owns_and_nothing_else,
            workers::a_retired_worker_that_is_back_owns_nothing,
            workers::a_deleted_scheduler_is_owned_by_nobody,
            locks::a_free_lock_is_taken_and_comes_back_as_it_was_taken,
            locks::locks_are_listed_in_the_order_of_taking_them,
            locks::every_holder_comes_back,
            locks::a_held_lock_is_refused_and_its_holder_named,
            locks::a_lock_whose_time_is_over_is_taken_by_another,
            locks::a_lock_without_an_end_is_never_over,
            locks::a_holder_keeps_token_and_beginning_and_gets_the_new_time,
            locks::a_lock_is_handed_over,
            locks::only_what_its_giver_holds_is_handed_over,
            locks::a_lock_with_waiters_is_given_first_come_first_served,
            locks::a_lock_whose_time_is_over_is_given_in_the_order_too,
            locks::a_place_that_is_too_old_does_not_count,
            locks::who_waits_keeps_its_place,
            locks::a_place_that_is_too_old_is_given_up_for_one_at_the_end,
            locks::a_place_is_handed_over,
            locks::a_place_is_given_up_alone,
            locks::each_kind_has_an_order_of_its_own,
            locks::tokens_of_locks_and_ownerships_are_one_sequence,
            locks::schedulers_do_not_see_each_others_locks,
            locks::a_scheduler_that_is_not_there_has_no_locks,
            locks::of_many_takers_one_gets_the_lock,
            locks::many_who_come_at_once_get_a_place_each,
            held_locks::a_guard_holds_as_long_as_its_locks_do,
            held_locks::a_guard_is_refused_when_a_lock_is_lost,
            held_locks::a_guard_is_refused_when_its_operation_rolls_back,
            held_locks::an_expired_lock_that_nobody_took_still_guards,
            held_locks::a_lock_is_released_by_its_holder_alone,
            held_locks::a_lock_is_revoked_by_its_token_alone,
            held_locks::a_lock_is_revoked_and_its_holder_turned_round_together,
            held_locks::every_end_of_an_operation_frees_its_locks_and_places,
            held_locks::what_an_end_frees_is_free_in_the_same_transaction,
            held_locks::locks_of_a_rollout_stay_until_they_are_released,
            held_locks::renewing_renews_locks_of_unfinished_operations,
            held_locks::a_refused_transaction_leaves_locks_and_places_as_they_were,
            held_locks::a_deleted_scheduler_leaves_no_locks_behind,
        ]
    );
}
