//! What is particular to the embedded store, beyond the promises that every store makes: the file, the one writer, the disk below.

mod backup;
mod batch;
mod concurrent;
mod durable;
mod fixture;
mod flip;
mod golden;
mod invariant;
mod label;
mod limited;
mod opening;
mod retention;
mod search;
mod share;
mod space;
