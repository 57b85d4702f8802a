//! The API as clients meet it, over memory adapters. One binary, so that it links once.

mod access;
mod app;
mod attempt;
mod audit;
mod contract;
mod description;
mod dry_run;
mod escalation;
mod hostile;
mod image;
mod key;
mod link;
mod list;
mod listen;
mod log;
mod outside;
mod people;
mod playbook;
mod reconcile;
mod refusal;
mod rule;
mod secret;
mod standing;
mod stream;
mod submit;
