//! What every adapter must do, one function per promise, and the means to ask it: a harness that opens and reopens a store
//! ([`harness`]), a layer of faults before it ([`fault`]), races ([`race`]), random histories compared with the reference
//! ([`history`]), random DAGs through crashes ([`dag`]), and whether all that is kept follows from the events ([`state`]). An adapter's tests are one line per port: `execution_store_conformance!(open().await)`, and the same with
//! `ThroughFaults::new(open().await, seed)`.

pub mod chance;
pub mod cost;
pub mod dag;
pub mod dump;
pub mod execution;
pub mod fault;
mod foreman;
pub mod harness;
pub mod history;
pub mod job;
pub mod log;
pub mod race;
pub mod record;
mod registrar;
pub mod roster;
mod stage;
pub mod state;
pub mod tap;

/// One named test per promise.
#[doc(hidden)]
#[macro_export]
macro_rules! promises {
    ($harness:expr; $($part:ident)::+ {}) => {};
    ($harness:expr; $($part:ident)::+ { $promise:ident, $($rest:ident,)* }) => {
        #[tokio::test]
        async fn $promise() {
            let harness = $harness;
            $crate::$($part)::+::$promise(&harness).await;
        }
        $crate::promises!($harness; $($part)::+ { $($rest,)* });
    };
}

/// Makes one test per promise of an execution store. The expression makes a harness over a fresh store; it may await.
#[macro_export]
macro_rules! execution_store_conformance {
    ($harness:expr) => {
        $crate::promises!($harness; execution::submit {
            a_submitted_execution_is_read_back_as_it_went_in,
            an_unknown_execution_is_not_there,
            an_id_is_taken_once,
            the_same_key_gives_the_same_execution,
            what_a_key_made_can_be_looked_up,
            a_key_for_a_link_keeps_when_that_was_made,
            the_same_key_for_another_request_is_refused,
            keys_of_different_users_never_meet,
            a_thousand_parallel_submits_with_one_key_make_one_execution,
            a_refused_submit_leaves_nothing,
            submit_lease_and_begin_can_be_one_step,
            a_submit_that_waits_for_a_lock_takes_no_free_slot,
        });
        $crate::promises!($harness; execution::repeat {
            a_repeated_submit_makes_one_execution,
            a_repeated_lease_gives_the_same_executions,
            a_repeated_begin_counts_one_attempt,
            a_repeated_begin_permits_nothing_that_has_lapsed,
            a_repeated_finish_ends_once,
            a_repeated_failure_is_one_retry,
            a_repeated_give_back_is_one,
            a_repeated_unsend_is_one,
            a_repeated_kill_is_one,
            a_repeated_reap_is_one,
            a_repeated_confirmation_is_one,
            a_repeated_end_of_a_wait_is_one,
            a_repeated_release_takes_one_holder,
            a_refused_step_writes_nothing,
        });
        $crate::promises!($harness; execution::lease {
            ready_ones_are_leased_by_priority_then_age,
            those_of_one_millisecond_are_leased_in_the_order_of_their_ids,
            a_lease_takes_only_from_its_queues,
            a_lease_takes_no_more_than_it_asked_for,
            an_execution_is_leased_once,
            an_attempt_is_counted_by_begin,
            a_lease_can_begin_in_the_same_step,
            a_wrong_fence_is_refused,
            an_extend_moves_the_deadline,
            an_extend_carries_a_kill,
            heartbeats_are_written_at_most_once_a_minute,
            an_unbegun_lease_can_be_given_back,
            a_begun_lease_cannot_be_given_back,
            what_nobody_was_told_of_is_taken_back,
            open_leases_are_listed,
            a_lease_survives_a_reopen,
            backoff_does_not_block_others,
            a_retried_one_stands_behind_those_ready_before_it,
            the_next_ready_time_is_told,
            nobody_is_given_what_they_do_not_serve,
            priority_goes_before_need,
            a_submit_takes_only_a_slot_that_serves_it,
            a_clock_set_back_strands_nobody,
        });
        $crate::promises!($harness; execution::gate {
            a_paused_queue_hands_out_nothing,
            a_limit_holds,
            a_limit_holds_against_many_at_once,
            a_user_has_no_more_than_their_share,
            a_place_comes_back_however_an_attempt_ends,
            a_worker_takes_what_its_labels_allow,
            what_cannot_be_taken_starves_nobody,
            age_makes_up_for_priority,
            executions_are_listed_by_queue,
        });
        $crate::promises!($harness; execution::end {
            a_terminal_status_is_final,
            an_end_is_recorded_whole,
            a_late_finish_is_kept_and_changes_nothing,
            a_lapsed_worker_cannot_touch_the_next_attempt,
            a_retry_waits_for_its_backoff,
            only_passing_failures_are_retried,
            used_up_retries_are_dead_letters,
            a_lapsed_lease_without_retries_fails,
            a_lapsed_lease_with_retries_is_tried_again,
            a_lapsed_lease_is_delivered_again,
            a_lapsed_unbegun_lease_goes_back_uncounted,
            a_lease_extended_since_is_not_reaped,
            of_many_finishes_one_counts,
        });
        $crate::promises!($harness; execution::kill {
            what_does_not_run_is_stopped_at_once,
            what_runs_is_terminating_until_its_worker_confirms,
            its_own_exit_before_a_signal_wins,
            what_is_terminating_never_returns,
            an_unconfirmed_kill_ends_and_says_so,
            a_second_kill_may_be_harsher,
        });
        $crate::promises!($harness; execution::lock {
            a_held_lock_is_refused_with_its_holder,
            the_end_of_its_holder_frees_a_lock,
            the_line_is_served_in_order,
            locks_do_not_know_each_other,
            a_killed_waiter_leaves_the_line,
            a_lock_is_held_through_backoff,
            a_wait_ends_when_its_time_is_over,
            force_hands_a_lock_on,
            a_lock_is_freed_of_nobody_who_lives,
            a_free_lock_cannot_be_released,
            nobody_starts_without_its_lock,
            of_many_submits_one_gets_the_lock,
        });
        $crate::promises!($harness; execution::list {
            a_list_is_newest_first,
            a_list_by_status_follows_every_change,
            filters_combine,
            pages_have_no_gap_and_no_repeat_while_new_ones_arrive,
            an_id_is_found_by_its_beginning_or_end,
        });
        $crate::promises!($harness; execution::queue {
            queues_are_counted,
            what_waits_is_counted_by_user_and_queue,
            dead_letters_are_listed_by_when_they_were_given_up,
            dead_letters_are_counted_as_far_as_asked_for,
            a_page_goes_on_after_one_that_ran_again,
            a_dead_letter_runs_again_once,
            a_repeated_redrive_is_one,
            one_key_is_one_redrive,
            what_cannot_run_again_is_said,
            of_many_redrives_one_counts,
        });
        $crate::promises!($harness; execution::event {
            every_chain_verifies,
            leaves_are_those_of_the_events,
            numbers_are_read_again_as_they_were,
            the_events_fold_to_the_status,
            events_are_paged_in_the_order_of_writing,
            events_are_found_by_entity_type_and_time,
            a_follower_sees_every_event_once,
            a_call_leaves_one_audit_event,
        });
        $crate::promises!($harness; execution::sight {
            somebody_sees_what_is_theirs_and_no_call,
            pages_for_somebody_have_no_gap_and_no_repeat,
            a_page_is_as_large_as_asked_for,
            whoever_sees_nothing_moves_on,
            a_place_is_given_once,
            an_event_is_held_to_its_size,
        });
        $crate::promises!($harness; execution::prune {
            pruning_takes_old_heartbeats_and_no_other_event,
            pruning_takes_old_keys_and_receipts_only,
            pruning_takes_nothing_that_is_not_old,
        });
    };
}

/// Makes one test per promise about what people manage. The harness is over a store that keeps both, executions and records.
#[macro_export]
macro_rules! record_store_conformance {
    ($harness:expr) => {
        $crate::promises!($harness; record::change {
            a_change_is_read_back_as_it_was_answered,
            a_removed_record_is_not_there_and_its_chain_goes_on,
            records_are_listed_by_name_and_kind,
            a_refused_change_leaves_nothing,
            a_repeated_change_is_answered_as_before,
            a_hundred_parallel_changes_with_one_key_make_one_record,
            one_key_makes_one_thing_whatever_it_is,
            the_default_image_goes_with_its_image,
        });
        $crate::promises!($harness; record::event {
            events_of_a_record_are_found_by_what_they_are_about,
            every_chain_of_a_record_verifies,
            pruning_takes_no_record_and_none_of_its_events,
        });
        $crate::promises!($harness; record::identity {
            of_many_first_admins_one_is_made,
            of_a_hundred_answers_to_one_invitation_one_is_given,
            of_many_gifts_of_one_key_one_is_made,
            the_last_admin_stays_whoever_goes_first,
            what_was_revoked_stays_revoked,
            whoever_was_revoked_since_they_were_admitted_changes_nothing,
            the_use_of_a_key_is_remembered_to_the_minute,
        });
        $crate::promises!($harness; record::worker {
            an_account_of_workers_has_one_key,
            of_many_accounts_with_one_key_one_is_made,
            a_worker_that_was_revoked_since_it_was_admitted_leases_nothing,
        });
        $crate::promises!($harness; record::incident {
            every_move_of_an_incident_counts_once,
            an_incident_that_comes_back_is_told_again_only_if_it_was_told_over,
            an_incident_that_comes_back_while_it_is_told_over_is_told_again,
            incidents_are_found_by_where_they_stand,
            a_forgotten_incident_leaves_nothing,
            a_look_at_what_runs_is_chained_and_makes_nobody_read_anew,
        });
        $crate::promises!($harness; record::authority {
            a_change_that_is_acknowledged_has_another_number,
            a_note_and_a_refusal_leave_the_number,
            what_was_read_while_the_number_stood_is_true,
        });
    };
}

/// Makes one test per promise about jobs. The harness is over a store that keeps them beside executions.
#[macro_export]
macro_rules! job_store_conformance {
    ($harness:expr) => {
        $crate::promises!($harness; job::run {
            children_begin_when_their_last_parent_is_done,
            a_repeated_open_makes_one_job,
            a_repeated_end_releases_once,
            one_key_makes_one_job,
            of_many_opens_with_one_key_one_is_made,
            parents_that_end_at_once_release_their_child_once,
            an_output_is_kept_with_its_task,
            a_failed_job_is_resumed_and_a_cancelled_one_is_not,
            a_changed_task_keeps_both_versions,
            late_tasks_join_where_their_parents_stand,
            a_large_job_is_written_in_parts_and_goes_on_after_every_reopen,
        });
        $crate::promises!($harness; job::redrive {
            a_task_that_was_given_up_runs_again_alone,
            tasks_of_one_job_run_again_together,
            a_resumed_task_is_no_dead_letter,
            nothing_of_a_cancelled_job_runs_again,
            dead_letters_of_a_large_cancelled_job_are_buried_in_parts,
        });
        $crate::promises!($harness; job::keep {
            a_job_is_read_back_as_it_was_answered,
            an_unknown_job_is_not_there,
            jobs_are_listed_newest_first,
            tasks_are_paged_by_place,
            large_tasks_are_paged_by_place,
            what_tasks_gave_is_read_in_the_order_asked_for,
            executions_are_found_by_their_job,
            events_of_a_job_are_found_and_its_chain_verifies,
            somebody_sees_the_events_of_their_jobs,
            a_job_that_nobody_opens_is_forgotten,
            tasks_that_are_not_opened_are_no_part_of_a_job,
        });
    };
}

/// Makes one test per promise about the roster of workers. The harness is over a store that keeps it beside all else.
#[macro_export]
macro_rules! roster_conformance {
    ($harness:expr) => {
        $crate::promises!($harness; roster {
            workers_are_listed_as_they_were_noted,
            what_a_worker_says_takes_the_place_of_what_it_said,
            a_worker_that_left_is_gone,
            workers_that_were_not_heard_of_are_forgotten,
            a_worker_that_is_noted_leaves_no_trace,
        });
    };
}

/// Makes one test per promise of the counters of costs.
#[macro_export]
macro_rules! cost_store_conformance {
    ($harness:expr) => {
        $crate::promises!($harness; cost {
            counters_are_read_back_by_day_and_name,
            counters_add_up_over_folds,
            a_fold_counts_once,
            a_fold_from_another_place_changes_nothing,
            of_many_folds_of_one_stretch_one_counts,
            owners_and_dimensions_do_not_mix,
            the_largest_fold_is_one_step,
        });
    };
}

/// Makes one test per promise of a log store.
#[macro_export]
macro_rules! log_store_conformance {
    ($harness:expr) => {
        $crate::promises!($harness; log::append {
            numbers_run_over_all_attempts,
            the_servers_own_lines_are_records_too,
            a_repeat_is_dropped,
            an_append_of_nothing_tells_how_far_it_is,
            a_gap_is_told,
            an_empty_append_writes_nothing,
            times_never_go_back,
            bytes_come_back_exactly,
            two_logs_never_mix,
            a_log_survives_a_reopen_and_goes_on,
            late_output_is_marked,
            racing_repeats_leave_each_record_once,
        });
        $crate::promises!($harness; log::read {
            an_unwritten_log_reads_as_empty,
            a_log_is_read_back_whole,
            any_line_and_any_size_give_the_same_log,
            a_piece_is_about_as_big_as_asked_for,
            a_follower_sees_every_record_once,
            a_follower_beside_a_writer_sees_every_record_once,
        });
        $crate::promises!($harness; log::lookup {
            a_line_is_found_by_its_time,
            a_byte_is_found_in_its_record,
            a_literal_is_found_as_it_is,
            a_regular_expression_is_one,
            a_search_can_be_narrowed,
            hits_are_counted_and_paged,
            a_stopped_search_says_where_to_go_on,
        });
        $crate::promises!($harness; log::seal {
            a_sealed_log_reads_as_before,
            late_output_follows_a_seal,
            all_that_follows_a_seal_is_late,
            an_empty_log_can_be_sealed,
            pruning_takes_ended_logs_only,
        });
    };
}
