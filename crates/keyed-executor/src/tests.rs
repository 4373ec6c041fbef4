//! Tests that look inside: the mailbox table, injected faults, the loom models, and the runs under shuttle.

#[cfg(not(any(keyed_loom, keyed_shuttle)))]
mod admission;
#[cfg(not(any(keyed_loom, keyed_shuttle)))]
mod audit_faults;
#[cfg(not(any(keyed_loom, keyed_shuttle)))]
pub(crate) mod breaks;
#[cfg(not(any(keyed_loom, keyed_shuttle)))]
mod brief_lock;
#[cfg(not(any(keyed_loom, keyed_shuttle)))]
mod counting;
#[cfg(not(any(keyed_loom, keyed_shuttle)))]
mod faults;
#[cfg(not(any(keyed_loom, keyed_shuttle)))]
mod forgotten;
#[cfg(not(any(keyed_loom, keyed_shuttle)))]
mod full_window;
#[cfg(not(any(keyed_loom, keyed_shuttle)))]
pub(crate) mod held_seat;
#[cfg(not(any(keyed_loom, keyed_shuttle)))]
mod kept_short;
#[cfg(not(any(keyed_loom, keyed_shuttle)))]
mod mailbox_table;
#[cfg(not(any(keyed_loom, keyed_shuttle)))]
mod monitor_looks;
#[cfg(not(any(keyed_loom, keyed_shuttle)))]
mod monitoring;
#[cfg(not(any(keyed_loom, keyed_shuttle)))]
mod one_worker;
#[cfg(not(any(keyed_loom, keyed_shuttle)))]
mod placing;
#[cfg(not(any(keyed_loom, keyed_shuttle)))]
mod seat_word;

#[cfg(keyed_loom)]
mod loom_close_vs_submit;
#[cfg(keyed_loom)]
mod loom_credit_vs_waiter;
#[cfg(keyed_loom)]
mod loom_force_vs_running;
#[cfg(keyed_loom)]
mod loom_handover;
#[cfg(keyed_loom)]
mod loom_inspect_vs_running;
#[cfg(keyed_loom)]
mod loom_key_waiter;
#[cfg(keyed_loom)]
mod loom_lend_vs_borrow;
#[cfg(keyed_loom)]
mod loom_one_key_two_workers;
#[cfg(keyed_loom)]
mod loom_panic_path;
#[cfg(keyed_loom)]
mod loom_retire_vs_submit;
#[cfg(keyed_loom)]
mod loom_schedule_once;
#[cfg(keyed_loom)]
mod loom_source_end;
#[cfg(keyed_loom)]
mod loom_submit_vs_sleep;
#[cfg(keyed_loom)]
mod loom_take_vs_return;
#[cfg(keyed_loom)]
mod loom_two_seats;
#[cfg(keyed_loom)]
mod loom_wake_vs_suspend;
#[cfg(keyed_loom)]
mod loom_watchdog;
#[cfg(keyed_loom)]
mod loom_whole_path;
#[cfg(keyed_loom)]
mod model;

#[cfg(keyed_shuttle)]
mod shuttle_executor;
#[cfg(keyed_shuttle)]
mod shuttle_load;
#[cfg(keyed_shuttle)]
mod shuttle_run;
