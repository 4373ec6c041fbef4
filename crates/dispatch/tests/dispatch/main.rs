//! The dispatch engine, its kinds and the service, through the public API.

mod bank;
mod commands;
mod engine;
mod guards;
mod lifecycle;
mod projections;
mod service;
mod support;
