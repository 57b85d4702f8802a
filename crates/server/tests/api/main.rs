//! The API as clients meet it, over memory adapters. One binary, so that it links once.

mod access;
mod app;
mod contract;
mod description;
mod hostile;
mod list;
mod listen;
mod log;
mod outside;
mod refusal;
mod stream;
mod submit;
