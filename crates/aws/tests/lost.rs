//! Executions whose record cannot be read any more: they hold nobody up, are given up once, by what the record is and not by what a message says,
//! and what is left of them can still be shown, killed and ended.

mod emulator;

mod lost {
    mod bucket;
    mod given_up;
    mod playbook;
    mod sight;
    mod stage;
    mod task;
}
